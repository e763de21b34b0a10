import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Hono } from 'hono';
import Negotiator from 'negotiator';
import type { OwnFeature } from '../../feature.ts';
import {
  type Admission,
  type Admitted,
  type BearerCheck,
  type BearerEnv,
  type FailureLog,
  memoized,
  type Received,
  type RefusalLog,
  type ErrorReply,
  type Reply,
  type RequestTo,
} from '../../http/index.ts';
import type { Authenticator } from '../../keys/authentication/index.ts';
import { KeysError } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { admitSession, cookieParts, DOOR_COOKIE, SESSION_COOKIE, tokenAt } from './cookies.ts';
import { type SeenOrigin, seenOrigin } from './seen-origin.ts';
import type { Sessions } from './sessions.ts';

/** Path of the sign-in pages on a guarded service. We answer everything below it; upstreams never see it. */
export const DOOR_PATH = '/.svc-api/';

/** Checks whether a target is one of our pages on the host of a guarded service. */
export function isAtDoor(target: string): boolean {
  return target.startsWith('/.svc-api') && (target.length === 9 || target[9] === '/' || target[9] === '?');
}

/** The pages at the door. */
export interface DoorPages {
  /**
   * The sign-in page, which then opens a target on the same host.
   * @param headers of its answer, with status 401
   * @param isLost a form was sent, and was not processed
   */
  signIn(seen: SeenOrigin, target: string, headers: Reply['headers'], isLost: boolean): Promise<Reply>;
  /** Tells a signed-in person that they are not allowed, and lets them sign in with another key. */
  refused(seen: SeenOrigin, refusal: ErrorReply): Promise<Reply>;
}

/** Parts of the sign-in pages. */
export interface DoorParts {
  /** The name of the service on its pages. Default: svc-api. */
  readonly title?: string | undefined;
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  /** Takes keys that people show in forms, wherever programs put theirs. */
  readonly check: BearerCheck;
  readonly refusals: RefusalLog;
  readonly failures: FailureLog;
  /** The address that a browser has opened. */
  seenBy(c: Context): SeenOrigin;
  /** Counts a failed sign-in at a provider as a credential that is not valid. */
  readonly countFailure?: ((c: Context) => number | undefined) | undefined;
}

/** The pages at the door, once they are loaded. */
export interface LoadedDoor {
  readonly pages: DoorPages;
  /** Answers a request to one of our own addresses at the host of the service: see `isAtDoor`. */
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
}

/** Makes the pages at the door. */
export interface DoorRoom {
  /** Adds them to the app of a service, for the hosts of others. */
  add(app: Hono<BearerEnv>, parts: DoorParts & { people?: Pick<PeopleAtDoor, 'goesOn'> | undefined }): DoorPages;
  /** Makes them for a server that answers nothing else of ours. */
  open(parts: DoorParts & { people?: Pick<PeopleAtDoor, 'goesOn'> | undefined }): Promise<LoadedDoor>;
}

/**
 * The pages at the door, of the feature that provides them as `door`.
 * @throws KeysError CONFIG_INVALID if people are to sign in, and no feature has pages for that
 */
export function doorOf(features: readonly OwnFeature[], isRequired: boolean): (() => Promise<DoorRoom>) | undefined {
  const [door] = features.flatMap(({ provides }) => provides?.['door'] ?? []) as (() => Promise<DoorRoom>)[];
  if (!door && isRequired)
    throw new KeysError(
      'CONFIG_INVALID',
      '"sign-in" and "people" need the pages of the feature "console". Add that feature, or set "sign-in: off" and leave ' +
        '"people" out.',
    );
  return door;
}

/** People who use a guarded service without a key. */
export interface PeopleAtDoor {
  /** Checks whether the person that a key stands for stays signed in by their session. */
  goesOn(apiKey: ApiKey): boolean;
  /** Checks whether a trusted proxy identifies the caller; undefined if none does. */
  isNamed?(request: Received): boolean;
  /** Checks a request of a person whom a proxy identifies. */
  enter?(request: Received): Promise<Admission>;
}

/** Accepts people who have signed in, and shows others where to do so. */
export interface SignIn {
  readonly sessions: Sessions;
  /** People without a key; undefined if everyone needs one. */
  readonly people?: PeopleAtDoor | undefined;
  /** Loads the pages on first use. */
  pages(): Promise<DoorPages>;
}

/** The sign-in page for a form that was sent without a session. */
export const LOST_FORM = `${DOOR_PATH}lost`;
/** Header that names the page for a proxy to show. */
const PAGE = 'X-Auth-Page';
/** Time that the check of a session in use is cached, in milliseconds. */
const KNOWN_MS = 250;
const MAX_KNOWN = 1000;

/**
 * Authenticates callers of a guarded service: programs by the key in a request, people by their session. A key wins. A
 * person who is refused sees a page; everyone else gets the usual answer.
 */
export class Door {
  readonly #check: BearerCheck;
  readonly #signIn: SignIn | undefined;
  /** Recent results of session checks, by token. */
  readonly #known = new Map<string, { readonly at: number; readonly goesOn: Promise<boolean> }>();

  /** @param signIn undefined if people cannot sign in */
  constructor(check: BearerCheck, signIn: SignIn | undefined) {
    this.#check = check;
    this.#signIn = signIn;
  }

  /** Checks a request that has just arrived. Counts as a use of its key. */
  enter(request: Received, at: RequestTo): Admission | Promise<Admission> {
    request.to = at;
    if (this.#isNamed(request)) return this.#signIn!.people!.enter!(request);
    const token = this.#sessionIn(request, at);
    return token === undefined ? this.#check.enter(request) : this.#enterBySession(request, token);
  }

  /**
   * Checks a request again that was accepted. Counts as no further use of its key.
   * @param isInUse whether it counts as a use of its session
   */
  again(request: Received, at: RequestTo, admitted: Admitted, isInUse: boolean): Admission | Promise<Admission> {
    const token = admitted.token === undefined ? this.#sessionIn(request, at) : undefined;
    return token === undefined
      ? this.#check.again(request, admitted)
      : this.#goesOn(token, isInUse).then((goesOn) =>
          goesOn ? this.#check.again(request, admitted) : this.#check.enter(request),
        );
  }

  /**
   * Checks whether a browser added the credentials by itself, so that another site may have caused the request.
   * @param page what the request says about its page: if nothing, a program may have sent a key with Basic
   */
  isByBrowser(request: Received, at: RequestTo, page: 'foreign' | 'unsaid'): boolean {
    const isByBasic = page === 'foreign' && this.#check.isByBasic(request);
    return isByBasic || this.#isNamed(request) || this.#sessionIn(request, at) !== undefined;
  }

  /**
   * The answer to a refused request: a page for a person, otherwise the usual reply. Both have the same status, so that
   * a page is not mistaken for the requested one.
   */
  show(request: Received, at: RequestTo, refusal: ErrorReply): Reply | Promise<Reply> {
    const seen = this.#isPerson(request, at) ? seenOrigin(at) : undefined;
    if (!seen) return refusal;
    if (refusal.status === 401) {
      const isLost = at.method === 'POST';
      const target = isLost ? sentFrom(request, seen) : at.target;
      return this.#signIn!.pages().then((pages) => pages.signIn(seen, target, this.#check.challengeOnPages, isLost));
    }
    const isSignedIn = this.#sessionIn(request, at) !== undefined;
    return isSignedIn && (refusal.status === 403 || refusal.status === 429)
      ? this.#signIn!.pages().then((pages) => pages.refused(seen, refusal))
      : refusal;
  }

  /**
   * Headers that tell a proxy which page of the same host to show instead of a refusal. Undefined if there is no page.
   */
  pageFor(request: Received, at: RequestTo, { status, headers }: Reply): Reply['headers'] | undefined {
    if (!this.#isPerson(request, at) || !seenOrigin(at)) return undefined;
    const page = at.method === 'POST' ? LOST_FORM : `${DOOR_PATH}sign-in`;
    if (status === 401) return { ...this.#check.challengeOnPages, [PAGE]: page };
    const isSignedIn = this.#sessionIn(request, at) !== undefined;
    return isSignedIn && status === 403 ? { ...headers, [PAGE]: `${DOOR_PATH}refused` } : undefined;
  }

  async #enterBySession(request: Received, token: string): Promise<Admission> {
    const found = await admitSession(request, token, { ...this.#signIn!, check: this.#check });
    return found?.admission ?? this.#check.enter(request);
  }

  /** The session token of a request; undefined if it has a key, or something like one. */
  #sessionIn(request: Received, at: RequestTo): string | undefined {
    const cookies = this.#signIn && request.header('cookie');
    if (!cookies?.includes(SESSION_COOKIE) || this.#isNamed(request)) return undefined;
    const seen = seenOrigin(at);
    const [cookie] = seen ? cookieParts(cookies, [DOOR_COOKIE, SESSION_COOKIE], seen) : [];
    return cookie === undefined || this.#check.hasCredentials(request) ? undefined : tokenAt(seen!, cookie);
  }

  /** Checks whether a trusted proxy identifies the caller of a request without a key. */
  #isNamed(request: Received): boolean {
    return this.#signIn?.people?.isNamed?.(request) === true && !this.#check.hasCredentials(request);
  }

  /** Cached briefly, because requests in progress check often, for each part of a body. */
  #goesOn(token: string, isInUse: boolean): Promise<boolean> {
    const [now, known] = [performance.now(), this.#known.get(token)];
    if (known && now - known.at < KNOWN_MS) return known.goesOn;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const { sessions } = this.#signIn!;
    const goesOn = (isInUse ? sessions.find(token) : sessions.look(token)).then((session) => session !== undefined);
    this.#known.set(token, { at: now, goesOn });
    return goesOn;
  }

  /** Checks whether a browser opens a page or sends a form, without a key. */
  #isPerson(request: Received, { method }: RequestTo): boolean {
    return this.#signIn !== undefined && isNavigation(request, method) && !this.#check.hasCredentials(request);
  }
}

/** The page of the same host that a form was sent from, as a target; `/` if a browser does not say. */
export function sentFrom(request: Pick<Received, 'header'>, { origin }: SeenOrigin): string {
  const from = URL.parse(request.header('referer') ?? '');
  return from?.origin === origin ? from.pathname + from.search : '/';
}

/** Content types of forms. */
const FORM = /^(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\b/i;

/**
 * Checks whether a browser opens a page, or sends a form, in a tab of its own: it prefers HTML and, if it sends Fetch
 * Metadata, asks for a document. Scripts, frames and programs differ.
 */
function isNavigation(request: Received, method: string): boolean {
  const [mode, place] = [request.header('sec-fetch-mode'), request.header('sec-fetch-dest')];
  const isForm = method === 'POST' && (mode !== undefined || FORM.test(request.header('content-type') ?? ''));
  if (method !== 'GET' && method !== 'HEAD' && !isForm) return false;
  if ((mode ?? 'navigate') !== 'navigate' || (place ?? 'document') !== 'document') return false;
  if (request.header('x-requested-with') !== undefined || request.header('sec-websocket-key') !== undefined)
    return false;
  return prefersHtml(request.header('accept') ?? '');
}

const TYPES = ['application/json', 'text/html'];

/** Checks whether HTML is preferred to JSON, by name and not by `*`. */
const prefersHtml = memoized((accept) => new Negotiator({ headers: { accept } }).mediaType(TYPES) === TYPES[1]);

/** Reads the target to return to, on the same host, such as `/wiki/Start?x=1`. Anything else becomes `/`. */
export function readReturnTarget(text: string): string {
  const isPath = /^\/(?![/\\])[!-[\]-~]*$/.test(text) && text.length <= 4000;
  return isPath && !isAtDoor(text) ? text : '/';
}
