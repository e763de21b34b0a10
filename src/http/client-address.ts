import { isIP, isIPv4, type Server, type Socket, SocketAddress } from 'node:net';
import type { HeaderValues } from './credentials.ts';
import { LOOPBACK, Networks } from '../keys/basics/index.ts';
import { memoized } from './memoized.ts';

/** The sender of a request. */
export interface Sender extends HeaderValues {
  /** The address at the other end of the connection, see `peerOf`. */
  peer(): string | undefined;
  /** Its client's address, if it is known already. */
  readonly client?: ClientAddress | undefined;
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
  of(request: Sender): ClientAddress {
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
  path(request: Sender): string[] {
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
