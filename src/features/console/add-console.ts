import type { Context, Hono } from 'hono';
import { basePath } from 'hono/route';
import { METHOD_NAME_ALL } from 'hono/router';
import {
  type BearerEnv,
  type CheckParts,
  type FailureLog,
  type GraphQLPipeline,
  HonoHead,
  type NamedCommands,
  originOf,
  readForm,
} from '../../http/index.ts';
import type { ConsentParts } from '../consent/oauth/parts.ts';
import { SeenOrigin } from '../sessions/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { explainError, type PageMessage } from './page-errors.ts';
import { addAssets, readAssets } from './assets.ts';
import { SessionAuth, type SessionAuthParts, requireOwnForm, sessionTokenIn } from './session-auth.ts';
import { withQuery } from './links.ts';
import { OperationFailed } from './operations.ts';
import {
  Pages,
  type PageParts,
  type ReadForm,
  readPageForm,
  rootFrom,
  seeOther,
  sendPage,
  Visit,
  type Welcome,
} from './visit.tsx';
import { addAuditLog } from './pages/audit-log/audit-log.tsx';
import { addConsentPages } from './pages/consent.tsx';
import { addHealth, addLimits } from './pages/service.tsx';
import { addHome } from './pages/home.tsx';
import { addKeyList } from './pages/key-list.tsx';
import { addKeyPage } from './pages/key/key.tsx';
import { Message, toConsole } from './parts/layout.tsx';
import { addressOfDraft } from './pages/new-key/form.tsx';
import { addNewKey } from './pages/new-key/new-key.tsx';
import { addRequests } from './pages/requests.tsx';
import { addRoutes } from './pages/routes.tsx';
import { addSelectedKeys } from './pages/selected-keys.tsx';
import { addSignIn, MAX_NEXT } from './pages/sign-in.tsx';
import { titleOf } from './parts/notice.tsx';
import type { SentForms } from './recent-forms.ts';
import { type Answered, SentForm, SessionEnded } from './sent-form.tsx';

interface ConsoleParts extends SessionAuthParts, ConsentParts {
  /** Counts invalid credentials; undefined for no limit. */
  readonly failedCredentials: CheckParts['failedCredentials'];
  /** Serves the console, and not only the approval pages. */
  readonly hasConsole: boolean;
  /** The name of the service on its pages. */
  readonly title: string | undefined;
  readonly commands: NamedCommands;
  readonly credentials: PageParts['credentials'];
  readonly pipeline: GraphQLPipeline;
  readonly keys: KeysService;
  readonly failures: FailureLog;
  readonly forms: SentForms;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

const CONSOLE_PATH = '/console';

/**
 * Adds the approval pages and the console. People sign in to the console with a key, and see and do what that key can
 * do through GraphQL. All pages work without scripts; no key is ever in a URL, and nothing is loaded from elsewhere.
 */
export function addPages(app: Hono<BearerEnv>, parts: ConsoleParts): void {
  const assets = readAssets(parts.title);
  const { sessions, forms } = parts;
  const sessionAuth = new SessionAuth(parts);
  const seenBy = (c: Context) => new SeenOrigin(parts.issuer.of(c));
  const { consent: mode } = parts.catalog;
  const enterAgain: PageParts['enterAgain'] = (c, key, entered) => sessionAuth.enterAgain(c, key, seenBy(c), entered);
  const visitOf = (c: Context, by: ConstructorParameters<typeof Visit>[2]) =>
    new Visit(c, { assets, ...parts, consent: mode, enterAgain }, by);
  addAssets(app, CONSOLE_PATH, assets);
  const shell = { assets, issuer: parts.issuer };
  const say = (c: Context, root: string, { status, title, message }: PageMessage, headers = {}) =>
    sendPage(c, shell, { title, root, status, headers }, Message({ title, message, link: toConsole(root) }));

  const guarded = async (c: Context, root: string, answer: () => Promise<Response>): Promise<Response> => {
    try {
      if (c.req.method === 'POST') requireOwnForm(c, seenBy(c));
      return await answer();
    } catch (error) {
      return say(c, root, describeError(c, error, parts));
    }
  };
  /** Admits a person, or says why not. @throws SignInFailed; KeysError STORE_… */
  const enter = async (c: Context, root: string, form?: URLSearchParams) => {
    const entry = await sessionAuth.enter(c, seenBy(c));
    if (entry === 'signed out') return entry;
    return 'refusal' in entry ? entry.refusal : visitOf(c, { root, admitted: entry, form });
  };
  const welcome: Welcome = (c, root, answer) =>
    guarded(c, root, async () => {
      const read = await readSentForm({ c, sessions, forms, seen: seenBy(c) });
      const changesNothing = (response: Response): Answered => ({ response, isDone: false });
      const work = async (): Promise<Answered> => {
        const entry = await enter(c, root, read?.form);
        if (entry === 'signed out') return changesNothing(toSignIn(c, root, await draftIn(c, read?.form)));
        if (!(entry instanceof Visit))
          return changesNothing(await say(c, root, { ...entry, title: titleOf(entry.status) }, entry.headers));
        const explain = (error: unknown) => showMessage(entry, describeError(c, error, parts));
        const answered = async () => ({ response: await answer(entry).catch(explain), isDone: entry.isDone });
        if (!read?.sent) return answered();
        return read.sent
          .take(answered)
          .catch(async (error: unknown) =>
            changesNothing(error instanceof SessionEnded ? toSignIn(c, root) : await explain(error)),
          );
      };
      // Check for a repeated form before signing in: the first one may have ended the session.
      return read?.sent ? read.sent.once(work) : (await work()).response;
    });
  /** Shows an error. Signed-in people also see the navigation. */
  const showMessageToAnybody = async (c: Context, said: PageMessage, headers = {}): Promise<Response> => {
    const root = rootFrom(pathIn(c));
    try {
      const entry = await enter(c, root);
      return entry instanceof Visit ? await showMessage(entry, said, headers) : await say(c, root, said, headers);
    } catch {
      return say(c, root, said, headers);
    }
  };

  addConsentPages(app, {
    ...parts,
    assets,
    seenBy,
    enter: parts.hasConsole ? enter : undefined,
    providerHost: parts.people?.provider?.host,
  });
  if (!parts.hasConsole) return;

  const pages = new Pages(app, CONSOLE_PATH, welcome);
  app.get(CONSOLE_PATH, (c) => seeOther(c, `.${CONSOLE_PATH}/`));
  const countFailure = (c: Context) => parts.failedCredentials?.add(originOf(c, parts));
  addSignIn(app, CONSOLE_PATH, { ...parts, assets, sessionAuth, guarded, seenBy, countFailure });
  addHome(pages);
  addKeyList(pages);
  addSelectedKeys(pages);
  addNewKey(pages);
  addRequests(pages);
  addKeyPage(pages);
  addAuditLog(pages);
  addRoutes(pages);
  addLimits(pages);
  addHealth(pages);
  for (const [path, allowed] of methodsByPath(app))
    app.all(path, (c) => showMessageToAnybody(c, notAllowed(c.req.method, allowed), { Allow: allowed }));
  app.all(`${CONSOLE_PATH}/*`, (c) => showMessageToAnybody(c, NOT_FOUND));
}

/** The methods of each address of the console, as `Allow` has them (RFC 9110). */
function methodsByPath({ routes }: Hono<BearerEnv>): Map<string, string> {
  const isOurs = (path: string) => path === CONSOLE_PATH || path.startsWith(`${CONSOLE_PATH}/`);
  const own = routes.filter(({ path, method }) => isOurs(path) && method !== METHOD_NAME_ALL);
  const methods = Map.groupBy(own, ({ path }) => path);
  const allowed = (found: readonly { method: string }[]) =>
    found.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return new Map(Array.from(methods, ([path, found]) => [path, allowed(found)]));
}

function showMessage(visit: Visit, { status, title, message }: PageMessage, headers = {}): Promise<Response> {
  return visit.page(title, Message({ title, message, link: toConsole(visit.root) }), status, headers);
}

/** Reads a form that must be done only once. @throws RequestRefused */
async function readSentForm(sender: Parameters<typeof SentForm.in>[1]): Promise<ReadForm | undefined> {
  const { c, sessions, seen } = sender;
  const token = c.req.method === 'POST' ? sessionTokenIn(c, seen) : undefined;
  if (token === undefined || !(await sessions.look(token))) return undefined;
  const form = await readPageForm(c);
  return { sent: SentForm.in(form, sender), form };
}

const NOT_FOUND: PageMessage = {
  status: 404,
  title: titleOf(404),
  message: 'Page not found.',
};

function notAllowed(method: string, allowed: string): PageMessage {
  const message = allowed.startsWith('GET')
    ? `This address does not accept ${method}.`
    : 'This address only takes forms. Go back to the form and send it from there.';
  return { status: 405, title: titleOf(405), message };
}

/** The address of a request, under `/console/`. */
function pathIn(c: Context): string {
  return c.req.path.slice(basePath(c).replace(/\/$/, '').length + CONSOLE_PATH.length + 1);
}

/** Maximum size in bytes of a form that is kept across a sign-in. */
const MAX_DRAFT_BYTES = 16 * 1024;

/** The page with the sent form filled in, if possible. @param read the form, if it was already read */
async function draftIn(c: Context, read: URLSearchParams | undefined): Promise<string | undefined> {
  if (c.req.method !== 'POST' || pathIn(c) !== 'keys/new') return undefined;
  const form = read ?? (await readForm(c, 'This page is answered', MAX_DRAFT_BYTES).catch(() => undefined));
  const draft = form && addressOfDraft(form);
  return draft !== undefined && draft.length <= MAX_NEXT - 'keys/new?'.length ? `keys/new?${draft}` : undefined;
}

/**
 * Redirects to the sign-in page, and from there to the requested page, or to the page that a form was sent from.
 * @param draft the page with that form, filled in
 */
function toSignIn(c: Context, root: string, draft?: string): Response {
  const isForm = c.req.method === 'POST';
  const wanted = draft ?? (isForm ? sentFrom(c) : pathIn(c) + new URL(c.req.url).search);
  const lost = draft !== undefined ? 'kept' : isForm ? 'form' : '';
  return seeOther(c, withQuery(`${root}sign-in`, { next: wanted, lost }));
}

/** The page that a form was sent from, under `/console/`; empty if unknown. */
function sentFrom(c: Context): string {
  return /\/console\/(.*)$/.exec(c.req.header('referer') ?? '')?.[1] ?? '';
}

/** The page for an error: the same on all pages, unless it is one of a GraphQL operation, or unknown. */
function describeError(c: Context, error: unknown, parts: ConsoleParts): PageMessage {
  const known = explainError(c, error, parts);
  if (known) return known;
  if (error instanceof OperationFailed)
    return { status: error.pageStatus, title: titleOf(error.pageStatus), message: error.message };
  const { status, text } = parts.pipeline.failed(error, new HonoHead(c));
  const [{ extensions }] = (JSON.parse(text) as { errors: [{ extensions: { requestId: string } }] }).errors;
  const message = `The server's log says why. Look for ${extensions.requestId}.`;
  return { status, title: titleOf(status), message };
}
