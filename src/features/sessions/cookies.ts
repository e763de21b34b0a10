import { hash } from 'node:crypto';
import { parse } from 'hono/utils/cookie';
import type { Admission, Admitted, BearerCheck, Received, SeenOrigin } from '../../http/index.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** The cookie of a session for pages of ours: a request that another site begins does not have it. */
export const SESSION_COOKIE = 'svc_api_session';
/** That of the same session for the door of a guarded service: a link of another site has it. */
export const DOOR_COOKIE = 'svc_api_session_lax';

/** How browsers keep a cookie that nobody but this host can have set, where they know that. */
export function prefixFor({ isEncrypted }: SeenOrigin): 'host' | undefined {
  return isEncrypted ? 'host' : undefined;
}

/**
 * The parts of the first of these cookies in a request: what the token is made of and, once the key was entered again,
 * what shows that.
 * @param cookies the value of `Cookie`
 */
export function cookieParts(cookies: string | undefined, names: readonly string[], seen: SeenOrigin): string[] {
  for (const name of names) {
    const full = prefixFor(seen) ? `__Host-${name}` : name;
    const value = cookies?.includes(full) ? parse(cookies, full)[full] : undefined;
    if (value !== undefined) return value.split('.');
  }
  return [];
}

/**
 * The token of the session that a cookie is for where a browser has got it: replayed at another host, or without TLS,
 * that opens nothing.
 */
export function tokenAt({ site }: SeenOrigin, cookie: string): string {
  return hash('sha256', `${site} ${cookie}`, 'base64url');
}

/** What a session is admitted by. */
export interface SessionParts {
  readonly sessions: Sessions;
  readonly check: BearerCheck;
  /** Tells who goes on by a session alone of those who have signed in without a key; undefined for nobody. */
  readonly people?: { goesOn(issuer: string): boolean } | undefined;
}

/**
 * Who makes a request of a session: whoever has signed in, as they may act now. It counts as a use of their key, within
 * its limits and from its networks. A session whose key is no longer accepted ends.
 * @returns undefined if there is no such session
 */
export async function admitSession(
  request: Received,
  token: string,
  { sessions, check, people }: SessionParts,
): Promise<{ readonly session: Session; readonly admission: Admission } | undefined> {
  const session = await sessions.find(token);
  if (!session) return undefined;
  const admission = await check.enterBy(request, session.secretDigest);
  if ('refusal' in admission && admission.refusal.status !== 401) return { session, admission };
  if (!('refusal' in admission) && isOf(admission, session, people)) return { session, admission };
  await sessions.end(token);
  return undefined;
}

/** Whether a session is that of a key as it is now: whoever was deleted, and has signed in anew, begins another one. */
function isOf({ principal: { apiKey } }: Admitted, { keyId }: Session, people: SessionParts['people']): boolean {
  return apiKey.id === keyId && (apiKey.person === null || (people?.goesOn(apiKey.person.issuer) ?? false));
}
