import type { ServerResponse } from 'node:http';
import type { Context } from 'hono';
import type { ReplyCode } from './error-codes.ts';
import { JSON_RESPONSE, type ResponseType } from './media-type.ts';
import { memoized } from './memoized.ts';

/** What every reply has: it may not be cached, and nobody may take it for another type than it says. */
export const REPLY_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** What a request is answered, whichever server it came by. */
export interface Reply {
  readonly status: number;
  /** The media type of the text, with its charset if that is to be said. */
  readonly type: string;
  readonly text: string;
  /** Headers besides Content-Type, Content-Length and those that every reply has. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The body of every error: in the form of GraphQL, so that its clients can read it. */
export function errorBody(
  message: string,
  code: ReplyCode,
  more: object = {},
): { errors: { message: string; extensions: object }[] } {
  return { errors: [{ message, extensions: { code, ...more } }] };
}

/** The code of a reply with one error. */
export function codeOf({ text }: Reply): ReplyCode {
  return (JSON.parse(text) as { errors: [{ extensions: { code: ReplyCode } }] }).errors[0].extensions.code;
}

/** A reply with one error. */
export function errorReply(
  status: number,
  code: ReplyCode,
  message: string,
  headers?: Readonly<Record<string, string>>,
): Reply {
  return { status, type: JSON_RESPONSE, text: JSON.stringify(errorBody(message, code)), headers };
}

/** A reply that is no error. */
export function jsonReply(value: object, headers?: Reply['headers']): Reply {
  return { status: 200, type: JSON_RESPONSE, text: JSON.stringify(value), headers };
}

/** The reply while the store does not answer: nobody gets in. */
export function unavailable(): Reply {
  return errorReply(503, 'SERVICE_UNAVAILABLE', 'The service cannot check keys at the moment. Try again later.', {
    'Retry-After': '1',
  });
}

/** The reply to a request that failed for a reason which only the log may tell. */
export function internalError(requestId: string): Reply {
  const text = JSON.stringify(errorBody('Internal server error', 'INTERNAL_SERVER_ERROR', { requestId }));
  return { status: 500, type: JSON_RESPONSE, text };
}

/** A GraphQL reply. */
export function graphqlReply(status: number, type: ResponseType, text: string, headers?: Reply['headers']): Reply {
  return { status, type: `${type}; charset=utf-8`, text, headers };
}

/** A reply as Hono sends it. */
export function respond(c: Context, { status, type, text, headers }: Reply): Response {
  return c.body(text, status as 200, { 'Content-Type': type, ...REPLY_HEADERS, ...headers });
}

/** Sends a reply by Node, with the same headers in the same order. */
export function send(outgoing: ServerResponse, reply: Reply): void {
  const { status, text, type } = reply;
  const headers = reply.headers ? headersOf(reply).flat() : usualHeaders(type);
  // Hono leaves the length out, too.
  if (outgoing.req.method === 'HEAD') return void outgoing.writeHead(status, [...headers]).end();
  const length = Buffer.byteLength(text);
  outgoing.writeHead(status, [...headers, 'content-length', `${length}`]);
  // For ASCII text, Latin-1 gives the same bytes, and Node writes it together with the headers.
  outgoing.end(text, length === text.length ? 'latin1' : 'utf8');
}

/** The headers of replies that have no others, by their media types, which are few. */
const usualHeaders = memoized((type): readonly string[] => headersOf({ type }).flat());

/** The headers of a reply without its length, as `Headers` has them: in lower case, by name. */
export function headersOf({ type, headers = {} }: Pick<Reply, 'type' | 'headers'>): [name: string, value: string][] {
  const all = Object.entries({ ...headers, ...REPLY_HEADERS, 'Content-Type': type });
  const entries = all.map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  return entries.toSorted(([one], [other]) => (one < other ? -1 : 1));
}
