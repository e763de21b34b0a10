import type { Context } from 'hono';
import { basePath } from 'hono/route';
import { Networks } from '../../keys/networks.ts';
import { invalidPublicUrl } from '../../keys/requests/public-url.ts';
import { HonoHead } from '../received.ts';
import { OAUTH_PATHS } from './metadata.ts';

/** Finds out under which address clients know this service: its issuer (RFC 8414, section 2). */
export class Issuer {
  readonly #configured: string | undefined;
  readonly #trust: Networks;

  /**
   * @param configured the address as it is configured; otherwise it is the one that a request was made to
   * @throws RangeError if that is none, or a network is invalid
   */
  constructor(configured: string | undefined, trust: readonly string[]) {
    const problem = configured === undefined ? undefined : invalidPublicUrl(configured);
    if (problem !== undefined) throw new RangeError(problem);
    this.#configured = configured;
    this.#trust = new Networks(trust);
  }

  /** Whether clients find the metadata of an issuer with a path there (RFC 8414, section 3.1). */
  hasMetadataAt(path: string): boolean {
    const { pathname = '/' } = this.#configured === undefined ? {} : new URL(this.#configured);
    return pathname !== '/' && path === OAUTH_PATHS.metadata + pathname;
  }

  /** The address, such as `https://keys.example.org`, or `https://example.org/keys` for an app under that path. */
  of(c: Context): string {
    if (this.#configured !== undefined) return this.#configured;
    const url = new URL(this.#originOf(c));
    // Another app may have this one under a path of its own.
    url.pathname = basePath(c);
    return url.href.replace(/\/$/, '');
  }

  #originOf(c: Context): string {
    const { protocol, host } = new URL(c.req.url);
    const peer = new HonoHead(c).peer();
    if (peer === undefined || !this.#trust.includes(peer)) return `${protocol}//${host}`;
    const [scheme, name] = [c.req.header('x-forwarded-proto'), c.req.header('x-forwarded-host')];
    const seen = `${scheme === 'http' || scheme === 'https' ? `${scheme}:` : protocol}//${name ?? host}`;
    return isOrigin(seen) ? new URL(seen).origin : `${protocol}//${host}`;
  }
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).href === `${new URL(text).origin}/` && !/[,\s]/.test(text);
}
