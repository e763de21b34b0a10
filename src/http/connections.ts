import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { isLoopback, networkOf } from './client-address.ts';
import { affordableConnections } from './descriptors.ts';

/** How many connections a server takes. */
export interface ConnectionLimits {
  /** At a time; at most 128 fewer than the process may have descriptors. Default: that, and at most 20,000. */
  connections?: number;
  /**
   * At a time from one IPv4 address, or one /64 of IPv6. Default: half of all; and no limit for loopback, where a proxy
   * has the connections of all its clients.
   */
  connectionsPerAddress?: number;
}

type BoundConnections = ConnectionLimits & { connections: number };

/**
 * How many connections an address may have, or the network that `networkOf` makes of it. It is empty on a Unix socket,
 * where a proxy is, too.
 */
export function connectionsFrom(network: string, { connections, connectionsPerAddress }: BoundConnections): number {
  const isProxy = network === '' || isLoopback(network);
  return connectionsPerAddress ?? (isProxy ? connections : Math.ceil(connections / 2));
}

/** Bounds the connections of a server, so that no client takes all descriptors from the others. */
export class Connections {
  readonly #open = new Set<Socket>();
  /** With TLS, what carries the requests of those whose handshake is done, by their clients. */
  readonly #secured: Map<string, Socket> | undefined;
  readonly #limits: BoundConnections;
  readonly #ofNetwork = new Map<string, number>();
  readonly #refused: (reason: string, network: string) => void;

  /** @param refused is told why a connection was closed, and where it came from */
  constructor(server: Server, limits: ConnectionLimits, refused: (reason: string, network: string) => void) {
    const connections = affordableConnections(limits.connections);
    this.#limits = { ...limits, connections };
    this.#refused = refused;
    // Node closes those above at once.
    server.maxConnections = connections;
    server.on('drop', (dropped) => refused('too many connections', networkOf(dropped?.remoteAddress)));
    server.on('connection', (socket) => this.#admit(socket));
    if (!(server instanceof TlsServer)) return;
    const secured = (this.#secured = new Map<string, Socket>());
    server.on('secureConnection', (socket) => {
      const client = clientOf(socket);
      secured.set(client, socket);
      socket.once('close', () => secured.delete(client));
    });
  }

  /** What carries their requests. */
  carriers(): Iterable<Socket> {
    return this.#secured?.values() ?? this.#open;
  }

  /** Closes those on which no request has begun to arrive: Node does not consider them idle. */
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
