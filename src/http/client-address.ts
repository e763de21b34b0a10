import { isIPv4, type Server, type Socket } from 'node:net';
import { LOOPBACK, Networks } from '../keys/networks.ts';
import type { HeaderValues } from './credentials.ts';
import { hopsInForwarded, hopsInXForwardedFor, plainAddress } from './forwarded.ts';
import { memoized } from './memoized.ts';
import type { RequestNotes } from './request-notes.ts';

/** A request that knows where it came from. */
export interface Received extends HeaderValues {
  /** The address at the other end of the connection, see `peerOf`. */
  peer(): string | undefined;
  /** What is noted of it; undefined where it came by a server of somebody else. */
  readonly notes?: RequestNotes | undefined;
}

/** Where a request comes from. */
export interface ClientAddress {
  /** Undefined if it is not known. */
  readonly address: string | undefined;
  /**
   * False where the headers of a trusted proxy do not say, or not clearly, for whom it forwards: nothing may be allowed
   * because of such an address.
   */
  readonly isCertain: boolean;
}

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
    const peer = request.peer();
    if (peer === undefined || !this.trusts(peer)) return { address: peer, isCertain: peer !== undefined };
    const [plain, standard] = [request.header('x-forwarded-for'), request.header('forwarded')];
    const byStandard = standard === undefined ? undefined : this.#walk(peer, hopsInForwarded(standard));
    if (plain === undefined) return byStandard ?? { address: peer, isCertain: true };
    const byPlain = this.#walk(peer, hopsInXForwardedFor(plain));
    const agree = byStandard === undefined || (byStandard.isCertain && byStandard.address === byPlain.address);
    return agree ? byPlain : { address: byPlain.address, isCertain: false };
  }

  #walk(peer: string, hops: Iterable<string | undefined>): ClientAddress {
    let address = peer;
    for (const hop of hops) {
      if (hop === undefined) return { address: peer, isCertain: false };
      address = hop;
      if (!this.#trust.includes(hop)) break;
    }
    return { address, isCertain: true };
  }
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
