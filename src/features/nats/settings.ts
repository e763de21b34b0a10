/** Settings for edges that follow over NATS, besides HTTP. */
export interface FeedByNats {
  /** Addresses, as `nats://127.0.0.1:4222` or `tls://nats.example.org`. */
  readonly servers: readonly string[];
  /** The absolute path of a credentials file from `nsc`; undefined if NATS needs none. */
  readonly credentials: { readonly file: string } | undefined;
  /** The prefix of the names of the bucket and subjects. */
  readonly name: string;
}

/** The location of a server's keys in NATS, as in its svc-api.yaml. */
export interface NatsFeedOptions {
  /** Addresses, as `nats://127.0.0.1:4222` or `tls://nats.example.org`. */
  servers: readonly string[];
  /** The path of a credentials file from `nsc`. */
  credentials?: { file: string };
  /** The prefix of the names of the bucket and subjects. Default: `svc-api`. */
  name?: string;
}

/** The default name, and the format of names. */
export const NATS_NAME = 'svc-api';
export const NATS_NAME_FORM = /^[A-Za-z0-9_-]{1,100}$/;

/** True for the address of a NATS server without credentials, which belong in their file. */
export function isNatsAddress(text: string): boolean {
  if (!/^(?:nats|tls):\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, username, password, pathname, search, hash } = new URL(text);
  return hostname !== '' && username + password + search + hash === '' && ['', '/'].includes(pathname);
}
