import { hash } from 'node:crypto';
import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import {
  admitKey,
  type Admitted,
  type BearerCheck,
  HonoHead,
  isLoopback,
  type RefusedPerson,
  refusedPerson,
  RequestRefused,
} from '../http/index.ts';
import type { Authenticator, Sessions } from '../keys/authentication/index.ts';
import type { OrRefusal } from '../keys/basics/index.ts';
import { OUTCOME_MS, SESSION_MS } from '../keys/repository/index.ts';
import { digestSecret } from '../keys/secret/index.ts';

const NAME = 'svc_api_session';
const FORM_NAME = 'svc_api_form_';
/** The field in which a key is entered again. */
export const KEY_FIELD = 'yourKey';

/** Under which address a browser knows this service. */
export class SeenOrigin {
  readonly origin: string;
  readonly #url: URL;

  /** @param origin such as `https://keys.example.org` */
  constructor(origin: string) {
    this.#url = new URL(origin);
    this.origin = this.#url.origin;
  }

  /** The same without the port, which cookies do not know. */
  get site(): string {
    return `${this.#url.protocol}//${this.#url.hostname}`;
  }

  get isEncrypted(): boolean {
    return this.#url.protocol === 'https:';
  }

  /** Whether nobody can read what is sent: it is encrypted, or does not leave the machine. */
  get isPrivate(): boolean {
    const { hostname } = this.#url;
    return (
      this.isEncrypted ||
      hostname === 'localhost' ||
      hostname.endsWith('.localhost') ||
      isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
    );
  }
}

/**
 * The token of a session in a request; undefined if there is none. It is that of the cookie at this address alone:
 * replayed by another name of the host, or without TLS, that opens nothing.
 */
export function sessionTokenIn(c: Context, seen: SeenOrigin): string | undefined {
  const [cookie] = cookieIn(c, seen);
  return cookie === undefined ? undefined : tokenAt(seen, cookie);
}

/** The parts of the cookie: what the token is made of and, once the key was entered again, what shows that. */
function cookieIn(c: Context, seen: SeenOrigin): string[] {
  return getCookie(c, NAME, prefixFor(seen))?.split('.') ?? [];
}

/** The token of the session that a cookie is for where a browser has got it. */
export function tokenAt({ site }: SeenOrigin, cookie: string): string {
  return hash('sha256', `${site} ${cookie}`, 'base64url');
}

/**
 * Gives a browser the token of a session: kept from scripts, from other sites, and, off this machine, from connections
 * that others can read (RFC 6265bis).
 */
function giveSessionToken(c: Context, token: string, seen: SeenOrigin): void {
  set(c, NAME, { value: token, seen, maxAge: SESSION_MS / 1000 });
}

function takeSessionToken(c: Context, seen: SeenOrigin): void {
  set(c, NAME, { value: '', seen, maxAge: 0 });
}

/** The token of a form that the browser has sent not long ago; undefined if it has none. @param id of the form */
export function formTokenIn(c: Context, id: string, seen: SeenOrigin): string | undefined {
  return getCookie(c, FORM_NAME + id, prefixFor(seen));
}

/** Gives a browser the token of a form again that it has sent, so that it can see what that led to. */
export function giveFormToken(c: Context, id: string, token: string, seen: SeenOrigin): void {
  set(c, FORM_NAME + id, { value: token, seen, maxAge: OUTCOME_MS / 1000 });
}

export function takeFormToken(c: Context, id: string, seen: SeenOrigin): void {
  set(c, FORM_NAME + id, { value: '', seen, maxAge: 0 });
}

function set(
  c: Context,
  name: string,
  { value, seen, maxAge }: { value: string; seen: SeenOrigin; maxAge: number },
): void {
  const prefix = prefixFor(seen);
  setCookie(c, name, value, {
    path: '/',
    httpOnly: true,
    sameSite: 'Strict',
    secure: seen.isEncrypted,
    maxAge,
    ...(prefix && { prefix }),
  });
}

/** Where browsers take it: nobody but this host can have set such a cookie. */
function prefixFor({ isEncrypted }: SeenOrigin): 'host' | undefined {
  return isEncrypted ? 'host' : undefined;
}

/** What signing people in takes. */
export interface SessionAuthParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly check: BearerCheck;
}

/** Somebody who has signed in. */
export interface Entered extends Admitted {
  /** Whether they have entered the key in the last 5 minutes. */
  readonly isFresh: boolean;
}

/** Somebody is accepted, has no session, or is refused although they have one. */
type Entry = OrRefusal<Entered, RefusedPerson> | 'signed out';

/** Accepts people who have signed in, as their key would be. */
export class SessionAuth {
  readonly #parts: SessionAuthParts;

  constructor(parts: SessionAuthParts) {
    this.#parts = parts;
  }

  /** Who makes a request. It counts as a use of their key, within its limits and from its networks. */
  async enter(c: Context, seen: SeenOrigin): Promise<Entry> {
    const { sessions, check } = this.#parts;
    const token = sessionTokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.find(token);
    if (!session) return 'signed out';
    const admission = await check.enterBy(new HonoHead(c), session.secretDigest);
    if (!('refusal' in admission)) return { ...admission, isFresh: sessions.isFresh(session, cookieIn(c, seen)[1]) };
    if (admission.refusal.status !== 401) return { refusal: refusedPerson(admission.refusal) };
    // Somebody may have rotated the key that they have signed in with, and is about to see its new secret.
    if (session.outcomes.every(({ sealed, isAnswer }) => sealed === null || isAnswer)) await this.signOut(c, seen);
    return 'signed out';
  }

  /** Begins a session of somebody who shows a key. */
  async signIn(c: Context, key: string, seen: SeenOrigin): Promise<OrRefusal<Admitted, RefusedPerson>> {
    const admission = await admitKey(c, key, this.#parts.check);
    if ('refusal' in admission) return admission;
    await this.#end(c, seen);
    const { principal, digest } = admission;
    const cookie = await this.#parts.sessions.begin(principal.apiKey.id, digest, (random) => tokenAt(seen, random));
    giveSessionToken(c, cookie, seen);
    return admission;
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
    { digest }: Admitted,
  ): Promise<RefusedPerson | undefined> {
    const { sessions, check } = this.#parts;
    const [cookie] = cookieIn(c, seen);
    if (cookie === undefined || key === '') return { status: 400, message: 'Enter your API key.', headers: {} };
    if (digestSecret(key) !== digest) {
      const admission = await admitKey(c, key, check);
      const message = 'This is not the key that you have signed in with.';
      return 'refusal' in admission ? admission.refusal : { status: 403, message, headers: {} };
    }
    giveSessionToken(c, `${cookie}.${await sessions.noteEntry(tokenAt(seen, cookie))}`, seen);
    return undefined;
  }

  /** Ends a session. If that cannot be written, the browser has the token no more all the same. */
  async signOut(c: Context, seen: SeenOrigin): Promise<void> {
    takeSessionToken(c, seen);
    await this.#end(c, seen);
  }

  /** Whether somebody is signed in. Counts as no use, neither of the session nor of the key. */
  async isSignedIn(c: Context, seen: SeenOrigin): Promise<boolean> {
    const { sessions, authenticator } = this.#parts;
    const token = sessionTokenIn(c, seen);
    const session = token === undefined ? undefined : await sessions.look(token);
    return session !== undefined && (await authenticator.accepts(session.secretDigest));
  }

  async #end(c: Context, seen: SeenOrigin): Promise<void> {
    const token = sessionTokenIn(c, seen);
    if (token !== undefined) await this.#parts.sessions.end(token);
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
  if (!isOwn) throw new RequestRefused(403, 'FORBIDDEN', 'The form was sent by another page. Open this page again.');
}
