import type { Context } from 'hono';
import { setCookie } from 'hono/cookie';
import {
  admitKey,
  type Admitted,
  type BearerCheck,
  HonoHead,
  type RefusedPerson,
  refusedPerson,
  RequestRefused,
  type SeenOrigin,
} from '../../http/index.ts';
import type { Authenticator } from '../../keys/authentication/index.ts';
import type { OrRefusal } from '../../keys/basics/index.ts';
import { digestSecret } from '../../keys/secret/index.ts';
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
} from '../sessions/index.ts';

/** The field in which a key is entered again. */
export const KEY_FIELD = 'yourKey';

/** The token of the session in a request to a page of ours; undefined if there is none. */
export function sessionTokenIn(c: Context, seen: SeenOrigin): string | undefined {
  const [cookie] = cookieParts(c.req.header('cookie'), [SESSION_COOKIE], seen);
  return cookie === undefined ? undefined : tokenAt(seen, cookie);
}

/**
 * Gives a browser what its session's token is made of: kept from scripts, and, off this machine, from connections that
 * others can read (RFC 6265bis).
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

/** What those are told who have no key that they could enter again. */
const SIGN_IN_AGAIN =
  'You have signed in more than 5 minutes ago. Sign in again, and send this again: it makes a secret.';

/** What signing people in takes. */
export interface SessionAuthParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly check: BearerCheck;
  /** Signs people in who have no key; undefined where everybody shows one. */
  readonly people?: PeopleSignIn | undefined;
}

/** Somebody who has signed in. */
export interface Entered extends Admitted {
  /** Whether they have entered the key, or signed in without one, in the last 5 minutes. */
  readonly isFresh: boolean;
}

/** Somebody is accepted, has no session, or is refused although they have one. */
type Entry = OrRefusal<Entered, RefusedPerson> | 'signed out';

/** The cookies of a session, in the order in which they are read. */
const COOKIES = { pages: [SESSION_COOKIE], door: [DOOR_COOKIE, SESSION_COOKIE] } as const;

/** Takes from a browser what it has of a session. */
function takeCookies(c: Context, seen: SeenOrigin): void {
  for (const name of COOKIES.door)
    if (cookieParts(c.req.header('cookie'), [name], seen).length > 0)
      setOwnCookie(c, name, { value: '', seen, maxAge: 0 });
}

/** Accepts people who have signed in, as their key would be. */
export class SessionAuth {
  readonly #parts: SessionAuthParts;
  readonly #names: readonly string[];

  /** @param of the pages of ours, or of the door of a guarded service: a session that is begun there is for both */
  constructor(parts: SessionAuthParts, of: keyof typeof COOKIES = 'pages') {
    this.#parts = parts;
    this.#names = COOKIES[of];
  }

  /**
   * Who makes a request: whom a trusted proxy says, whatever session there is, otherwise who has a session: see
   * `admitSession`.
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
    if ('refusal' in admission) return { refusal: refusedPerson(admission.refusal) };
    return { ...admission, isFresh: this.#parts.sessions.isFresh(session, this.#cookieIn(c, seen)[1]) };
  }

  /**
   * Signs somebody in whom a provider has identified.
   * @throws SignInFailed; KeysError STORE_…
   */
  async signInAs(c: Context, identified: Identified, seen: SeenOrigin): Promise<Admitted> {
    const admission = await this.#admit(c, identified);
    await this.begin(c, admission, seen);
    return admission;
  }

  /**
   * Begins a session of somebody who shows a key: of the key that says who they are, which is all that a session
   * knows of a person.
   */
  async signIn(c: Context, key: string, seen: SeenOrigin): Promise<OrRefusal<Admitted, RefusedPerson>> {
    const admission = await admitKey(c, key, this.#parts.check);
    if (!('refusal' in admission)) await this.begin(c, admission, seen);
    return admission;
  }

  /** Begins a session, however it is known of whom; the one that the browser had ends. */
  async begin(c: Context, { principal, digest }: Admitted, seen: SeenOrigin): Promise<void> {
    await this.#end(c, seen);
    const cookie = await this.#parts.sessions.begin(principal.apiKey.id, digest, (random) => tokenAt(seen, random));
    const isKnown = cookieParts(c.req.header('cookie'), [DOOR_COOKIE], seen).length > 0;
    for (const name of isKnown ? COOKIES.door : this.#names) giveSession(c, name, cookie, seen);
  }

  /**
   * Takes the key again of somebody who has signed in. The session goes on, so that a form that is sent twice is done
   * once; what shows that the key was entered is new, so that a cookie that was stolen before does not have it.
   * @param key as they entered it
   * @returns why it is not accepted
   */
  async enterAgain(
    c: Context,
    key: string,
    seen: SeenOrigin,
    { digest, principal }: Admitted,
  ): Promise<RefusedPerson | undefined> {
    const { sessions, check } = this.#parts;
    if (principal.apiKey.person) return { status: 403, message: SIGN_IN_AGAIN, headers: {} };
    const [cookie] = this.#cookieIn(c, seen);
    if (cookie === undefined || key === '') return { status: 400, message: 'Enter your API key.', headers: {} };
    if (digestSecret(key) !== digest) {
      const admission = await admitKey(c, key, check);
      const message = 'This is not the key that you have signed in with.';
      return 'refusal' in admission ? admission.refusal : { status: 403, message, headers: {} };
    }
    giveSession(c, SESSION_COOKIE, `${cookie}.${await sessions.noteEntry(tokenAt(seen, cookie))}`, seen);
    return undefined;
  }

  /** Ends a session. If that cannot be written, the browser has its cookies no more all the same. */
  async signOut(c: Context, seen: SeenOrigin): Promise<void> {
    takeCookies(c, seen);
    await this.#end(c, seen);
  }

  /** Whether somebody is signed in. Counts as no use, neither of the session nor of the key. */
  async isSignedIn(c: Context, seen: SeenOrigin): Promise<boolean> {
    if (this.isByProxy(c, seen)) return true;
    const { sessions, authenticator } = this.#parts;
    const token = this.#tokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.look(token);
    return session !== undefined && (await authenticator.accepts(session.secretDigest, session.keyId));
  }

  /** Whether a trusted proxy says who makes a request, and so signs them out, too. @throws SignInFailed */
  isByProxy(c: Context, seen: SeenOrigin): boolean {
    return this.#parts.people?.inHeaders(new HonoHead(c), seen) !== undefined;
  }

  /**
   * Lets somebody in whom a proxy has identified. They have a session beside that, for what their forms lead to: one of
   * somebody else ends, and has sent no form of theirs.
   */
  async #enterAs(c: Context, seen: SeenOrigin, identified: Identified): Promise<Entry> {
    const admission = await this.#admit(c, identified);
    const token = this.#tokenIn(c, seen);
    const session = token === undefined ? undefined : await this.#parts.sessions.find(token);
    const isOwn = session?.keyId === admission.principal.apiKey.id && session.secretDigest === admission.digest;
    if (session && !isOwn && c.req.method === 'POST') return 'signed out';
    if (!isOwn) await this.begin(c, admission, seen);
    return { ...admission, isFresh: true };
  }

  /** @throws SignInFailed for somebody who is disabled, or may not come from there; KeysError STORE_… */
  async #admit(c: Context, identified: Identified): Promise<Admitted> {
    const { people, check } = this.#parts;
    const { digest } = await people!.signIn(identified);
    const admission = await check.enterBy(new HonoHead(c), digest);
    if (!('refusal' in admission)) return admission;
    const { status, message } = refusedPerson(admission.refusal);
    if (admission.refusal.status !== 401) throw new SignInFailed(status === 503 ? 503 : 403, message, `${status}`);
    const text = `You are signed in as ${identified.person.name}, and may not enter now.`;
    throw new SignInFailed(403, `${text} Ask an administrator of this service.`, 'not accepted');
  }

  /** Whichever cookie has it. */
  async #end(c: Context, seen: SeenOrigin): Promise<void> {
    for (const name of COOKIES.door) {
      const [cookie] = cookieParts(c.req.header('cookie'), [name], seen);
      if (cookie !== undefined) await this.#parts.sessions.end(tokenAt(seen, cookie));
    }
  }

  #cookieIn(c: Context, seen: SeenOrigin): string[] {
    return cookieParts(c.req.header('cookie'), this.#names, seen);
  }

  #tokenIn(c: Context, seen: SeenOrigin): string | undefined {
    const [cookie] = this.#cookieIn(c, seen);
    return cookie === undefined ? undefined : tokenAt(seen, cookie);
  }
}

/**
 * Refuses a form that no page of ours has sent (Fetch Metadata). The cookie of a session does not come with those of
 * other sites, but with those of other ports and of neighbouring hosts.
 * @throws RequestRefused
 */
export function requireOwnForm(c: Context, { origin }: SeenOrigin): void {
  const site = c.req.header('sec-fetch-site');
  // Browsers leave it out where there is neither TLS nor loopback.
  const isOwn = site === undefined ? c.req.header('origin') === origin : site === 'same-origin';
  if (!isOwn) throw new RequestRefused('FORBIDDEN', 'The form was sent by another page. Open this page again.');
}
