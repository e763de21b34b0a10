import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, type Server, type Socket, SocketAddress } from 'node:net';
import type { Context } from 'hono';
import type { HeaderValues } from './credentials.ts';
import type { Charge } from '../keys/authorization/index.ts';
import { LOOPBACK, Networks, sourceOf } from '../keys/basics/index.ts';
import { readAudience } from '../keys/key/index.ts';

/**
 * Keeps values computed from texts, since clients send few different ones. When there are too many, all are
 * forgotten: tracking the least recently used would take longer than computing.
 * @param compute its errors are not kept
 * @param max how many are kept
 */
export function memoized<Value extends object | string | boolean>(
  compute: (text: string) => Value,
  max = 100,
): (text: string) => Value {
  const known = new Map<string, Value>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = compute(text);
    if (known.size >= max) known.clear();
    known.set(text, value);
    return value;
  };
}

/** The name and kind of an operation. */
export interface NamedOperation {
  readonly isMutation: boolean;
  /** The name in its document; undefined without one. */
  readonly name: string | undefined;
}

/** The log's record of a request at level debug: which part decided what, and how long each stage took. */
export class RequestDetails {
  /** The public id of the key, once that is known. */
  prefix: string | undefined = undefined;
  /** The source of the key: the cache of accepted secrets, or the store. */
  keyFrom: 'cache' | 'store' | undefined = undefined;
  /** The route that decides about it. */
  route: string | undefined = undefined;
  readonly permissions = new Set<string>();
  /** The error code of the answer, if it has one. */
  code: string | undefined = undefined;
  /** Why it is refused, and the permissions that it lacks. */
  reason: object | undefined = undefined;
  /** In milliseconds, in order. */
  readonly stages: Record<string, number> = {};
  #last = performance.now();

  /** Records the end of a stage, and starts the next one. */
  ended(stage: string): void {
    const now = performance.now();
    this.stages[stage] = Math.round(((this.stages[stage] ?? 0) + now - this.#last) * 1000) / 1000;
    this.#last = now;
  }
}

/** Notes on a request while it is answered. */
export interface RequestNotes {
  /** Its id, sent as `X-Request-Id` with the answer. */
  readonly id: string;
  /** The id of the key that makes it, once that is known. */
  keyId: string | undefined;
  /** The client's address, if it is known in another way than by the usual headers. */
  client: ClientAddress | undefined;
  /** Trace headers for an upstream, names and values alternating; undefined for none. */
  readonly trace: readonly string[] | undefined;
  /** The name of the upstream that it is passed on to. */
  upstream: string | undefined;
  /** Further notes for a log at level debug. */
  readonly details: RequestDetails | undefined;
  /** The number of errors in a GraphQL answer. */
  errors: number;
  /** Records the GraphQL operation. @param token the secret that was sent, which a name must not contain */
  noteOperation(operation: NamedOperation, token: string | undefined): void;
  /** Records when it waited for the store to find the key, in milliseconds of `performance.now()`. */
  noteStoreTime(from: number, to: number): void;
}

const NOTES = Symbol('notes');
type Noted = IncomingMessage & { [NOTES]?: RequestNotes };

/** Attaches notes to a request of Node. A WeakMap of all would cost more. */
export function keepNotes(incoming: IncomingMessage, notes: RequestNotes): void {
  (incoming as Noted)[NOTES] = notes;
}

/** The notes of a request; undefined if it came through another server than ours. */
export function notesOf(incoming: IncomingMessage | undefined): RequestNotes | undefined {
  const noted: Noted | undefined = incoming;
  return noted?.[NOTES];
}

/** A hop recorded by a proxy: an address, or undefined for anything else. */
type Hop = string | undefined;

/** `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]` or `[2001:db8::1]:80`: the part without the port. */
const NODE_FORM = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d{1,5})?$/i;
/** One parameter after another, without a gap. */
const PARAMETER = /\s*([!#$%&'*+.^_`|~\da-z-]+)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~\da-z-]+))\s*(?:;|$)/giy;

/** The hops in `X-Forwarded-For`, nearest first. Some proxies quote entries with a port. */
function* hopsInXForwardedFor(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readNode(/^"([^"\\]*)"$/.exec(entry)?.[1] ?? entry);
}

/** The hops in `Forwarded` (RFC 7239), nearest first. Obfuscated ones are undefined. */
function* hopsInForwarded(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readElement(entry);
}

/**
 * The entries of a list, from the end: the client can write anything before an entry, which must not change how the
 * entry is read. Empty ones are left out (RFC 9110, section 5.6.1).
 */
function* entriesOf(list: string): Generator<string> {
  let end = list.length;
  let inQuotes = false;
  for (let index = list.length - 1; index >= -1; index -= 1) {
    if (list[index] === '"') inQuotes = !inQuotes;
    if (index >= 0 && (list[index] !== ',' || inQuotes)) continue;
    const entry = list.slice(index + 1, end).trim();
    if (entry !== '') yield entry;
    end = index;
  }
}

function readElement(element: string): Hop {
  const node = parameterIn(element, 'for');
  return node === undefined ? undefined : readNode(node);
}

/** A parameter of an element of `Forwarded`; undefined unless it occurs once and the element has only parameters. */
function parameterIn(element: string, name: string): string | undefined {
  const parameters = Array.from(element.matchAll(PARAMETER));
  const [found, ...others] = parameters.filter(([, each]) => each!.toLowerCase() === name);
  const isWhole = parameters.map(([text]) => text).join('') === element;
  return isWhole && found && others.length === 0 ? (found[2] ?? found[3]!) : undefined;
}

/** A scheme of requests. */
export type Scheme = 'http' | 'https';
const SCHEMES: ReadonlyMap<string, Scheme> = new Map([
  ['http', 'http'],
  ['https', 'https'],
  // Some proxies write WebSocket schemes for a handshake.
  ['ws', 'http'],
  ['wss', 'https'],
]);

/** The scheme that a proxy names; undefined for any other text. */
export function readScheme(text: string): Scheme | undefined {
  return SCHEMES.get(text.trim().toLowerCase());
}

/**
 * The scheme by which a request reached the nearest proxy, from `X-Forwarded-Proto` or, without it, `Forwarded`;
 * undefined if neither has it.
 */
export function saidScheme(request: HeaderValues): Scheme | undefined {
  const plain = request.header('x-forwarded-proto');
  if (plain !== undefined) return readScheme(plain.split(',').at(-1)!);
  const [nearest = ''] = entriesOf(request.header('forwarded') ?? '');
  return readScheme(parameterIn(nearest, 'proto') ?? '');
}

/** The address of a node, in the form of `Socket.remoteAddress`. IPv6 can be without brackets. */
function readNode(node: string): Hop {
  const [, inBrackets, v4] = NODE_FORM.exec(node) ?? [];
  const address = inBrackets ?? v4 ?? node;
  const family = isIP(address);
  if (family === 4) return inBrackets === undefined ? address : undefined;
  if (family !== 6 || address.includes('%')) return undefined;
  return plainAddress(new SocketAddress({ address, family: 'ipv6' }).address);
}

/** The form of IPv4 addresses on a server that listens on `::`: mapped into IPv6. */
const MAPPED = /^::ffff:(?=\d+\.)/;

/** An address, as IPv4 if it is mapped into IPv6. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.replace(MAPPED, '') : address;
}

/** A request with its origin. */
export interface Received extends HeaderValues {
  /** Its method; undefined if it has none. */
  readonly method?: string | undefined;
  /** The address at the other end of the connection, see `peerOf`. */
  peer(): string | undefined;
  /** Its client's address, if it is known already. */
  readonly client?: ClientAddress | undefined;
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

/** The address of a client. */
export interface ClientAddress {
  /** Undefined if there is none; `unknown` if a proxy should have stated it. */
  readonly address: string | undefined;
  /**
   * False if the headers of a trusted proxy do not state clearly whom it forwards for: such an address must not grant
   * access.
   */
  readonly isCertain: boolean;
  /** The unclear part of a proxy's headers, for the log. */
  readonly unclear?: string;
}

const UNKNOWN = 'unknown';
const [PLAIN, STANDARD] = ['X-Forwarded-For', 'Forwarded'];
const MAX_PEERS = 1000;

/** Determines the address of a request's client: from the connection, or from the headers of trusted proxies. */
export class ClientAddresses {
  readonly #trust: Networks;
  /** Remembers which recent peers are trusted, since searching the networks takes a microsecond. */
  readonly #trusts = memoized((peer) => this.#trust.includes(peer), MAX_PEERS);

  /**
   * @param trust networks whose `X-Forwarded-For` and `Forwarded` are trusted. Default: this machine
   * @throws RangeError if one is invalid
   */
  constructor(trust: readonly string[] = LOOPBACK) {
    this.#trust = new Networks(trust);
  }

  /** True if the headers of a peer are trusted. */
  trusts(peer: string | undefined): boolean {
    return peer !== undefined && this.#trusts(peer);
  }

  /**
   * The address of a request's client: from the connection back through the hops that proxies have recorded, the first
   * one that is not trusted itself. If a trusted proxy has recorded no address, that of the connection. If both headers
   * exist and differ, a proxy has passed one on that the client made up: `X-Forwarded-For` counts, as most proxies set
   * it.
   */
  of(request: Received): ClientAddress {
    if (request.client) return request.client;
    const peer = request.peer();
    if (peer === undefined || !this.trusts(peer)) return { address: peer, isCertain: peer !== undefined };
    const [plain, standard] = [request.header('x-forwarded-for'), request.header('forwarded')];
    const itself: ClientAddress = { address: peer, isCertain: true };
    const byStandard =
      standard === undefined ? undefined : this.#walk(hopsInForwarded(standard), itself, notAnAddress(peer, STANDARD));
    if (plain === undefined) return byStandard ?? itself;
    const byPlain = this.#walk(hopsInXForwardedFor(plain), itself, notAnAddress(peer, PLAIN));
    const agree = byStandard === undefined || (byStandard.isCertain && byStandard.address === byPlain.address);
    if (agree || !byPlain.isCertain) return byPlain;
    const unclear = byStandard.unclear ?? `${PLAIN} and ${STANDARD} name different addresses`;
    return { address: byPlain.address, isCertain: false, unclear };
  }

  /**
   * The client's address, and those of the trusted proxies on the way, nearest last. Entries before the client's are
   * left out, as the client may have written them.
   */
  path(request: Received): string[] {
    const peer = request.peer();
    const { address, isCertain } = this.of(request);
    if (peer === undefined || address === undefined || !isCertain || !this.trusts(peer))
      return peer === undefined ? [] : [peer];
    const plain = request.header('x-forwarded-for');
    const standard = plain === undefined ? request.header('forwarded') : undefined;
    const path = [peer];
    for (const hop of plain === undefined ? hopsInForwarded(standard ?? '') : hopsInXForwardedFor(plain)) {
      path.unshift(hop!);
      if (!this.#trust.includes(hop!)) break;
    }
    return path;
  }

  /**
   * The address in a trusted proxy's header with a custom name.
   * @param name that of the header
   * @param said its value, in the form of `X-Forwarded-For`; undefined if it is missing
   */
  saidAs(name: string, said: string | undefined): ClientAddress {
    const none = notAnAddress(UNKNOWN, name);
    return this.#walk(hopsInXForwardedFor(said ?? ''), none, none);
  }

  /** @param none the result without hops @param unclear the result for a hop that is not an address */
  #walk(hops: Iterable<string | undefined>, none: ClientAddress, unclear: ClientAddress): ClientAddress {
    let address: string | undefined;
    for (const hop of hops) {
      if (hop === undefined) return unclear;
      address = hop;
      if (!this.#trust.includes(hop)) break;
    }
    return address === undefined ? none : { address, isCertain: true };
  }
}

function notAnAddress(address: string, header: string): ClientAddress {
  return { address, isCertain: false, unclear: `${header} names no address` };
}

/**
 * The address at the other end of a connection; 127.0.0.1 on a Unix socket, which only this machine can reach.
 * Undefined without a connection, or after it has ended.
 */
export function peerOf(socket: Socket | undefined): string | undefined {
  const { remoteAddress } = socket ?? {};
  if (remoteAddress !== undefined) return plainAddress(remoteAddress);
  // A connection that was reset has no address either, and must not count as local.
  const { server } = (socket ?? {}) as { server?: Server };
  return typeof server?.address() === 'string' ? '127.0.0.1' : undefined;
}

/**
 * The addresses that one client can have: an IPv4 address, or the /64 of an IPv6 address, as `2001:db8:0:1::/64`. Takes
 * addresses in the form of `Socket.remoteAddress`; empty for none.
 */
export function networkOf(address = ''): string {
  const plain = plainAddress(address).replace(/%.*$/, '');
  if (!plain.includes(':') || plain === '::1') return plain;
  const [before = '', after = ''] = plain.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = plain.includes('::') ? Array<string>(8 - first!.length - last!.length).fill('0') : [];
  return `${[...first!, ...zeros, ...last!].slice(0, 4).join(':')}::/64`;
}

/** True for a loopback address. */
export function isLoopback(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

/** True for a host, with or without a port, that names this machine. */
export function isLoopbackHost(host: string): boolean {
  const { hostname = '' } = URL.parse(`http://${host}`) ?? {};
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
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
