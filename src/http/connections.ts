import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isLoopback, networkOf } from './client-address.ts';

/** The limit assumed if it cannot be read. */
const USUAL_LIMIT = 1024;
/**
 * Descriptors reserved for the store, its copies, the log and Node itself: this many, or most of them if there are few.
 */
const RESERVED = 128;
const LEAST_SHARE = 1 / 4;
/** The memory of connections limits them if descriptors do not. */
const MAX_CONNECTIONS = 20_000;

/**
 * How many connections this process can have at a time, by its limit of open descriptors.
 * @param wanted the desired number
 * @param descriptorsEach how many descriptors each one needs, including what is opened for it
 */
export function affordableConnections(wanted = MAX_CONNECTIONS, descriptorsEach = 1): number {
  const limit = descriptorLimit();
  const descriptors = Math.max(limit - RESERVED, limit * LEAST_SHARE);
  return Math.min(wanted, Math.floor(descriptors / descriptorsEach));
}

/** The soft limit of open descriptors (RLIMIT_NOFILE), which Node has raised to the hard one. */
function descriptorLimit(): number {
  try {
    const [, limit] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === 'unlimited' ? Infinity : Number(limit ?? USUAL_LIMIT);
  } catch {
    return USUAL_LIMIT; // There is no such file but on Linux.
  }
}

/** The limits of a server's connections. */
export interface ConnectionLimits {
  /** In total; at most 128 fewer than the process's limit of descriptors. Default: that, and at most 20,000. */
  connections?: number;
  /**
   * From one IPv4 address, or one /64 of IPv6. Default: half of the total, without a limit for loopback, where a proxy
   * holds the connections of all its clients.
   */
  connectionsPerAddress?: number;
}

type BoundConnections = ConnectionLimits & { connections: number };

/**
 * The connection limit of an address, or of its network from `networkOf`, which is empty on a Unix socket, where there
 * is a proxy, too.
 */
export function connectionsFrom(network: string, { connections, connectionsPerAddress }: BoundConnections): number {
  const isProxy = network === '' || isLoopback(network);
  return connectionsPerAddress ?? (isProxy ? connections : Math.ceil(connections / 2));
}

/** Limits the connections of a server, so that no client takes all descriptors. */
export class Connections {
  readonly #open = new Set<Socket>();
  /** With TLS, the secure sockets after the handshake, by client. */
  readonly #secured: Map<string, Socket> | undefined;
  readonly #limits: BoundConnections;
  readonly #ofNetwork = new Map<string, number>();
  readonly #refused: (reason: string, network: string) => void;

  /** @param refused called with the reason and the network of a closed connection */
  constructor(server: Server, limits: ConnectionLimits, refused: (reason: string, network: string) => void) {
    const connections = affordableConnections(limits.connections);
    this.#limits = { ...limits, connections };
    this.#refused = refused;
    // Node itself closes connections above the limit.
    server.maxConnections = connections;
    server.on('drop', (dropped) => refused('too many connections', networkOf(dropped?.remoteAddress)));
    server.on('connection', (socket) => this.#admit(socket));
    // Tested by a member, since its class would load all of TLS.
    if (!('setSecureContext' in server)) return;
    const secured = (this.#secured = new Map<string, Socket>());
    server.on('secureConnection', (socket) => {
      const client = clientOf(socket);
      secured.set(client, socket);
      socket.once('close', () => secured.delete(client));
    });
  }

  /** Closes connections on which no request has begun to arrive: Node does not consider them idle. */
  closeSilent(): void {
    for (const socket of this.#open) {
      const carrier = this.#secured ? this.#secured.get(clientOf(socket)) : socket;
      if (!carrier || carrier.bytesRead === 0) socket.destroy();
    }
  }

  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #admit(socket: Socket): void {
    const network = networkOf(socket.remoteAddress);
    const count = (this.#ofNetwork.get(network) ?? 0) + 1;
    this.#ofNetwork.set(network, count);
    this.#open.add(socket);
    socket.once('close', () => this.#leave(socket, network));
    if (count <= connectionsFrom(network, this.#limits)) return;
    this.#refused('too many connections from this address', network);
    socket.destroy();
  }

  #leave(socket: Socket, network: string): void {
    this.#open.delete(socket);
    const count = this.#ofNetwork.get(network)! - 1;
    if (count > 0) this.#ofNetwork.set(network, count);
    else this.#ofNetwork.delete(network);
  }
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
