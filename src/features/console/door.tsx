import type { Context } from 'hono';
import { Hono } from 'hono';
import type { Child } from 'hono/jsx';
import {
  type BearerEnv,
  errorReply,
  HonoHead,
  internalError,
  listenerOf,
  readForm,
  readQuery,
  type Reply,
  requestIdIn,
  respond,
} from '../../http/index.ts';
import type { PeopleSignIn } from '../people/people-sign-in.ts';
import { addAssets, plainPageHeaders, readAssets } from './assets.ts';
import { OneMoment, SignInForm } from './pages/sign-in.tsx';
import { Message, Panel } from './parts/layout.tsx';
import { explainError } from './page-errors.ts';
import { inYourWords, Problem, titleOf } from './parts/notice.tsx';
import { addProviderWay } from './provider-way.ts';
import { requireOwnForm, SessionAuth } from './session-auth.ts';
import { answerHeaders, pageOf, seeOther, type SentPage } from './visit.tsx';
import {
  DOOR_PATH,
  type DoorPages,
  type DoorParts,
  type LoadedDoor,
  LOST_FORM,
  readReturnTarget,
  sentFrom,
  type SeenOrigin,
} from '../sessions/index.ts';

/** Sign-in at a provider. */
interface PeopleParts {
  /** Undefined if everyone signs in with a key. */
  readonly people?: PeopleSignIn | undefined;
}

/**
 * Adds the pages that guarded services show on their own hosts: sign in with a key, see which key is signed in, sign
 * out. They work without scripts. Only `SessionAuth.signIn` decides who is signed in.
 */
export function addDoor(app: Hono<BearerEnv>, parts: DoorParts & PeopleParts): DoorPages {
  const assets = readAssets(parts.title);
  const { people } = parts;
  const sessionAuth = new SessionAuth(parts, 'door');
  const path = DOOR_PATH.slice(0, -1);
  addAssets(app, path, assets);

  const send = async (c: Context, page: Promise<Reply>) => respond(c, await page);
  const plainPage = (page: DoorPage, content: Child) =>
    pageOf({ assets }, { ...page, root: DOOR_PATH, isPlain: true, pageHeaders: plainPageHeaders() }, content);
  const show = (c: Context, page: DoorPage, content: Child) => send(c, plainPage(page, content));
  const signInPage = (
    seen: SeenOrigin,
    target: string,
    problem?: string,
    more: Pick<DoorPage, 'status' | 'headers'> = {},
  ) => {
    const pageHeaders = plainPageHeaders(undefined, true);
    return pageOf(
      { assets },
      { title: 'Sign in', root: DOOR_PATH, pageHeaders, ...more },
      <Panel width="narrow" title={`Sign in to ${seen.host}`}>
        <SignInForm
          action={`${DOOR_PATH}sign-in`}
          back={{ name: 'to', value: target }}
          service={seen.host}
          page="this address"
          help={`Signs you in to ${seen.host} only.`}
          problem={problem}
          provider={people?.provider?.host}
          isPrivate={seen.isPrivate}
        />
        <p class="help">No key yet? Ask an administrator of this service for one.</p>
      </Panel>,
    );
  };
  const leadOn = (c: Context, target: string) =>
    show(c, { title: 'Signed in', again: target }, <OneMoment here={target} />);
  /** Answers, and turns errors into a page. */
  const guarded = async (c: Context, answer: (seen: SeenOrigin) => Promise<Response>): Promise<Response> => {
    try {
      const seen = parts.seenBy(c);
      if (c.req.method === 'POST') requireOwnForm(c, seen);
      return await answer(seen);
    } catch (error) {
      const known = explainError(c, error, parts);
      if (!known) throw error;
      return show(c, known, <Message {...known} link={CONTINUE} />);
    }
  };

  app.get(DOOR_PATH, (c) =>
    guarded(c, async (seen) => {
      const entry = await sessionAuth.enter(c, seen);
      if (entry === 'signed out') return send(c, signInPage(seen, '/'));
      if ('refusal' in entry) {
        const { status, message, headers } = entry.refusal;
        return show(c, { title: titleOf(status), status, headers }, <Refused message={message} seen={seen} />);
      }
      return show(c, { title: 'Signed in' }, <SignedIn name={entry.principal.apiKey.name} seen={seen} />);
    }),
  );
  app.get(`${path}/sign-in`, (c) =>
    guarded(c, async (seen) => {
      // A proxy that shows this page instead of another names that one in a header.
      const target = readReturnTarget(readQuery(c).get('to') ?? c.req.header('x-original-uri') ?? '');
      return (await sessionAuth.isSignedIn(c, seen)) ? seeOther(c, target) : send(c, signInPage(seen, target));
    }),
  );
  // Shown instead of the answer to a form, by a proxy that fetches this page itself.
  app.all(LOST_FORM, (c) =>
    guarded(c, async (seen) => {
      const target = readReturnTarget(sentFrom(new HonoHead(c), seen));
      return send(c, signInPage(seen, target, LOST));
    }),
  );
  app.post(`${path}/sign-in`, (c) =>
    guarded(c, async (seen) => {
      const form = await readForm(c, 'This page is answered');
      const target = readReturnTarget(form.get('to') ?? '');
      const refusal = await sessionAuth.signIn(c, form, seen);
      if (refusal) {
        const { status, message, headers } = refusal;
        return send(c, signInPage(seen, target, message, { status, headers: { ...answerHeaders(c), ...headers } }));
      }
      // No redirect: browsers apply `form-action` to it, and the service may redirect to another site.
      return leadOn(c, target);
    }),
  );
  if (people?.provider)
    addProviderWay(app, `${path}/sign-in`, {
      people,
      sessionAuth,
      seenBy: (c) => parts.seenBy(c),
      parameter: 'to',
      readNext: readReturnTarget,
      addressOf: (c) => `${parts.seenBy(c).origin}${path}/sign-in`,
      countFailure: (c) => parts.countFailure?.(c),
      guarded,
      leadOn,
    });
  app.post(`${path}/sign-out`, (c) =>
    guarded(c, async (seen) => {
      await sessionAuth.signOut(c, seen);
      return seeOther(c, './');
    }),
  );
  // Shown instead of a forbidden page, by a proxy that fetches this page itself.
  app.all(`${path}/refused`, (c) =>
    guarded(c, (seen) =>
      show(c, NOT_ALLOWED, <Refused message="This key lacks the permission to open this page." seen={seen} />),
    ),
  );
  app.all(`${path}/*`, (c) => {
    const said = { title: 'Not found', message: 'Page not found.' };
    return show(c, { title: said.title, status: 404 }, <Message {...said} link={CONTINUE} />);
  });

  return {
    signIn: (seen, target, headers, isLost) =>
      signInPage(seen, readReturnTarget(target), isLost ? LOST : undefined, { status: 401, headers }),
    refused: (seen, { status, headers, error }) =>
      plainPage({ ...NOT_ALLOWED, status, headers }, <Refused message={error.message} seen={seen} />),
  };
}

/** The same for a server without other pages of ours. */
export async function openDoor(parts: DoorParts & PeopleParts): Promise<LoadedDoor> {
  const app = new Hono<BearerEnv>();
  const pages = addDoor(app, parts);
  app.onError((error, c) => {
    parts.failures.add(error, requestIdIn(c));
    return respond(c, internalError(requestIdIn(c) ?? ''));
  });
  app.notFound((c) => respond(c, errorReply('NOT_FOUND', 'Page not found.')));
  return { pages, handle: await listenerOf(app) };
}

/** A page at the door; `again` is an address that it opens by itself. */
type DoorPage = Pick<SentPage, 'title' | 'status' | 'headers' | 'again'>;

const LOST = 'You are not signed in, so nothing was done. Sign in and send the form again.';
const CONTINUE = { to: DOOR_PATH, text: 'Continue' };
const NOT_ALLOWED = { title: 'Not allowed', status: 403 };

function SignedIn({ name, seen }: { name: string; seen: SeenOrigin }) {
  return (
    <Panel width="narrow" title="Signed in">
      <p>
        You are signed in to {seen.host} with the key <strong>{name}</strong>.
      </p>
      <p>
        <a href="/">Open {seen.host}</a>
      </p>
      <SignOut label="Sign out" />
    </Panel>
  );
}

function Refused({ message, seen }: { message: string; seen: SeenOrigin }) {
  return (
    <Panel width="narrow" title="Not allowed">
      <Problem>{inYourWords(message)}</Problem>
      <p>You are signed in to {seen.host}.</p>
      <SignOut label="Sign in with another key" />
    </Panel>
  );
}

function SignOut({ label }: { label: string }) {
  return (
    <form method="post" action={`${DOOR_PATH}sign-out`}>
      <button>{label}</button>
    </form>
  );
}
