import type { Context } from 'hono';
import { Networks } from '../../keys/networks.ts';
import { printable } from '../../keys/text.ts';
import { HonoHead } from '../hono-head.ts';

/** Finds out under which origin clients know this service: its issuer (RFC 8414, section 2). */
export class Issuer {
  readonly #origin: string | undefined;
  readonly #trust: Networks;

  /**
   * @param origin as it is configured; otherwise it is the one that a request was made to
   * @throws RangeError if that is no origin, or a network is invalid
   */
  constructor(origin: string | undefined, trust: readonly string[]) {
    if (origin !== undefined && !(isOrigin(origin) && new URL(origin).origin === origin))
      throw new RangeError(`"${printable(origin)}" is no origin: write it as https://keys.example.org.`);
    this.#origin = origin;
    this.#trust = new Networks(trust);
  }

  /** The origin, such as `https://keys.example.org`. */
  of(c: Context): string {
    if (this.#origin !== undefined) return this.#origin;
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
