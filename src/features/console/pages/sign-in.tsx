import type { Context, Hono } from 'hono';
import { type BearerEnv, type Issuer, type NamedCommands, readForm, readQuery } from '../../../http/index.ts';
import type { PeopleSignIn } from '../../people/people-sign-in.ts';
import type { Assets } from '../assets.ts';
import type { SeenOrigin } from '../../sessions/index.ts';
import type { SessionAuth } from '../session-auth.ts';
import { Message, Panel, toConsole } from '../parts/layout.tsx';
import { LinkButton, Problem } from '../parts/notice.tsx';
import { addProviderWay, startOf } from '../provider-way.ts';
import { seeOther, sendPage } from '../visit.tsx';

interface SignInParts {
  readonly assets: Assets;
  readonly sessionAuth: SessionAuth;
  readonly seenBy: (c: Context) => SeenOrigin;
  readonly commands: NamedCommands;
  /** Signs people in at a provider; undefined if everyone signs in with a key or through a proxy. */
  readonly people?: PeopleSignIn | undefined;
  /** Counts failed sign-ins at a provider. */
  readonly countFailure: (c: Context) => number | undefined;
  readonly issuer: Issuer;
  /** Answers, and turns errors into a page. */
  readonly guarded: (c: Context, root: string, answer: () => Promise<Response>) => Promise<Response>;
}

const ROOT = './';
/** The same, from a page one level deeper. */
const ABOVE = '../';
/** Messages for a form that was sent after the session had ended, by the `lost` field of the address. */
const LOST: ReadonlyMap<string | null, string> = new Map([
  ['form', 'Your session has ended, so nothing was done. Sign in and send the form again.'],
  ['kept', 'Your session has ended. Sign in to continue with your form: it has been kept.'],
]);

/** Adds the pages for signing in to the console and out of it. */
export function addSignIn(app: Hono<BearerEnv>, path: string, parts: SignInParts): void {
  const { assets, sessionAuth, seenBy, guarded, commands, people } = parts;
  const show = (
    c: Context,
    { next, problem }: { next: string; problem: string | undefined },
    status = 200,
    headers = {},
  ) => {
    const content = (
      <Panel width="narrow" title={`Sign in to ${assets.brand}`}>
        <SignInForm
          action={`${ROOT}sign-in`}
          back={{ name: 'next', value: next }}
          service={assets.brand}
          page="the console"
          help={
            'You can see and do what your key allows. You are signed out after 30 minutes without activity, ' +
            'and after 8 hours at most.'
          }
          problem={problem}
          provider={people?.provider?.host}
          isPrivate={seenBy(c).isPrivate}
        />
        <p class="help">
          No key? Ask the administrator, or run <code>{commands.create}</code> on the server.
        </p>
      </Panel>
    );
    return sendPage(c, parts, { title: 'Sign in', root: ROOT, status, headers }, content);
  };

  /** Opens another page of ours by itself, so that the browser sends the session cookie. */
  const openAgain = (c: Context, root: string, again: string) =>
    sendPage(c, parts, { title: 'Sign in', root, again }, <OneMoment here={again} />);

  app.get(`${path}/sign-in`, (c) =>
    guarded(c, ROOT, async () => {
      const query = readQuery(c);
      const next = nextIn(query.get('next') ?? undefined);
      if (await sessionAuth.isSignedIn(c, seenBy(c))) return seeOther(c, ROOT + next);
      if (isFollowedLink(c)) return openAgain(c, ROOT, `${ROOT}sign-in${new URL(c.req.url).search}`);
      return show(c, { next, problem: LOST.get(query.get('lost')) });
    }),
  );
  app.post(`${path}/sign-in`, (c) =>
    guarded(c, ROOT, async () => {
      const seen = seenBy(c);
      const form = await readForm(c, 'This page is answered');
      const next = nextIn(form.get('next') ?? undefined);
      const refusal = await sessionAuth.signIn(c, form, seen);
      return refusal
        ? show(c, { next, problem: refusal.message }, refusal.status, refusal.headers)
        : seeOther(c, ROOT + next);
    }),
  );
  app.post(`${path}/sign-out`, (c) =>
    guarded(c, ROOT, async () => {
      await sessionAuth.signOut(c, seenBy(c));
      if (!sessionAuth.isByProxy(c, seenBy(c))) return seeOther(c, `${ROOT}sign-in`);
      const title = 'Sign out at the proxy';
      const message = 'You signed in through the proxy in front of this service. Sign out there.';
      return sendPage(
        c,
        parts,
        { title, root: ROOT },
        <Message title={title} message={message} link={toConsole(ROOT)} />,
      );
    }),
  );
  if (people?.provider)
    addProviderWay(app, `${path}/sign-in`, {
      people,
      sessionAuth,
      seenBy,
      parameter: 'next',
      readNext: nextIn,
      addressOf: (c) => `${parts.issuer.of(c)}${path}/sign-in`,
      countFailure: parts.countFailure,
      guarded: (c, answer) => guarded(c, ABOVE, answer),
      leadOn: (c, next) => openAgain(c, ABOVE, ABOVE + next),
    });
  // Lets an open page check whether its session is still valid.
  app.get(`${path}/session`, (c) =>
    guarded(c, ROOT, async () =>
      c.body(null, (await sessionAuth.isSignedIn(c, seenBy(c))) ? 204 : 401, { 'Cache-Control': 'no-store' }),
    ),
  );
}

/** Maximum length of the address to return to after signing in. */
export const MAX_NEXT = 4000;

/** The address to return to: under `/console/`, or one of the approval pages. Empty for any other address. */
function nextIn(text = ''): string {
  const isOurs =
    /^(?:[a-z][\w\-/]*|\.\.\/(?:device|oauth\/authorize))(\?[\w\-.~%&=+:*!'(),;@/?]*)?(#[\w\-.~%&=+:*!'(),;@/?]*)?$/.test(
      text,
    );
  return isOurs && text.length <= MAX_NEXT ? text : '';
}

/**
 * Checks whether a link on another site or in an email led here. The browser then withholds the session cookie
 * (SameSite=Strict, RFC 6265bis) until one of our own pages sends the request. So the page opens itself again, which
 * happens only once, because that request comes from us. This is safe: opening a page changes nothing, and no other
 * page can embed it.
 */
export function isFollowedLink(c: Context): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': place } = c.req.header();
  return site === 'cross-site' && mode === 'navigate' && place === 'document';
}

/** Content of a page that opens itself again. */
export function OneMoment({ here }: { here: string }) {
  return (
    <Panel width="narrow" title="One moment">
      <p>
        <a href={here}>Continue</a>
      </p>
    </Panel>
  );
}

/** Offers to sign in at the provider, if there is one, and with a key. */
export function SignInForm({
  action,
  back,
  service,
  page,
  help,
  problem,
  provider,
  isPrivate,
}: {
  action: string;
  /** Field with the address to return to. */
  back: { name: 'next' | 'to'; value: string };
  /** Name under which password managers store the key. */
  service: string;
  /** Name of the thing to open over https. */
  page: string;
  help: string;
  problem: string | undefined;
  provider: string | undefined;
  isPrivate: boolean;
}) {
  if (!isPrivate)
    return (
      <Problem>
        You can't sign in here over http, because others could read your key. Open {page} over https, or on the machine
        itself.
      </Problem>
    );
  return (
    <>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {provider !== undefined && (
        <p>
          <LinkButton kind="primary" to={startOf(action, back.name, back.value)} data-next>
            Sign in with {provider}
          </LinkButton>
        </p>
      )}
      <form method="post" action={action} class="stack">
        <input type="hidden" name={back.name} value={back.value} data-next />
        {/* Password managers store the key under this name. */}
        <input id="service" type="text" value={service} autocomplete="username" hidden />
        <label for="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          required
          aria-describedby="key-help"
          data-focus
        />
        <p id="key-help" class="help">
          {help}
        </p>
        <button class="primary">Sign in</button>
      </form>
    </>
  );
}
