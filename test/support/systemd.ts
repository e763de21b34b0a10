import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN, cleanEnv } from './process.ts';
import { tempFolder } from './temp.ts';

/** Receives datagrams on a Unix socket, as systemd does, and prints each as a line of JSON. */
const RECEIVER = `
import json, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('"bound"', flush=True)
while True:
    print(json.dumps(receiver.recv(65536).decode()), flush=True)
`;

/** The part of systemd for a service of the type notify, which reports its state. */
export interface Notified {
  /** The variable by which a service knows. */
  readonly env: { NOTIFY_SOCKET: string };
  /** The reports until now, each with its assignments. */
  readonly said: readonly string[][];
  /** Ends it. */
  stop(): void;
}

/** Starts to listen to what a service says. Needs Python. */
export async function startNotified(): Promise<Notified> {
  const path = join(tempFolder(), 'notify');
  const child = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[][] = [];
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  lines.on('line', (line) => {
    const assignments = (JSON.parse(line) as string).trimEnd().split('\n');
    // The program waits by this for what it has said before to be received.
    if (assignments[0] !== 'BARRIER=1') said.push(assignments);
  });
  return { env: { NOTIFY_SOCKET: path }, said, stop: () => void child.kill() };
}

/** A socket that is bound, and on which others may listen: this process never does. */
export interface BoundSocket {
  readonly fd: number;
  close(): void;
}

/** Opens a socket as systemd does for a service: on a free port of loopback, or at a path. */
export function openSocket(path?: string): BoundSocket {
  // A server of Node would accept by itself.
  const { _createServerHandle: create } = net as unknown as {
    _createServerHandle(this: void, address: string, port: number, type: number): BoundSocket;
  };
  return path === undefined ? create('127.0.0.1', 0, 4) : create(path, -1, -1);
}

/** Starts a command of the built CLI on such a socket. */
export function startOnSocket({ fd }: BoundSocket, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const script = 'LISTEN_PID=$$ exec "$0" "$@"';
  return spawn('sh', ['-c', script, process.execPath, BIN, ...args], {
    env: cleanEnv({ LISTEN_FDS: '1', ...env }),
    stdio: ['ignore', 'pipe', 'pipe', fd],
  });
}
