import type { Context } from 'hono';
import type { ReplyCode } from './error-codes.ts';

/** No answer is ever kept by a cache. */
export const NO_STORE = { 'Cache-Control': 'no-store' };

type Status = 400 | 401 | 403 | 404 | 405 | 500 | 503;

/** The body of every refusal: as GraphQL has it, so that its clients can read it. */
export function errorBody(
  message: string,
  code: ReplyCode,
  more: object = {},
): { errors: { message: string; extensions: object }[] } {
  return { errors: [{ message, extensions: { code, ...more } }] };
}

/** Answers with one error. */
export function refuse(
  c: Context,
  status: Status,
  code: ReplyCode,
  message: string,
  headers: Record<string, string> = {},
): Response {
  return c.json(errorBody(message, code), status, { ...NO_STORE, ...headers });
}

/** The store does not answer: the door stays shut until it does. */
export function unavailable(c: Context): Response {
  return refuse(c, 503, 'SERVICE_UNAVAILABLE', 'The service cannot check keys at the moment. Try again later.', {
    'Retry-After': '1',
  });
}
