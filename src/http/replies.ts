import type { IncomingMessage, ServerResponse } from 'node:http';
import { MIMEType } from 'node:util';
import type { Context, Env, Handler, MiddlewareHandler } from 'hono';
import Negotiator from 'negotiator';
import {
  type ErrorCode,
  type HTTP_ERRORS,
  replyEntry,
  invalidOrigin,
  isBudgetUnit,
  LIMIT_SECONDS,
  type LimitUnit,
  unitName,
} from '../keys/basics/index.ts';
import type { Standing } from '../limits/index.ts';
import { memoized } from './memoized.ts';

/** Every code that a reply can carry, in `errors[].extensions.code`. Codes are stable: clients compare them. */
export type ReplyCode = ErrorCode | keyof typeof HTTP_ERRORS;

/** The HTTP status for a code, on a page or in any answer except GraphQL. */
export function statusOf(code: string): number {
  return replyEntry(code)?.status ?? 400;
}

/** A request that is refused before it is carried out. */
export class RequestRefused extends Error {
  readonly status: number;
  readonly code: ReplyCode;
  /** Headers that the status requires. */
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: ReplyCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.status = statusOf(code);
    this.code = code;
    this.headers = headers;
  }
}

export const GRAPHQL_RESPONSE = 'application/graphql-response+json';
export const JSON_RESPONSE = 'application/json';
/** The media types of GraphQL replies. */
export type ResponseType = typeof GRAPHQL_RESPONSE | typeof JSON_RESPONSE;

const CHARSETS: ReadonlySet<string> = new Set(['utf-8', 'utf8']);
/** Both spellings of the charset, since an accepted range with a parameter only matches a type that has it. */
const RESPONSES = [...CHARSETS].flatMap((charset) =>
  ([JSON_RESPONSE, GRAPHQL_RESPONSE] as const).map((type) => ({ type, text: `${type}; charset=${charset}` })),
);

/**
 * Chooses the media type of a GraphQL reply (GraphQL over HTTP, "Accept"; RFC 9110, section 12.5.1). Without a
 * preference it is `application/json`, which every client can read.
 * @throws RequestRefused 406 if the client accepts neither
 */
export function negotiate(accept: string | undefined): ResponseType {
  return accept === undefined || accept.trim() === '' ? JSON_RESPONSE : negotiateBy(accept);
}

const negotiateBy = memoized(negotiateAnew);

function negotiateAnew(accept: string): ResponseType {
  const best = new Negotiator({ headers: { accept } }).mediaType(RESPONSES.map(({ text }) => text));
  const found = RESPONSES.find(({ text }) => text === best);
  if (!found) throw new RequestRefused('NOT_ACCEPTABLE', `Replies are ${GRAPHQL_RESPONSE} or ${JSON_RESPONSE}.`);
  return found.type;
}

/** The contents of a Content-Type. */
interface MediaType {
  type: string;
  isUtf8: boolean;
}

/** Reads a Content-Type; `type` is empty if it is not a media type. */
export const readMediaType = memoized(readMediaTypeAnew);

function readMediaTypeAnew(contentType: string): MediaType {
  try {
    const { essence, params } = new MIMEType(contentType);
    return { type: essence, isUtf8: CHARSETS.has(params.get('charset')?.toLowerCase() ?? 'utf-8') };
  } catch {
    return { type: '', isUtf8: true };
  }
}

/** Headers of every reply: it must not be cached, or interpreted as another media type. */
export const REPLY_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** The reply to a request, for any server. */
export interface Reply {
  readonly status: number;
  /** The media type of the text, with its charset if needed; undefined for an empty text. */
  readonly type?: string | undefined;
  readonly text: string;
  /** Sent in place of the text. */
  readonly bytes?: Uint8Array<ArrayBuffer> | undefined;
  /** Headers besides Content-Type, Content-Length and those of every reply. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The error in the text, if there is exactly one. */
  readonly error?: { readonly code: ReplyCode; readonly message: string };
}

/** A reply with one error. */
export type ErrorReply = Reply & Required<Pick<Reply, 'error'>>;

/** The body of every error, in the form of GraphQL, so that its clients can read it. */
export function errorBody(
  message: string,
  code: ReplyCode,
  more: object = {},
): { errors: { message: string; extensions: object }[] } {
  return { errors: [{ message, extensions: { code, ...more } }] };
}

/** A reply with one error. */
export function errorReply(code: ReplyCode, message: string, headers?: Reply['headers'], more?: object): ErrorReply {
  const text = JSON.stringify(errorBody(message, code, more));
  return { status: statusOf(code), type: JSON_RESPONSE, text, headers, error: { code, message } };
}

/** A reply that is not an error. */
export function jsonReply(value: object, headers?: Reply['headers']): Reply {
  return { status: 200, type: JSON_RESPONSE, text: JSON.stringify(value), headers };
}

/** The reply while the store does not answer: no key is accepted. */
export function unavailable(): ErrorReply {
  return errorReply('SERVICE_UNAVAILABLE', 'The service cannot check keys at the moment. Try again later.', {
    'Retry-After': '1',
  });
}

/** The reply to a request that failed for a reason that only the log contains. */
export function internalError(requestId: string): ErrorReply {
  return errorReply('INTERNAL_SERVER_ERROR', 'Internal server error', undefined, { requestId });
}

/** A GraphQL reply. */
export function graphqlReply(status: number, type: ResponseType, text: string, headers?: Reply['headers']): Reply {
  return { status, type: `${type}; charset=utf-8`, text, headers };
}

/** A reply for Hono. */
export function respond(c: Context, { status, type, text, bytes, headers }: Reply): Response {
  if (type === undefined) return c.body(null, status as 200, { ...REPLY_HEADERS, ...headers, 'Content-Length': '0' });
  return c.body(bytes ?? text, status as 200, { 'Content-Type': type, ...REPLY_HEADERS, ...headers });
}

/** Answers requests by some work. @param failed the reply after an error or a refusal */
export function answering<E extends Env>(
  work: (c: Context<E>) => Promise<Reply | Response>,
  failed: (error: unknown, c: Context) => Reply,
): Handler<E> {
  return async (c) => {
    try {
      const answered = await work(c);
      return answered instanceof Response ? answered : respond(c, answered);
    } catch (error) {
      return respond(c, failed(error, c));
    }
  };
}

/** Sends a reply through Node, with the same headers in the same order as Hono. */
export function send(outgoing: ServerResponse, reply: Reply): void {
  const { status, text, bytes, type } = reply;
  const headers = reply.headers || type === undefined ? headersOf(reply).flat() : usualHeaders(type);
  // Hono leaves out the length, too, except for an empty text.
  if (outgoing.req.method === 'HEAD' && type !== undefined) return void outgoing.writeHead(status, [...headers]).end();
  const length = Buffer.byteLength(bytes ?? text);
  outgoing.writeHead(status, [...headers, 'content-length', `${length}`]);
  if (bytes) return void outgoing.end(bytes);
  // For ASCII text, Latin-1 gives the same bytes, and Node writes it together with the headers.
  outgoing.end(text, length === text.length ? 'latin1' : 'utf8');
}

/** How long a refused request's body is still received, in milliseconds: some clients read only after sending it. */
const LINGER_MS = 500;

/** Closes the connection of an answered request whose unread body keeps arriving for too long. */
export function endUnread(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.complete) return;
  outgoing.once('finish', () => {
    incoming.resume();
    const timer = setTimeout(() => incoming.destroy(), LINGER_MS).unref();
    incoming.once('close', () => clearTimeout(timer));
  });
}

/** The headers of replies without further ones, by media type, of which there are few. */
const usualHeaders = memoized((type): readonly string[] => headersOf({ type }).flat());

/** The headers of a reply without its length, in the form of `Headers`: in lower case, by name. */
export function headersOf({ type, headers = {} }: Pick<Reply, 'type' | 'headers'>): [name: string, value: string][] {
  const all = Object.entries({ ...headers, ...REPLY_HEADERS, ...(type !== undefined && { 'Content-Type': type }) });
  const entries = all.map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  return entries.toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/** Headers that show a client its limits (draft-ietf-httpapi-ratelimit-headers-11). */
export type RateLimitFields = Readonly<Record<'RateLimit-Policy' | 'RateLimit', string>>;

/** The part of a standing that clients see. */
type ShownStanding = Omit<Standing, 'weight' | 'waitUs'>;

/** The headers for a request's standings: one policy for each unit, named after it, with the fewest requests left. */
export function rateLimitFields(standings: readonly ShownStanding[]): RateLimitFields {
  const [first, ...others] = standings;
  // Most keys have one limit.
  if (first && others.length === 0) return { 'RateLimit-Policy': policyOf(first), RateLimit: serviceLimitOf(first) };
  const closest = new Map<LimitUnit, ShownStanding>();
  for (const standing of standings) {
    const other = closest.get(standing.unit);
    if (!other || standing.remaining < other.remaining) closest.set(standing.unit, standing);
  }
  const shown = [...closest.values()];
  return { 'RateLimit-Policy': shown.map(policyOf).join(', '), RateLimit: shown.map(serviceLimitOf).join(', ') };
}

/** Adds headers about limits to a reply, if there are any. */
export function withFields<Sent extends Reply>(reply: Sent, fields: RateLimitFields | undefined): Sent {
  return fields ? { ...reply, headers: { ...reply.headers, ...fields } } : reply;
}

/** In whole seconds, at least one, since clients wait for that long. */
export function secondsUntil(us: number): number {
  return Math.max(Math.ceil(us / 1_000_000), 1);
}

function policyOf({ count, unit }: ShownStanding): string {
  const window = isBudgetUnit(unit) ? '' : `;w=${LIMIT_SECONDS[unit as keyof typeof LIMIT_SECONDS]}`;
  return `"${unitName(unit)}";q=${count}${window}`;
}

/**
 * `t` is the time until more becomes available. It is omitted for an unused limit, and for a budget, which never
 * refills.
 */
function serviceLimitOf({ unit, remaining, moreIn }: ShownStanding): string {
  const more = moreIn > 0 && moreIn !== Infinity ? `;t=${secondsUntil(moreIn)}` : '';
  return `"${unitName(unit)}";r=${remaining}${more}`;
}

/** Pages of other origins that can call the service from a browser (CORS, in the Fetch standard). */
export interface CorsOptions {
  /** Origins as browsers send them, such as `https://app.example.org`; or `*` for all. Default: none. */
  origins?: readonly string[];
}

type Headers = Readonly<Record<string, string>>;
const NOTHING: Headers = {};

/** Headers of an answer that pages can read in addition to those that are always readable. */
const EXPOSED = 'RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';
const METHODS = 'GET, HEAD, POST';
/** How long a browser can cache the answer to a preflight, in seconds. This is Chromium's maximum. */
const MAX_AGE = '7200';

/**
 * CORS headers of answers. They grant no access by themselves: a page's own script sends a key, and answers never allow
 * credentials that a browser would add (`Access-Control-Allow-Credentials`).
 */
export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #allowsAll: boolean;
  /** Headers for pages of other origins, and for clients that are not browsers. */
  readonly #others: Headers;

  /** @throws RangeError naming the first text that is not an origin */
  constructor({ origins = [] }: CorsOptions = {}) {
    const problem = origins.map(invalidOrigin).find((found) => found !== undefined);
    if (problem !== undefined) throw new RangeError(problem);
    this.#origins = new Set(origins);
    this.#allowsAll = this.#origins.has('*');
    // Answers depend on the origin only if some are allowed and others are not.
    this.#others = origins.length === 0 || this.#allowsAll ? NOTHING : { Vary: 'Origin' };
  }

  /** The headers for an answer to a request with this Origin. */
  headersFor(origin: string | undefined): Headers {
    if (origin === undefined || !(this.#allowsAll || this.#origins.has(origin))) return this.#others;
    const allowed = this.#allowsAll ? '*' : origin;
    return { ...this.#others, 'Access-Control-Allow-Origin': allowed, 'Access-Control-Expose-Headers': EXPOSED };
  }

  /** Adds these headers to a reply. */
  addTo(reply: Reply, origin: string | undefined): Reply {
    const headers = this.headersFor(origin);
    return headers === NOTHING ? reply : { ...reply, headers: { ...reply.headers, ...headers } };
  }

  /**
   * The headers for the answer to a preflight. All requested headers are allowed: the origin decides what a page can
   * do, and clients add headers of their own.
   */
  preflightHeadersFor(origin: string, wantedHeaders: string | undefined): Headers {
    const headers = this.headersFor(origin);
    if (!('Access-Control-Allow-Origin' in headers)) return headers;
    return {
      ...headers,
      'Access-Control-Allow-Methods': METHODS,
      ...(wantedHeaders !== undefined && { 'Access-Control-Allow-Headers': wantedHeaders }),
      'Access-Control-Max-Age': MAX_AGE,
    };
  }
}

/** Hono middleware that answers preflights, which have no key, and adds the headers to all other answers. */
export function corsBy(cors: Cors): MiddlewareHandler {
  return async (c, next) => {
    const origin = c.req.header('origin');
    if (origin !== undefined && isPreflight(c)) {
      const wantedHeaders = c.req.header('access-control-request-headers');
      return c.body(null, 204, { ...REPLY_HEADERS, ...cors.preflightHeadersFor(origin, wantedHeaders) });
    }
    await next();
    for (const [name, value] of Object.entries(cors.headersFor(origin))) c.res.headers.append(name, value);
    return undefined;
  };
}

function isPreflight(c: Context): boolean {
  return c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined;
}
