import type { Context } from 'hono';
import { setCookie } from 'hono/cookie';
import {
  admitKey,
  type Admitted,
  type BearerCheck,
  HonoHead,
  type PageRefusal,
  pageRefusal,
  type RefusalLog,
  RequestRefused,
} from '../../http/index.ts';
import type { Authenticator } from '../../keys/authentication/index.ts';
import type { OrRefusal } from '../../keys/basics/index.ts';
import { digestSecret, prefixOf } from '../../keys/secret/index.ts';
import type { Identified } from '../people/proxy-headers.ts';
import type { PeopleSignIn } from '../people/people-sign-in.ts';
import { SignInFailed } from '../people/failure.ts';
import {
  admitSession,
  cookieParts,
  DOOR_COOKIE,
  prefixFor,
  SESSION_COOKIE,
  tokenAt,
  type Sessions,
  SESSION_MS,
  type SeenOrigin,
} from '../sessions/index.ts';

/** Field for entering the key again. */
export const KEY_FIELD = 'yourKey';

/** The session token in a request to our pages, if any. */
export function sessionTokenIn(c: Context, seen: SeenOrigin): string | undefined {
  const [cookie] = cookieParts(c.req.header('cookie'), [SESSION_COOKIE], seen);
  return cookie === undefined ? undefined : tokenAt(seen, cookie);
}

/**
 * Sets the session cookie: hidden from scripts and, except on this machine, sent only over encrypted connections (RFC
 * 6265bis).
 */
function giveSession(c: Context, name: string, value: string, seen: SeenOrigin): void {
  setOwnCookie(c, name, { value, seen, maxAge: SESSION_MS / 1000, sameSite: name === DOOR_COOKIE ? 'Lax' : 'Strict' });
}

export function setOwnCookie(
  c: Context,
  name: string,
  {
    value,
    seen,
    maxAge,
    sameSite = 'Strict',
  }: { value: string; seen: SeenOrigin; maxAge: number; sameSite?: 'Lax' | 'Strict' },
): void {
  const prefix = prefixFor(seen);
  setCookie(c, name, value, {
    path: '/',
    httpOnly: true,
    sameSite,
    secure: seen.isEncrypted,
    maxAge,
    ...(prefix && { prefix }),
  });
}

/** Message for people who have no key to enter again. */
const SIGN_IN_AGAIN =
  'You signed in over 5 minutes ago. This form creates a secret, so sign in again, and then send it again.';

/** Parts for signing people in. */
export interface SessionAuthParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly check: BearerCheck;
  readonly refusals: RefusalLog;
  /** Signs people in without a key; undefined if everyone needs one. */
  readonly people?: PeopleSignIn | undefined;
}

/** A signed-in person. */
export interface Entered extends Admitted {
  /** They entered the key, or signed in without one, in the last 5 minutes. */
  readonly isFresh: boolean;
}

/** A person is admitted, has no session, or is refused despite having one. */
type Entry = OrRefusal<Entered, PageRefusal> | 'signed out';

/** The cookies of a session, in the order in which they are read, and the names of sign-ins in the log. */
const PLACES = {
  pages: { cookies: [SESSION_COOKIE], byKey: 'console', byProvider: 'provider' },
  door: { cookies: [DOOR_COOKIE, SESSION_COOKIE], byKey: 'door', byProvider: 'provider at the door' },
} as const;

/** Removes the session cookies of a browser. */
function takeCookies(c: Context, seen: SeenOrigin): void {
  for (const name of PLACES.door.cookies)
    if (cookieParts(c.req.header('cookie'), [name], seen).length > 0)
      setOwnCookie(c, name, { value: '', seen, maxAge: 0 });
}

/** Admits signed-in people as their key would be admitted. */
export class SessionAuth {
  readonly #parts: SessionAuthParts;
  readonly #place: (typeof PLACES)[keyof typeof PLACES];

  /** @param of our own pages, or the door of a guarded service: a session started there works for both */
  constructor(parts: SessionAuthParts, of: keyof typeof PLACES = 'pages') {
    this.#parts = parts;
    this.#place = PLACES[of];
  }

  /**
   * Finds the person behind a request: from a trusted proxy, otherwise from the session (see `admitSession`).
   * @throws SignInFailed; KeysError STORE_…
   */
  async enter(c: Context, seen: SeenOrigin): Promise<Entry> {
    const identified = this.#parts.people?.inHeaders(new HonoHead(c), seen);
    if (identified) return this.#enterAs(c, seen, identified);
    const token = this.#tokenIn(c, seen);
    const found = token === undefined ? undefined : await admitSession(new HonoHead(c), token, this.#parts);
    if (!found) {
      if (token !== undefined) takeCookies(c, seen);
      return 'signed out';
    }
    const { session, admission } = found;
    if ('refusal' in admission) return { refusal: pageRefusal(admission.refusal) };
    return { ...admission, isFresh: this.#parts.sessions.isFresh(session, this.#cookieIn(c, seen)[1]) };
  }

  /**
   * Signs in a person whom a provider has identified.
   * @throws SignInFailed; KeysError STORE_…
   */
  async signInAs(c: Context, identified: Identified, seen: SeenOrigin): Promise<void> {
    const admission = await this.#admit(c, identified);
    await this.#begin(c, admission, seen);
    this.#noteSignIn(this.#place.byProvider, admission);
  }

  /**
   * Signs in a person with the key in a form.
   * @returns the reason it was refused, if it was
   * @throws KeysError STORE_…
   */
  async signIn(c: Context, form: URLSearchParams, seen: SeenOrigin): Promise<PageRefusal | undefined> {
    const key = form.get('key')?.trim() ?? '';
    // The page itself says that it takes no key.
    if (!seen.isPrivate) return { status: 403, message: '', headers: {} };
    if (key === '') return { status: 400, message: 'Enter an API key.', headers: {} };
    const admission = await admitKey(c, key, this.#parts.check);
    if ('refusal' in admission) return admission.refusal;
    await this.#begin(c, admission, seen);
    this.#noteSignIn(this.#place.byKey, admission);
    return undefined;
  }

  #noteSignIn(reason: string, { principal }: Admitted): void {
    this.#parts.refusals.add('signed in', { reason, prefix: prefixOf(principal.apiKey.publicId) });
  }

  /** Starts a session, and ends the previous one of this browser. */
  async #begin(c: Context, { principal, digest }: Admitted, seen: SeenOrigin): Promise<void> {
    await this.#end(c, seen);
    const cookie = await this.#parts.sessions.begin(principal.apiKey.id, digest, (random) => tokenAt(seen, random));
    const isKnown = cookieParts(c.req.header('cookie'), [DOOR_COOKIE], seen).length > 0;
    for (const name of isKnown ? PLACES.door.cookies : this.#place.cookies) giveSession(c, name, cookie, seen);
  }

  /**
   * Accepts the key that a signed-in person enters again. The session continues, so that a form sent twice is done
   * once; the proof of entry is new, so that a cookie stolen earlier lacks it.
   * @param key as entered
   * @returns the reason it was refused, if it was
   */
  async enterAgain(
    c: Context,
    key: string,
    seen: SeenOrigin,
    { digest, principal }: Admitted,
  ): Promise<PageRefusal | undefined> {
    const { sessions, check } = this.#parts;
    if (principal.apiKey.person) return { status: 403, message: SIGN_IN_AGAIN, headers: {} };
    const [cookie] = this.#cookieIn(c, seen);
    if (cookie === undefined || key === '') return { status: 400, message: 'Enter your API key.', headers: {} };
    if (digestSecret(key) !== digest) {
      const admission = await admitKey(c, key, check);
      const message = 'This is not the key that you are signed in with.';
      return 'refusal' in admission ? admission.refusal : { status: 403, message, headers: {} };
    }
    giveSession(c, SESSION_COOKIE, `${cookie}.${await sessions.noteEntry(tokenAt(seen, cookie))}`, seen);
    return undefined;
  }

  /** Ends a session. The cookies are removed even if the store cannot be written. */
  async signOut(c: Context, seen: SeenOrigin): Promise<void> {
    takeCookies(c, seen);
    await this.#end(c, seen);
  }

  /** Checks whether a person is signed in, without counting as activity of the session or use of the key. */
  async isSignedIn(c: Context, seen: SeenOrigin): Promise<boolean> {
    if (this.isByProxy(c, seen)) return true;
    const { sessions, authenticator } = this.#parts;
    const token = this.#tokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.look(token);
    return session !== undefined && (await authenticator.accepts(session.secretDigest, session.keyId));
  }

  /** Checks whether a trusted proxy identifies the person. If so, they also sign out there. @throws SignInFailed */
  isByProxy(c: Context, seen: SeenOrigin): boolean {
    return this.#parts.people?.inHeaders(new HonoHead(c), seen) !== undefined;
  }

  /**
   * Admits a person whom a proxy has identified. They also get a session, which their forms belong to. A session of
   * someone else ends, and its forms are not theirs.
   */
  async #enterAs(c: Context, seen: SeenOrigin, identified: Identified): Promise<Entry> {
    const admission = await this.#admit(c, identified);
    const token = this.#tokenIn(c, seen);
    const session = token === undefined ? undefined : await this.#parts.sessions.find(token);
    const isOwn = session?.keyId === admission.principal.apiKey.id && session.secretDigest === admission.digest;
    if (session && !isOwn && c.req.method === 'POST') return 'signed out';
    if (!isOwn) await this.#begin(c, admission, seen);
    return { ...admission, isFresh: true };
  }

  /** @throws SignInFailed for a person who is disabled, or not allowed from this address; KeysError STORE_… */
  async #admit(c: Context, identified: Identified): Promise<Admitted> {
    const { people, check } = this.#parts;
    const { digest } = await people!.signIn(identified);
    const admission = await check.enterBy(new HonoHead(c), digest);
    if (!('refusal' in admission)) return admission;
    const { status, message } = pageRefusal(admission.refusal);
    if (admission.refusal.status !== 401) throw new SignInFailed(status === 503 ? 503 : 403, message, `${status}`);
    const text = `You are signed in as ${identified.person.name}, but you have no access at the moment.`;
    throw new SignInFailed(403, `${text} Ask an administrator of this service.`, 'not accepted');
  }

  /** Ends the sessions of all cookies. */
  async #end(c: Context, seen: SeenOrigin): Promise<void> {
    for (const name of PLACES.door.cookies) {
      const [cookie] = cookieParts(c.req.header('cookie'), [name], seen);
      if (cookie !== undefined) await this.#parts.sessions.end(tokenAt(seen, cookie));
    }
  }

  #cookieIn(c: Context, seen: SeenOrigin): string[] {
    return cookieParts(c.req.header('cookie'), this.#place.cookies, seen);
  }

  #tokenIn(c: Context, seen: SeenOrigin): string | undefined {
    const [cookie] = this.#cookieIn(c, seen);
    return cookie === undefined ? undefined : tokenAt(seen, cookie);
  }
}

/**
 * Refuses a form that was not sent by a page of ours (Fetch Metadata). The session cookie is not sent with forms of
 * other sites, but it is with those of other ports and neighbouring hosts.
 * @throws RequestRefused
 */
export function requireOwnForm(c: Context, { origin }: SeenOrigin): void {
  const site = c.req.header('sec-fetch-site');
  // Browsers leave this header out without TLS or loopback.
  const isOwn = site === undefined ? c.req.header('origin') === origin : site === 'same-origin';
  if (!isOwn) throw new RequestRefused('FORBIDDEN', 'The form was sent by another page. Open this page again.');
}
