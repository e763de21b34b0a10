import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy that a test can block. */
export interface Proxy {
  port: number;
  /** The number of connections accepted so far. */
  connections(): number;
  /** Drops all traffic in both directions without closing connections, as a firewall does. */
  block(): void;
  /** Lets traffic through again, starting with what was held back. */
  unblock(): void;
  /** Points new connections to another local port; open ones stay. */
  redirect(target: number): void;
  /** Closes all open connections. */
  drop(): void;
  close(): void;
}

/** Starts a proxy to a local port. */
export async function startProxy(first: number): Promise<Proxy> {
  const open = new Set<Socket>();
  let [target, blocked] = [first, false];
  const apply = () => {
    for (const socket of open)
      if (blocked) socket.pause();
      else socket.resume();
  };
  let connections = 0;
  const server = createServer((near) => {
    connections += 1;
    const far = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.on('data', (data) => void to.write(data));
      from.on('error', () => {});
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
    apply();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const set = (to: boolean) => {
    blocked = to;
    apply();
  };
  const drop = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    block: () => set(true),
    unblock: () => set(false),
    redirect: (to) => void (target = to),
    drop,
    close() {
      drop();
      server.close();
    },
  };
}
