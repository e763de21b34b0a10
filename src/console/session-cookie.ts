import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { OUTCOME_MS, SESSION_MS } from '../keys/repository/index.ts';
import { isLoopback } from '../http/index.ts';

const NAME = 'svc_api_session';
const FORM_NAME = 'svc_api_form_';

/** Under which address a browser knows this service. */
export class SeenOrigin {
  readonly origin: string;
  readonly #url: URL;

  /** @param origin such as `https://keys.example.org` */
  constructor(origin: string) {
    this.#url = new URL(origin);
    this.origin = this.#url.origin;
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

/** The token of a session in a request; undefined if there is none. */
export function sessionTokenIn(c: Context, seen: SeenOrigin): string | undefined {
  return getCookie(c, NAME, prefixFor(seen));
}

/**
 * Gives a browser the token of a session: kept from scripts, from other sites, and, off this machine, from connections
 * that others can read (RFC 6265bis).
 */
export function giveSessionToken(c: Context, token: string, seen: SeenOrigin): void {
  set(c, NAME, { value: token, seen, maxAge: SESSION_MS / 1000 });
}

/** Takes the token of a session back. */
export function takeSessionToken(c: Context, seen: SeenOrigin): void {
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

/** Takes the token of a form back. */
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
