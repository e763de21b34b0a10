import type { RequestTo } from '../../http/index.ts';
import { isLoopbackHost } from '../../keys/basics/index.ts';

/** The address under which a browser knows a service. */
export class SeenOrigin {
  readonly origin: string;
  readonly #url: URL;

  /** @param origin such as `https://keys.example.org` */
  constructor(origin: string) {
    this.#url = new URL(origin);
    this.origin = this.#url.origin;
  }

  /** The origin without the port, which cookies ignore. */
  get site(): string {
    return `${this.#url.protocol}//${this.#url.hostname}`;
  }

  /** The host, with the port unless it is the default. */
  get host(): string {
    return this.#url.host;
  }

  get isEncrypted(): boolean {
    return this.#url.protocol === 'https:';
  }

  /** True if requests are encrypted, or do not leave the machine. */
  get isPrivate(): boolean {
    const { hostname } = this.#url;
    return this.isEncrypted || hostname.endsWith('.localhost') || isLoopbackHost(hostname);
  }
}

/** The address that a browser has opened; undefined if it is invalid. */
export function seenOrigin({ scheme, host }: RequestTo): SeenOrigin | undefined {
  const origin = `${scheme}://${host}`;
  return URL.canParse(origin) ? new SeenOrigin(origin) : undefined;
}
