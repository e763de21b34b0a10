import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, type Server, type Socket, SocketAddress } from 'node:net';
import type { Context } from 'hono';
import type { HeaderValues } from './credentials.ts';
import type { Charge } from '../keys/authorization/index.ts';
import { LOOPBACK, Networks, sourceOf } from '../keys/basics/index.ts';
import { readAudience } from '../keys/key/index.ts';

/**
 * Keeps what was computed from texts, of which clients send few. Once there are too many, all are forgotten: to know
 * which was used least recently would take longer than to find one.
 * @param compute what it throws is not kept
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

/** What an operation is called, and what kind it is. */
export interface NamedOperation {
  readonly isMutation: boolean;
  /** As its document has it; undefined for one without a name. */
  readonly name: string | undefined;
}

/** What the log has of a request at level debug: who decided what, and how long each stage took. */
export class RequestDetails {
  /** The public id of the key, once that is known. */
  prefix: string | undefined = undefined;
  /** Whether the key was one of those that are remembered. */
  keyFrom: 'cache' | 'store' | undefined = undefined;
  /** The route that decides about it. */
  route: string | undefined = undefined;
  readonly permissions = new Set<string>();
  /** The code of the error that it is answered, if any. */
  code: string | undefined = undefined;
  /** Why it is refused, and what it lacks. */
  reason: object | undefined = undefined;
  /** In milliseconds, in their order. */
  readonly stages: Record<string, number> = {};
  #last = performance.now();

  /** A stage has ended, and the next one begins. */
  ended(stage: string): void {
    const now = performance.now();
    this.stages[stage] = Math.round(((this.stages[stage] ?? 0) + now - this.#last) * 1000) / 1000;
    this.#last = now;
  }
}

/** What is noted of a request while it is answered. */
export interface RequestNotes {
  /** Its id, which its answer has as `X-Request-Id`. */
  readonly id: string;
  /** The id of the key that makes it, once that is known. */
  keyId: string | undefined;
  /** Where it comes from, if that is said in another way than by headers that all requests have. */
  client: ClientAddress | undefined;
  /** Headers that tell an upstream of the trace that it belongs to, names and values in turn; undefined for none. */
  readonly trace: readonly string[] | undefined;
  /** The name of the upstream that it is passed on to. */
  upstream: string | undefined;
  /** What is noted besides where the log is at level debug. */
  readonly details: RequestDetails | undefined;
  /** How many errors the answer of GraphQL has. */
  errors: number;
  /** Notes what GraphQL was asked. @param token the secret by which, which a name must not show */
  noteOperation(operation: NamedOperation, token: string | undefined): void;
  /** Notes when the store was waited for to know the key, in milliseconds of `performance.now()`. */
  noteStoreTime(from: number, to: number): void;
}

const NOTES = Symbol('notes');
type Noted = IncomingMessage & { [NOTES]?: RequestNotes };

/** Keeps the notes of a request of Node: a WeakMap of all would cost more. */
export function keepNotes(incoming: IncomingMessage, notes: RequestNotes): void {
  (incoming as Noted)[NOTES] = notes;
}

/** The notes of a request; undefined for one that came by a server of somebody else. */
export function notesOf(incoming: IncomingMessage | undefined): RequestNotes | undefined {
  const noted: Noted | undefined = incoming;
  return noted?.[NOTES];
}

/** A hop that a proxy has noted: an address, or undefined where it is none. */
type Hop = string | undefined;

/** `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]` or `[2001:db8::1]:80`: the part without the port. */
const NODE_FORM = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d{1,5})?$/i;
/** One parameter after another, without a gap. */
const PARAMETER = /\s*([!#$%&'*+.^_`|~\da-z-]+)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~\da-z-]+))\s*(?:;|$)/giy;

/** The hops in `X-Forwarded-For`, the nearest first. Some proxies quote those that have a port. */
function* hopsInXForwardedFor(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readNode(/^"([^"\\]*)"$/.exec(entry)?.[1] ?? entry);
}

/** The hops in `Forwarded` (RFC 7239), the nearest first. Those that hide behind a word are undefined. */
function* hopsInForwarded(header: string): Generator<Hop> {
  for (const entry of entriesOf(header)) yield readElement(entry);
}

/**
 * The entries of a list, from the end: what stands before an entry is the client's to write, and must not change how
 * that entry is read. Empty ones are left out (RFC 9110, section 5.6.1).
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

/** A parameter of an element of `Forwarded`; undefined unless it is there once, and nothing else but parameters. */
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
  // Some proxies write the schemes of WebSocket for a handshake.
  ['ws', 'http'],
  ['wss', 'https'],
]);

/** The scheme that a proxy names; undefined if it is none of requests. */
export function readScheme(text: string): Scheme | undefined {
  return SCHEMES.get(text.trim().toLowerCase());
}

/**
 * The scheme by which a request has come to the nearest proxy, as that says in `X-Forwarded-Proto`, or otherwise in
 * `Forwarded`; undefined if it says none.
 */
export function saidScheme(request: HeaderValues): Scheme | undefined {
  const plain = request.header('x-forwarded-proto');
  if (plain !== undefined) return readScheme(plain.split(',').at(-1)!);
  const [nearest = ''] = entriesOf(request.header('forwarded') ?? '');
  return readScheme(parameterIn(nearest, 'proto') ?? '');
}

/** The address of a node, in the form that `Socket.remoteAddress` has. IPv6 may stand without brackets. */
function readNode(node: string): Hop {
  const [, inBrackets, v4] = NODE_FORM.exec(node) ?? [];
  const address = inBrackets ?? v4 ?? node;
  const family = isIP(address);
  if (family === 4) return inBrackets === undefined ? address : undefined;
  if (family !== 6 || address.includes('%')) return undefined;
  return plainAddress(new SocketAddress({ address, family: 'ipv6' }).address);
}

/** How a server that listens on `::` sees IPv4 addresses: as parts of IPv6. */
const MAPPED = /^::ffff:(?=\d+\.)/;

/** An address, as IPv4 if it is IPv4 that is mapped into IPv6. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.replace(MAPPED, '') : address;
}

/** A request that knows where it came from. */
export interface Received extends HeaderValues {
  /** Its method; undefined where there is none. */
  readonly method?: string | undefined;
  /** The address at the other end of the connection, see `peerOf`. */
  peer(): string | undefined;
  /** Where it comes from, if that is known already. */
  readonly client?: ClientAddress | undefined;
  /** What it counts as, if not once. */
  readonly charge?: Charge | undefined;
  /** What is noted of it; undefined where it came by a server of somebody else. */
  readonly notes?: RequestNotes | undefined;
  /** What it was made to, as its client has written it, where that is known. */
  to?: RequestTo | undefined;
  /** Whether its key is only exchanged, and may be one that is for something else: see `ApiKey.audience`. */
  readonly isSubject?: boolean;
}

/** What a request was made to. */
export interface RequestTo {
  readonly method: string;
  /** As `Host` has it. */
  readonly host: string;
  /** The scheme of the request. */
  readonly scheme: Scheme;
  /** Its path and query. */
  readonly target: string;
}

/** The same of an address. */
export function requestTo(address: string): RequestTo {
  const { protocol, host, pathname } = new URL(address);
  return { method: 'GET', scheme: readScheme(protocol.slice(0, -1)) ?? 'http', host, target: pathname };
}

/** What some servers take for the end of a segment, or for another path. */
const UNCLEAR_PATH = /[\\;]|\/\/|%(?:2e|2f|5c|25|00)/i;

/** The address of a request, by which a key for one address is held; undefined where another one could be meant. */
export function addressOf({ scheme, host, target }: RequestTo): string | undefined {
  const path = target.split('?', 1)[0]!;
  return UNCLEAR_PATH.test(path) ? undefined : readAudience(`${scheme}://${host}${path}`);
}

/** Where a request comes from. */
export interface ClientAddress {
  /** Undefined if there is none, and `unknown` if a proxy should have said it. */
  readonly address: string | undefined;
  /**
   * False where the headers of a trusted proxy do not say, or not clearly, for whom it forwards: nothing may be allowed
   * because of such an address.
   */
  readonly isCertain: boolean;
  /** Why it is not, where a proxy has said something, for the log. */
  readonly unclear?: string;
}

const UNKNOWN = 'unknown';
const [PLAIN, STANDARD] = ['X-Forwarded-For', 'Forwarded'];
const MAX_PEERS = 1000;

/** Finds out from which address a request comes: by the connection, or by the headers of proxies that are trusted. */
export class ClientAddresses {
  readonly #trust: Networks;
  /** Whether peers are trusted that came lately: to look for one among the networks takes a microsecond. */
  readonly #trusts = memoized((peer) => this.#trust.includes(peer), MAX_PEERS);

  /**
   * @param trust networks whose `X-Forwarded-For` and `Forwarded` are believed. Default: this machine
   * @throws RangeError if one is invalid
   */
  constructor(trust: readonly string[] = LOOPBACK) {
    this.#trust = new Networks(trust);
  }

  /** Whether the headers of a peer are believed. */
  trusts(peer: string | undefined): boolean {
    return peer !== undefined && this.#trusts(peer);
  }

  /**
   * The address of a request's client: the last one, from the connection back through what proxies have noted, that is
   * not trusted itself. Where a trusted one has noted no address, the connection's. Where both headers are there and
   * differ, a proxy has passed on one that the client made up: `X-Forwarded-For` is the one that most proxies set.
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
   * The client's address, and those of the trusted proxies that have passed a request on, the nearest last. What stands
   * before the client's in their headers is left out: the client may have written it.
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
   * The address that a trusted proxy says in a header of its own choice.
   * @param name that of the header
   * @param said what that says, as `X-Forwarded-For` does; undefined where it is missing
   */
  saidAs(name: string, said: string | undefined): ClientAddress {
    const none = notAnAddress(UNKNOWN, name);
    return this.#walk(hopsInXForwardedFor(said ?? ''), none, none);
  }

  /** @param none what comes of no hops at all @param unclear and of one that is not an address */
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
 * The address at the other end of a connection; 127.0.0.1 on a Unix socket, which only this machine reaches. Undefined
 * for a request that came by no connection, or by one that is gone.
 */
export function peerOf(socket: Socket | undefined): string | undefined {
  const { remoteAddress } = socket ?? {};
  if (remoteAddress !== undefined) return plainAddress(remoteAddress);
  // A connection that was reset has no address either, and must not count as local.
  const { server } = (socket ?? {}) as { server?: Server };
  return typeof server?.address() === 'string' ? '127.0.0.1' : undefined;
}

/**
 * What one client has of addresses: an IPv4 address, or the /64 of an IPv6 address, as `2001:db8:0:1::/64`. Takes
 * addresses as `Socket.remoteAddress` has them; empty where there is none.
 */
export function networkOf(address = ''): string {
  const plain = plainAddress(address).replace(/%.*$/, '');
  if (!plain.includes(':') || plain === '::1') return plain;
  const [before = '', after = ''] = plain.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = plain.includes('::') ? Array<string>(8 - first!.length - last!.length).fill('0') : [];
  return `${[...first!, ...zeros, ...last!].slice(0, 4).join(':')}::/64`;
}

/** Whether an address is one of this machine for itself. */
export function isLoopback(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

/** Whether a host, which may have a port, is a name or an address of this machine for itself. */
export function isLoopbackHost(host: string): boolean {
  const { hostname = '' } = URL.parse(`http://${host}`) ?? {};
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/**
 * The value of a header, several of them joined with commas as `Headers` does; undefined without one.
 * @param rawHeaders names and values in turn, as Node has them
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
 * All values of a header, each as it came.
 * @param rawHeaders names and values in turn, as Node has them
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
 * Whether percent-encoding stands for UTF-8. What does not is refused before anything else reads it: to replace byte by
 * byte what is no UTF-8 takes thousands of times as long.
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

/** A request to this server, by Hono or by Node: all that its endpoints read. */
export interface ServedRequest extends Received {
  readonly method: string;
  /** The address that it was made to, as this server sees it. */
  readonly url: string;
  /** Its path and query as they came, without the path that the app is mounted at. */
  readonly target: string;
  /** The query of its URL with the question mark, percent-encoded as it came; empty if there is none. */
  readonly search: string;
  /** Names and values in turn, as Node has them; empty without Node. */
  readonly rawHeaders: readonly string[];
  client: ClientAddress | undefined;
  charge: Charge | undefined;
  /** True if the client has shown a trusted certificate, where one is asked for. */
  readonly hasCertificate: boolean;
  /** Aborted once the server stops, so that an answer can be held for long; undefined without our own server. */
  readonly stopping: AbortSignal | undefined;
  /** The whole body. Rejects with `bodyCutOff`, and can with `bodyTooLarge` before all of it has come. */
  body(): Promise<Uint8Array>;
  /** The request for resolvers, created when one asks for it. */
  readonly webRequest: Request;
  /** Calls `listener` when the client has gone; ended by the function that it returns. */
  onClientGone(listener: () => void): () => void;
}

/** The head of a request, whichever way it came to this server. */
abstract class ServedHead<Incoming extends IncomingMessage | undefined> implements Received {
  client: ClientAddress | undefined = undefined;
  to: RequestTo | undefined = undefined;
  charge: Charge | undefined = undefined;
  /** As Node has it; undefined where it came by something else. */
  protected readonly incoming: Incoming;

  constructor(incoming: Incoming) {
    this.incoming = incoming;
  }

  abstract get method(): string;

  abstract header(name: string): string | undefined;

  /** The address that it was made to, as this server sees it. */
  abstract get url(): string;

  get notes(): RequestNotes | undefined {
    return notesOf(this.incoming);
  }

  peer(): string | undefined {
    return peerOf(this.incoming?.socket);
  }

  /** Whether its client has shown a certificate that is trusted, where one is asked for. */
  get hasCertificate(): boolean {
    return (this.incoming?.socket as { authorized?: boolean } | undefined)?.authorized === true;
  }

  get rawHeaders(): readonly string[] {
    return this.incoming?.rawHeaders ?? [];
  }

  /** All values of a header, each as it came. @param name in lower case */
  all(name: string): readonly string[] {
    return headerValues(this.rawHeaders, name);
  }
}

/** The head of a request as Node has it. */
export class NodeHead extends ServedHead<IncomingMessage> {
  get method(): string {
    return this.incoming.method!;
  }

  /** `incoming.headers` would leave out the second one of many headers. */
  header(name: string): string | undefined {
    return headerValue(this.incoming.rawHeaders, name);
  }

  get url(): string {
    return `${'encrypted' in this.incoming.socket ? 'https' : 'http'}://${this.header('host')}${this.incoming.url}`;
  }
}

/** The head of a request as Hono has it. */
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

/** The address that a request comes from, and what attempts from there are counted by. */
export function originOf(c: Context, { addresses }: { readonly addresses: ClientAddresses }) {
  const { address } = addresses.of(new HonoHead(c));
  return { address, ...sourceOf(address) };
}
