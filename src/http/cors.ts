import type { Context, MiddlewareHandler } from 'hono';
import { invalidOrigin } from '../keys/origin.ts';
import { type Reply, REPLY_HEADERS } from './replies.ts';

/** Which pages of other origins may call the service from a browser (CORS, as the Fetch standard has it). */
export interface CorsOptions {
  /** Each as browsers send it, such as `https://app.example.org`; or `*` for all. Default: none. */
  origins?: readonly string[];
}

type Headers = Readonly<Record<string, string>>;
const NOTHING: Headers = {};

/** What pages may read of an answer besides the headers that they always may. */
const EXPOSED = 'RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';
const METHODS = 'GET, HEAD, POST';
/** How long a browser may remember what a preflight was told, in seconds. Chromium takes no more. */
const MAX_AGE = '7200';

/**
 * What browsers are told about pages of other origins. Nobody gets in by it: a key is sent by the page's own script, so
 * answers never allow what a browser would send by itself (`Access-Control-Allow-Credentials`).
 */
export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #allowsAll: boolean;
  /** For pages whose origin is not allowed, and for clients that are no browsers. */
  readonly #others: Headers;

  /** @throws RangeError naming the first text that is not an origin */
  constructor({ origins = [] }: CorsOptions = {}) {
    const problem = origins.map(invalidOrigin).find((found) => found !== undefined);
    if (problem !== undefined) throw new RangeError(problem);
    this.#origins = new Set(origins);
    this.#allowsAll = this.#origins.has('*');
    // What is answered depends on the origin only where some are allowed and others are not.
    this.#others = origins.length === 0 || this.#allowsAll ? NOTHING : { Vary: 'Origin' };
  }

  /** The headers for an answer to a request with this Origin. */
  headersFor(origin: string | undefined): Headers {
    if (origin === undefined || !(this.#allowsAll || this.#origins.has(origin))) return this.#others;
    const allowed = this.#allowsAll ? '*' : origin;
    return { ...this.#others, 'Access-Control-Allow-Origin': allowed, 'Access-Control-Expose-Headers': EXPOSED };
  }

  /** A reply with these headers. */
  addTo(reply: Reply, origin: string | undefined): Reply {
    const headers = this.headersFor(origin);
    return headers === NOTHING ? reply : { ...reply, headers: { ...reply.headers, ...headers } };
  }

  /**
   * The headers for the answer to a preflight. All headers that it asks for are allowed: what a page may do is decided
   * by its origin, and clients add headers of their own.
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
