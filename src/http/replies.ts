import type { Context } from 'hono';

type Status = 400 | 401 | 403 | 404 | 405 | 500 | 503;

/** The body of every refusal: as GraphQL has it, so that its clients can read it. */
export function errorBody(message: string, code: string, more: object = {}): { errors: { message: string; extensions: object }[] } {
  return { errors: [{ message, extensions: { code, ...more } }] };
}

/** Answers with one error. Such answers are never kept by a cache. */
export function refuse(c: Context, status: Status, code: string, message: string, headers: Record<string, string> = {}): Response {
  return c.json(errorBody(message, code), status, { 'Cache-Control': 'no-store', ...headers });
}

/** The store does not answer: the door stays shut until it does. */
export function unavailable(c: Context): Response {
  return refuse(c, 503, 'SERVICE_UNAVAILABLE', 'The service cannot check keys at the moment. Try again later.', { 'Retry-After': '1' });
}
