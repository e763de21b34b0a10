import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN, cleanEnv } from './process.ts';
import { tempFolder } from './temp.ts';

/** Receives datagrams on a Unix socket, like systemd, and prints each as a line of JSON. */
const RECEIVER = `
import json, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('"bound"', flush=True)
while True:
    print(json.dumps(receiver.recv(65536).decode()), flush=True)
`;

/** A stand-in for systemd, for services of type notify. */
export interface Notified {
  /** The variable that tells a service the socket. */
  readonly env: { NOTIFY_SOCKET: string };
  /** The reports so far, each a list of assignments. */
  readonly said: readonly string[][];
  stop(): void;
}

/** Listens to the reports of a service. Needs Python. */
export async function startNotified(): Promise<Notified> {
  const path = join(tempFolder(), 'notify');
  const child = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[][] = [];
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  lines.on('line', (line) => {
    const assignments = (JSON.parse(line) as string).trimEnd().split('\n');
    // The program sends a barrier to wait until its earlier reports are received.
    if (assignments[0] !== 'BARRIER=1') said.push(assignments);
  });
  return { env: { NOTIFY_SOCKET: path }, said, stop: () => void child.kill() };
}

/** A bound socket for other programs to listen on. This process never does. */
export interface BoundSocket {
  readonly fd: number;
  close(): void;
}

/** Opens a socket like systemd does for a service: on a free loopback port, or at a path. */
export function openSocket(path?: string): BoundSocket {
  // Node's own server would accept connections.
  const { _createServerHandle: create } = net as unknown as {
    _createServerHandle(this: void, address: string, port: number, type: number): BoundSocket;
  };
  return path === undefined ? create('127.0.0.1', 0, 4) : create(path, -1, -1);
}

/** Starts a built command on such a socket. */
export function startOnSocket({ fd }: BoundSocket, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const script = 'LISTEN_PID=$$ exec "$0" "$@"';
  return spawn('sh', ['-c', script, process.execPath, BIN, ...args], {
    env: cleanEnv({ LISTEN_FDS: '1', ...env }),
    stdio: ['ignore', 'pipe', 'pipe', fd],
  });
}
