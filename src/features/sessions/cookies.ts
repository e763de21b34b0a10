import { hash } from 'node:crypto';
import { parse } from 'hono/utils/cookie';
import type { Admission, Admitted, BearerCheck, Received } from '../../http/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { isSecretlessId } from '../../keys/secret/index.ts';
import type { SeenOrigin } from './seen-origin.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** The cookie of a session for pages of ours: a request that another site begins does not have it. */
export const SESSION_COOKIE = 'svc_api_session';
/** Cookie of the same session for a guarded service, which links from other sites also send. */
export const DOOR_COOKIE = 'svc_api_session_lax';

/** The prefix that makes browsers accept a cookie only from this host, on encrypted connections. */
export function prefixFor({ isEncrypted }: SeenOrigin): 'host' | undefined {
  return isEncrypted ? 'host' : undefined;
}

/**
 * The parts of the first of these cookies in a request: the base of the token and, once the key was entered again, the
 * proof of that.
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

/** Parts that admit sessions. */
export interface SessionParts {
  readonly sessions: Sessions;
  readonly check: BearerCheck;
  /** Checks which people without a secret stay signed in by their session; undefined if everyone needs one. */
  readonly people?: { goesOn(apiKey: ApiKey): boolean } | undefined;
}

/**
 * Admits a request of a session as the signed-in person, with their current permissions. Counts as a use of their key,
 * within its limits and networks. A session whose key is no longer accepted ends.
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

/** Checks whether a session belongs to this key: a deleted person who signs in again starts another session. */
function isOf({ principal: { apiKey } }: Admitted, { keyId }: Session, people: SessionParts['people']): boolean {
  return apiKey.id === keyId && (!isSecretlessId(apiKey.publicId) || (people?.goesOn(apiKey) ?? false));
}
