import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { isLoopback, networkOf } from './client-address.ts';
import { affordableConnections } from './descriptors.ts';
import type { RefusalLog } from './refusal-log.ts';

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

/** How many connections an address may have, or the network that `networkOf` makes of it. */
export function connectionsFrom(network: string, { connections, connectionsPerAddress }: BoundConnections): number {
  return connectionsPerAddress ?? (isLoopback(network) ? connections : Math.ceil(connections / 2));
}

/** Bounds the connections of a server, so that no client takes all descriptors from the others. */
export class Connections {
  /** Those that are open. */
  readonly open = new Set<Socket>();
  readonly #limits: BoundConnections;
  readonly #ofNetwork = new Map<string, number>();
  readonly #refusals: RefusalLog | undefined;

  constructor(server: Server, limits: ConnectionLimits, refusals: RefusalLog | undefined) {
    const connections = affordableConnections(limits.connections);
    this.#limits = { ...limits, connections };
    this.#refusals = refusals;
    // Node closes those above at once.
    server.maxConnections = connections;
    server.on('drop', (dropped) => this.#refused('too many connections', networkOf(dropped?.remoteAddress)));
    server.on('connection', (socket) => this.#admit(socket));
  }

  #admit(socket: Socket): void {
    const network = networkOf(socket.remoteAddress);
    const count = (this.#ofNetwork.get(network) ?? 0) + 1;
    this.#ofNetwork.set(network, count);
    this.open.add(socket);
    socket.once('close', () => this.#leave(socket, network));
    if (count <= connectionsFrom(network, this.#limits)) return;
    this.#refused('too many connections from this address', network);
    socket.destroy();
  }

  #leave(socket: Socket, network: string): void {
    this.open.delete(socket);
    const count = this.#ofNetwork.get(network)! - 1;
    if (count > 0) this.#ofNetwork.set(network, count);
    else this.#ofNetwork.delete(network);
  }

  #refused(reason: string, address: string): void {
    this.#refusals?.add('connection refused', { reason, address });
  }
}
