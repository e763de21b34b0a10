/** Settings for edges that follow over NATS, besides HTTP. */
export interface FeedByNats {
  /** Addresses, as `nats://127.0.0.1:4222` or `tls://nats.example.org`. */
  readonly servers: readonly string[];
  /** The absolute path of a file as `nsc` makes it; undefined where NATS asks for none. */
  readonly credentials: { readonly file: string } | undefined;
  /** The first part of the names of its bucket and subjects. */
  readonly name: string;
}

/** The location of a server's keys in NATS, as in its svc-api.yaml. */
export interface NatsFeedOptions {
  /** Addresses, as `nats://127.0.0.1:4222` or `tls://nats.example.org`. */
  servers: readonly string[];
  /** The path of a file of credentials, as `nsc` makes it. */
  credentials?: { file: string };
  /** The prefix of the names of the bucket and subjects. Default: `svc-api`. */
  name?: string;
}

/** The name where none is given, and the form of one. */
export const NATS_NAME = 'svc-api';
export const NATS_NAME_FORM = /^[A-Za-z0-9_-]{1,100}$/;

/** True if a text is the address of a server of NATS. It has no secrets: those are in the file of the credentials. */
export function isNatsAddress(text: string): boolean {
  if (!/^(?:nats|tls):\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, username, password, pathname, search, hash } = new URL(text);
  return hostname !== '' && username + password + search + hash === '' && ['', '/'].includes(pathname);
}
