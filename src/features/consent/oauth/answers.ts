import type { Context, Handler } from 'hono';
import { answering, type FailureLog, originOf, type Reply, requestIdIn, RequestRefused } from '../../../http/index.ts';
import { isKeysError, ValidationError } from '../../../keys/basics/index.ts';
import { TooManyRequestsError } from '../pace.ts';
import { type OAuthCode, OAuthError } from './oauth-error.ts';
import type { ConsentParts } from './parts.ts';

/** Turns a refusal into an OAuth error. @throws any other error */
export function oauthErrorFor(c: Context, error: unknown, failures: FailureLog): OAuthError {
  if (error instanceof OAuthError) return error;
  if (error instanceof RequestRefused) {
    const status = error.status === 405 || error.status === 413 || error.status === 415 ? error.status : 400;
    const headers = status === 405 ? { Allow: 'POST' } : undefined;
    return new OAuthError('invalid_request', error.message, status, headers);
  }
  if (error instanceof TooManyRequestsError)
    return new OAuthError('temporarily_unavailable', error.message, 429, { 'Retry-After': `${error.retryAfter}` });
  if (isKeysError(error) && error.code === 'CONSENT_OFF')
    return new OAuthError('unauthorized_client', error.message, 404);
  if (error instanceof ValidationError) return new OAuthError('invalid_request', error.message);
  if (!isKeysError(error) || !error.code.startsWith('STORE_')) throw error;
  failures.add(error, requestIdIn(c));
  const message = 'The service cannot reach its key store at the moment. Try again later.';
  return new OAuthError('temporarily_unavailable', message, 503, { 'Retry-After': '1' });
}

/** Answers applications: with a reply, or with an error of OAuth as JSON. */
export function answeringApplications(work: (c: Context) => Promise<Reply>, failures: FailureLog): Handler {
  return answering(work, (error, c) => oauthErrorFor(c, error, failures).reply());
}

/**
 * Runs a request and counts failures. An address with too many failures gets no further ones explained, but valid
 * requests are always served.
 */
export function countingFailures(
  work: (c: Context, parts: ConsentParts) => Promise<Reply>,
  parts: ConsentParts,
): (c: Context) => Promise<Reply> {
  return async (c) => {
    try {
      return await work(c, parts);
    } catch (error) {
      const refused = oauthErrorFor(c, error, parts.failures);
      if (!NO_FAILURES.has(refused.code)) parts.consent.count('failure', originOf(c, parts));
      throw refused;
    }
  };
}

/** Errors about existing codes or keys, or about the store, which do not count as failures. */
const NO_FAILURES: ReadonlySet<OAuthCode> = new Set([
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'has_created_keys',
  'temporarily_unavailable',
]);
