import type { Context, Hono } from 'hono';
import {
  type BearerEnv,
  type Issuer,
  type NamedCommands,
  readForm,
  readQuery,
  type RefusalLog,
  type SeenOrigin,
} from '../../../http/index.ts';
import { prefixOf } from '../../../keys/secret/index.ts';
import type { PeopleSignIn } from '../../people/people-sign-in.ts';
import type { Assets } from '../assets.ts';
import type { SessionAuth } from '../session-auth.ts';
import { Layout, MessagePage } from '../parts/layout.tsx';
import { Problem } from '../parts/notice.tsx';
import { addProviderWay, startOf } from '../provider-way.ts';
import { answerHeaders, seeOther, sendPage } from '../visit.tsx';

interface SignInParts {
  readonly assets: Assets;
  readonly sessionAuth: SessionAuth;
  readonly seenBy: (c: Context) => SeenOrigin;
  readonly refusals: RefusalLog;
  readonly commands: NamedCommands;
  /** Signs people in at a provider; undefined where everybody shows a key, or comes by a proxy. */
  readonly people?: PeopleSignIn | undefined;
  /** Counts those who come back from a provider, and are not signed in. */
  readonly countFailure: (c: Context) => number | undefined;
  readonly issuer: Issuer;
  /** Answers, or says what went wrong. */
  readonly guarded: (c: Context, root: string, answer: () => Promise<Response>) => Promise<Response>;
}

const ROOT = './';
/** From what is below the page. */
const ABOVE = '../';
/** What is said of a form that came after the end of a session, by the field `lost` of the address. */
const LOST: ReadonlyMap<string | null, string> = new Map([
  ['form', 'Your session has ended, so nothing was done. Sign in, and send the form again.'],
  ['kept', 'Your session has ended. Sign in to go on with your form: it is kept.'],
]);

/** Adds the page on which people exchange a key for a session, and the ways out of that. */
export function addSignIn(app: Hono<BearerEnv>, path: string, parts: SignInParts): void {
  const { assets, sessionAuth, seenBy, refusals, guarded, commands, people } = parts;
  const provider = people?.provider;
  const show = (c: Context, shown: { next: string; problem?: string | undefined }, status = 200, headers = {}) =>
    sendPage(
      c,
      SignIn({ assets, commands, provider: provider?.host, isPrivate: seenBy(c).isPrivate, ...shown }),
      status,
      {
        ...answerHeaders(c),
        ...headers,
      },
    );

  /** A page that opens another one of ours: a browser then sends the cookie of the session. */
  const openAgain = (c: Context, root: string, again: string) => {
    const around = { title: 'Sign in', root, assets, again };
    return sendPage(c, <Layout {...around}>{<OneMoment here={again} />}</Layout>);
  };

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
      const key = form.get('key')?.trim() ?? '';
      if (!seen.isPrivate) return show(c, { next }, 403);
      if (key === '') return show(c, { next, problem: 'Enter an API key.' }, 400);
      const entered = await sessionAuth.signIn(c, key, seen);
      if ('refusal' in entered) {
        const { status, message, headers } = entered.refusal;
        return show(c, { next, problem: message }, status, headers);
      }
      refusals.add('signed in', { reason: 'console', prefix: prefixOf(entered.principal.apiKey.publicId) });
      return seeOther(c, ROOT + next);
    }),
  );
  app.post(`${path}/sign-out`, (c) =>
    guarded(c, ROOT, async () => {
      await sessionAuth.signOut(c, seenBy(c));
      if (!sessionAuth.isByProxy(c, seenBy(c))) return seeOther(c, `${ROOT}sign-in`);
      const said = { title: 'Sign out at the proxy', message: 'The proxy in front of this service has signed you in.' };
      return sendPage(c, MessagePage({ root: ROOT, assets, ...said }), 200, answerHeaders(c));
    }),
  );
  if (people?.provider)
    addProviderWay(app, `${path}/sign-in`, {
      people,
      sessionAuth,
      refusals,
      seenBy,
      place: 'provider',
      parameter: 'next',
      readNext: nextIn,
      addressOf: (c) => `${parts.issuer.of(c)}${path}/sign-in`,
      countFailure: parts.countFailure,
      guarded: (c, answer) => guarded(c, ABOVE, answer),
      leadOn: (c, next) => openAgain(c, ABOVE, ABOVE + next),
    });
  // For pages that are looked at again after a while.
  app.get(`${path}/session`, (c) =>
    guarded(c, ROOT, async () =>
      c.body(null, (await sessionAuth.isSignedIn(c, seenBy(c))) ? 204 : 401, { 'Cache-Control': 'no-store' }),
    ),
  );
}

/** The most characters of where somebody wanted to go. */
export const MAX_NEXT = 4000;

/**
 * Where somebody wanted to go, under `/console/`, or to the pages on which people decide what applications get;
 * nowhere, if that is somewhere else.
 */
function nextIn(text = ''): string {
  const isOurs =
    /^(?:[a-z][\w\-/]*|\.\.\/(?:device|oauth\/authorize))(\?[\w\-.~%&=+:*!'(),;@/?]*)?(#[\w\-.~%&=+:*!'(),;@/?]*)?$/.test(
      text,
    );
  return isOurs && text.length <= MAX_NEXT ? text : '';
}

/**
 * Whether somebody comes by a link of another site, or of a mail: their browser sends the cookie of their session only
 * once a page of ours asks (SameSite=Strict, RFC 6265bis). A page that opens itself again does; it is then asked from
 * here, so that this happens once. Nothing is changed by any page that is opened, and no other page may show it.
 */
export function isFollowedLink(c: Context): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': place } = c.req.header();
  return site === 'cross-site' && mode === 'navigate' && place === 'document';
}

/** What stands on a page that opens itself again. */
export function OneMoment({ here }: { here: string }) {
  return (
    <div class="narrow">
      <h1>One moment</h1>
      <p>
        <a href={here}>Continue</a>
      </p>
    </div>
  );
}

function SignIn({
  assets,
  commands,
  next,
  problem,
  provider,
  isPrivate,
}: {
  assets: Assets;
  commands: NamedCommands;
  next: string;
  problem?: string | undefined;
  /** The host at which people sign in without a key. */
  provider: string | undefined;
  isPrivate: boolean;
}) {
  return (
    <Layout title="Sign in" root={ROOT} assets={assets}>
      <div class="narrow">
        <h1>Sign in to {assets.brand}</h1>
        <SignInForm
          action={`${ROOT}sign-in`}
          back={{ name: 'next', value: next }}
          service={assets.brand}
          page="the console"
          help={
            'The console shows and does what this key may. It is exchanged for a session, which ends after 8 hours, ' +
            'after 30 minutes without a request, and with the key.'
          }
          problem={problem}
          provider={provider}
          isPrivate={isPrivate}
        />
        <p class="help">
          No key yet? Whoever runs this service makes one: <code>{commands.create}</code>
        </p>
      </div>
    </Layout>
  );
}

/** The ways to sign in: by a provider, where there is one, and by a key. */
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
  /** The field that says where somebody wanted to go. */
  back: { name: 'next' | 'to'; value: string };
  /** What managers of passwords call it that a key is for. */
  service: string;
  /** What is to be opened by https. */
  page: string;
  help: string;
  problem: string | undefined;
  provider: string | undefined;
  isPrivate: boolean;
}) {
  const said = problem !== undefined && <Problem>{problem}</Problem>;
  if (!isPrivate)
    return (
      <>
        {said}
        <Problem>
          This connection is not encrypted, so that others could read a key. Open {page} by https, or on the machine
          itself.
        </Problem>
      </>
    );
  return (
    <>
      {said}
      {provider !== undefined && (
        <p>
          <a class="button primary" href={startOf(action, back.name, back.value)} data-next>
            Sign in with {provider}
          </a>
        </p>
      )}
      <form method="post" action={action} class="stack">
        <input type="hidden" name={back.name} value={back.value} data-next />
        {/* Managers of passwords name what they keep by it. */}
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
