import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';
import {
  type ClientAddress,
  type ClientAddresses,
  peerOf,
  readScheme,
  type Scheme,
  type Sender,
} from './client-address.ts';
import { notesOf, type RequestNotes } from './request-notes.ts';
import type { Charge } from '../keys/authorization/index.ts';
import { sourceOf } from '../keys/basics/index.ts';
import { readAudience } from '../keys/key/index.ts';

/** A request, and what is known about it. */
export interface Received extends Sender {
  /** Its method; undefined if it has none. */
  readonly method?: string | undefined;
  /** The amount that it counts as, if it is not a single request. */
  readonly charge?: Charge | undefined;
  /** Notes on it; undefined if it came through another server than ours. */
  readonly notes?: RequestNotes | undefined;
  /** Its target as its client wrote it, if known. */
  to?: RequestTo | undefined;
  /** True if its key is only exchanged, so that it can be one for another audience: see `ApiKey.audience`. */
  readonly isSubject?: boolean;
}

/** The target of a request. */
export interface RequestTo {
  readonly method: string;
  /** As in `Host`. */
  readonly host: string;
  /** The scheme of the request. */
  readonly scheme: Scheme;
  /** Its path and query. */
  readonly target: string;
}

/** The target for an address. */
export function requestTo(address: string): RequestTo {
  const { protocol, host, pathname } = new URL(address);
  return { method: 'GET', scheme: readScheme(protocol.slice(0, -1)) ?? 'http', host, target: pathname };
}

/** Parts of a path that some servers treat as a separator or resolve to another path. */
const UNCLEAR_PATH = /[\\;]|\/\/|%(?:2e|2f|5c|25|00)/i;

/** The address of a request, for comparison with a key's audience; undefined if it is ambiguous. */
export function addressOf({ scheme, host, target }: RequestTo): string | undefined {
  const path = target.split('?', 1)[0]!;
  return UNCLEAR_PATH.test(path) ? undefined : readAudience(`${scheme}://${host}${path}`);
}

/**
 * The value of a header, several joined with commas like `Headers`; undefined without one.
 * @param rawHeaders names and values alternating, as in Node
 * @param name in lower case
 */
export function headerValue(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const here = rawHeaders[index]!;
    if (here.length !== name.length || here.toLowerCase() !== name) continue;
    value = value === undefined ? rawHeaders[index + 1]! : `${value}, ${rawHeaders[index + 1]!}`;
  }
  return value;
}

/**
 * All values of a header, unchanged.
 * @param rawHeaders names and values alternating, as in Node
 * @param name in lower case
 */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const here = rawHeaders[index]!;
    if (here.length === name.length && here.toLowerCase() === name) values.push(rawHeaders[index + 1]!);
  }
  return values;
}

/**
 * True if percent-encoding is valid UTF-8. Other text is refused before anything else reads it: replacing invalid bytes
 * takes thousands of times as long.
 */
export function isDecodable(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** A request to this server, from Hono or Node, with everything that endpoints read. */
export interface ServedRequest extends Received {
  readonly method: string;
  /** The address that it was sent to, as this server sees it. */
  readonly url: string;
  /** Its path and query as received, without the path that the app is mounted at. */
  readonly target: string;
  /** The query string of its URL with the question mark, percent-encoded as received; empty if there is none. */
  readonly search: string;
  /** Names and values alternating, as in Node; empty without Node. */
  readonly rawHeaders: readonly string[];
  client: ClientAddress | undefined;
  charge: Charge | undefined;
  /** True if the client presented a trusted certificate, if one is requested. */
  readonly hasCertificate: boolean;
  /** Aborted when the server stops, for answers that are held back; undefined on another server than ours. */
  readonly stopping: AbortSignal | undefined;
  /** The whole body. Rejects with `bodyCutOff`, and possibly with `bodyTooLarge` before all of it has arrived. */
  body(): Promise<Uint8Array>;
  /** The request for resolvers, created on first use. */
  readonly webRequest: Request;
  /** Calls `listener` when the client disconnects. @returns a function that unsubscribes */
  onClientGone(listener: () => void): () => void;
}

/** The head of a request, from any source. */
abstract class ServedHead<Incoming extends IncomingMessage | undefined> implements Received {
  client: ClientAddress | undefined = undefined;
  to: RequestTo | undefined = undefined;
  charge: Charge | undefined = undefined;
  /** Node's request; undefined if it came in another way. */
  protected readonly incoming: Incoming;

  constructor(incoming: Incoming) {
    this.incoming = incoming;
  }

  abstract get method(): string;

  abstract header(name: string): string | undefined;

  /** The address that it was sent to, as this server sees it. */
  abstract get url(): string;

  get notes(): RequestNotes | undefined {
    return notesOf(this.incoming);
  }

  peer(): string | undefined {
    return peerOf(this.incoming?.socket);
  }

  /** True if its client presented a trusted certificate, if one is requested. */
  get hasCertificate(): boolean {
    return (this.incoming?.socket as { authorized?: boolean } | undefined)?.authorized === true;
  }

  get rawHeaders(): readonly string[] {
    return this.incoming?.rawHeaders ?? [];
  }

  /** All values of a header, unchanged. @param name in lower case */
  all(name: string): readonly string[] {
    return headerValues(this.rawHeaders, name);
  }
}

/** The head of a request from Node. */
export class NodeHead extends ServedHead<IncomingMessage> {
  get method(): string {
    return this.incoming.method!;
  }

  /** `incoming.headers` drops the second one of many headers. */
  header(name: string): string | undefined {
    return headerValue(this.incoming.rawHeaders, name);
  }

  get url(): string {
    return `${'encrypted' in this.incoming.socket ? 'https' : 'http'}://${this.header('host')}${this.incoming.url}`;
  }
}

/** The head of a request from Hono. */
export class HonoHead extends ServedHead<IncomingMessage | undefined> {
  protected readonly c: Context;

  constructor(c: Context) {
    super(((c.env ?? {}) as { incoming?: IncomingMessage }).incoming);
    this.c = c;
  }

  get method(): string {
    return this.c.req.method;
  }

  header(name: string): string | undefined {
    return this.c.req.header(name);
  }

  get url(): string {
    return this.c.req.url;
  }
}

/** The id of a request, if it has one. */
export function requestIdIn(c: Context): string | undefined {
  return new HonoHead(c).notes?.id;
}

/** The address of a request's client, and the source that its attempts are counted under. */
export function originOf(c: Context, { addresses }: { readonly addresses: ClientAddresses }) {
  const { address } = addresses.of(new HonoHead(c));
  return { address, ...sourceOf(address) };
}
