import type { Context } from 'hono';
import type { ReplyCode } from './error-codes.ts';

/** No reply may be cached. */
export const NO_STORE = { 'Cache-Control': 'no-store' };

type Status = 400 | 401 | 403 | 404 | 405 | 500 | 503;

/** The body of every error: in the form of GraphQL, so that its clients can read it. */
export function errorBody(
  message: string,
  code: ReplyCode,
  more: object = {},
): { errors: { message: string; extensions: object }[] } {
  return { errors: [{ message, extensions: { code, ...more } }] };
}

/** Replies with one error. */
export function refuse(
  c: Context,
  status: Status,
  code: ReplyCode,
  message: string,
  headers: Record<string, string> = {},
): Response {
  return c.json(errorBody(message, code), status, { ...NO_STORE, ...headers });
}

/** Fails closed while the store does not answer. */
export function unavailable(c: Context): Response {
  return refuse(c, 503, 'SERVICE_UNAVAILABLE', 'The service cannot check keys at the moment. Try again later.', {
    'Retry-After': '1',
  });
}
