import type { Context } from 'hono';
import { basePath } from 'hono/route';
import { invalidPublicUrl, Networks } from '../keys/basics/index.ts';
import { isLoopbackHost, saidScheme } from './client-address.ts';
import { HonoHead, requestTo, type RequestTo, type ServedRequest } from './received.ts';

/** The path of the metadata of a protected resource (RFC 9728, section 3). */
export const PROTECTED_RESOURCE = '/.well-known/oauth-protected-resource';

/** The parts of a request that reveal the address it was sent to. */
type Arrived = Pick<ServedRequest, 'url' | 'peer' | 'header'>;

/** Determines the address under which clients know this service: its issuer (RFC 8414, section 2). */
export class Issuer {
  readonly #configured: string | undefined;
  readonly #trust: Networks;

  /**
   * @param configured the address from the configuration; default: the one that a request was sent to
   * @throws RangeError if the address or a network is invalid
   */
  constructor(configured: string | undefined, trust: readonly string[]) {
    const problem = configured === undefined ? undefined : invalidPublicUrl(configured);
    if (problem !== undefined) throw new RangeError(problem);
    this.#configured = configured;
    this.#trust = new Networks(trust);
  }

  /** The path of the configured address; `/` if it has none, or none is configured. */
  get path(): string {
    return this.#configured === undefined ? '/' : new URL(this.#configured).pathname;
  }

  /** The address, such as `https://keys.example.org`, or `https://example.org/keys` for an app under that path. */
  of(c: Context): string {
    if (this.#configured !== undefined) return this.#configured;
    const url = new URL(this.seenBy(new HonoHead(c)));
    // Another app may have mounted this one at a path of its own.
    url.pathname = basePath(c);
    return url.href.replace(/\/$/, '');
  }

  /**
   * The target of a request for one of the service's own endpoints, as its client knows it. Undefined if only the
   * client states it and it is not this machine: it could be made up.
   */
  ownOf(request: Arrived, endpoint: string): RequestTo | undefined {
    const to = this.to(request, endpoint);
    return this.#configured !== undefined || isLoopbackHost(to.host) ? to : undefined;
  }

  /** The target of a request for one of the service's own endpoints, as its client wrote it. */
  to(request: Arrived, endpoint: string): RequestTo {
    if (this.#configured !== undefined) return requestTo(this.#configured + endpoint);
    return requestTo(this.seenBy(request) + new URL(request.url).pathname);
  }

  /** True if a request was sent to the host of the service, and not to one that it guards. */
  isOwn(request: Arrived): boolean {
    return this.#configured === undefined || new URL(this.#configured).origin === this.seenBy(request);
  }

  /** The origin that a request was sent to, as its client wrote it. */
  seenBy(request: Arrived): string {
    const { protocol, host } = new URL(request.url);
    const peer = request.peer();
    if (peer === undefined || !this.#trust.includes(peer)) return `${protocol}//${host}`;
    const [scheme, name] = [saidScheme(request), request.header('x-forwarded-host')];
    const seen = `${scheme === undefined ? protocol : `${scheme}:`}//${name ?? host}`;
    return isOrigin(seen) ? new URL(seen).origin : `${protocol}//${host}`;
  }
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).href === `${new URL(text).origin}/` && !/[,\s]/.test(text);
}
