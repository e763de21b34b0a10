import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server that a test can block. */
export interface Proxy {
  port: number;
  /** Lets nothing through any more, in either direction, and closes nothing, as a firewall would. */
  block(): void;
  /** Lets everything through again, what was sent meanwhile first. */
  unblock(): void;
  /** Ends all connections that are open. */
  drop(): void;
  close(): void;
}

/** Passes on to a port of this machine. */
export async function startProxy(target: number): Promise<Proxy> {
  const open = new Set<Socket>();
  let blocked = false;
  const apply = () => {
    for (const socket of open)
      if (blocked) socket.pause();
      else socket.resume();
  };
  const server = createServer((near) => {
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
    block: () => set(true),
    unblock: () => set(false),
    drop,
    close() {
      drop();
      server.close();
    },
  };
}
