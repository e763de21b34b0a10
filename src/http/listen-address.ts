import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { lstat, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { isLoopback } from './received.ts';
import { debug, KeysError, printable } from '../keys/basics/index.ts';

/** The file mode creation mask that leaves a socket the mode 0660: whoever may write to it may connect. */
export const SOCKET_UMASK = 0o117;

/**
 * Runs what creates a socket under a mask that keeps it to its user and group. Its mode cannot be set before others can
 * see it otherwise.
 */
function withSocketMask<Result>(create: () => Result): Result {
  const before = process.umask(SOCKET_UMASK);
  try {
    return create();
  } finally {
    process.umask(before);
  }
}

/**
 * Removes a socket that a killed server has left behind, where another one was to be created.
 * @throws KeysError LISTEN_FAILED if a server listens there, or there is something else
 */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (!found) return;
  if (!found.isSocket()) {
    const what = found.isSymbolicLink() ? 'a symbolic link, which is not followed' : 'not a socket';
    throw cannotStart(`${printable(path)} is ${what}. Remove it, or choose another path with --socket`);
  }
  if (await isListenedTo(path))
    throw cannotStart(`another server listens on ${printable(path)}. Stop it, or choose another path with --socket`);
  // If it cannot be removed, listening fails again.
  await unlink(path).catch(() => {});
}

/** Whether a server listens on a socket: otherwise a connection is refused. */
async function isListenedTo(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    socket.destroy();
  }
}

function cannotStart(reason: string): KeysError {
  return new KeysError('LISTEN_FAILED', `The server cannot start: ${reason}.`);
}

/** Where a server listens: on a port, on a Unix socket, or on one of these that somebody else has opened. */
export type ListenAddress =
  | {
      /** A host name or address of this machine. */
      host: string;
      /** The port; 0 picks a free one. */
      port: number;
      socket?: undefined;
      fd?: undefined;
    }
  | {
      /** The path of a Unix socket, which is created with mode 0660, and removed when the server stops. */
      socket: string;
      host?: undefined;
      port?: undefined;
      fd?: undefined;
    }
  | {
      /** The descriptor of a socket that whoever started this process has opened, and keeps when the server stops. */
      fd: number;
      /** Its path, if it is a Unix socket. */
      socket?: string | undefined;
      host?: undefined;
      port?: undefined;
    };

/** What says the address of a server, to name what is to be changed. */
type SaidBy = Readonly<Record<'host' | 'port', string>>;

/**
 * Lets a server listen. A socket that a killed server has left behind is replaced. On a kernel without IPv6, a server at
 * `::`, which means all addresses, listens on all those of IPv4.
 * @param said where the address is said
 * @throws KeysError LISTEN_FAILED if the address is not available
 */
export async function startListening(
  server: Server,
  address: ListenAddress,
  said: SaidBy = { host: '--host', port: '--port' },
): Promise<void> {
  const { host, port, socket, fd } = address;
  const start = (at = host) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      const started = () => {
        server.off('error', reject);
        resolve();
      };
      if (fd !== undefined) server.listen({ fd }, started);
      else if (socket === undefined) server.listen(port, at, started);
      else withSocketMask(() => server.listen(socket, started));
    });
  try {
    await start().catch(async (error: NodeJS.ErrnoException) => {
      if (host === '::' && error.code === 'EAFNOSUPPORT') return start('0.0.0.0');
      if (fd !== undefined || socket === undefined || error.code !== 'EADDRINUSE') throw error;
      await removeStaleSocket(socket);
      await start();
    });
  } catch (error) {
    throw error instanceof KeysError ? error : listenError(error as NodeJS.ErrnoException, address, said);
  }
  debug('a listener was opened', () => ({ address: server.address(), ...(fd !== undefined && { descriptor: fd }) }));
}

/** Where a server listens, as a URL; a Unix socket as `unix:` and its path. */
export function formatUrl(
  server: Server,
  scheme: 'http' | 'https',
  { socket, fd }: Pick<ListenAddress, 'socket' | 'fd'> = {},
): string {
  const at = server.address();
  // Node knows no path of one that it has not opened.
  if (typeof at === 'string' || at === null) return `unix:${at ?? socket ?? `descriptor ${fd}`}`;
  return `${scheme}://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`;
}

/** Whether a server at this URL is reached over a network without TLS. */
export function isInClear(url: string): boolean {
  return url.startsWith('http:') && !isLoopback(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'));
}

/** Why a server cannot listen, in words. */
function listenError(error: NodeJS.ErrnoException, address: ListenAddress, said: SaidBy): KeysError {
  const { code = 'an unknown error' } = error;
  const reason =
    address.fd !== undefined
      ? handedReason(code, address.fd)
      : address.socket === undefined
        ? portReason(code, address, said)
        : socketReason(code, address.socket);
  return new KeysError('LISTEN_FAILED', `The server cannot start: ${reason}.`, { cause: error });
}

function handedReason(code: string, fd: number): string {
  const wanted = 'a socket unit needs ListenStream=, and Accept=no';
  return `what was handed over as descriptor ${fd} is not a socket that accepts connections (${code}): ${wanted}`;
}

function portReason(code: string, { host, port }: { host: string; port: number }, said: SaidBy): string {
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} is taken. Choose another with ${said.port}, or 0 for a free one`,
    EACCES: `this user may not listen on port ${port}. Choose one above 1023 with ${said.port}`,
    EADDRNOTAVAIL: `"${host}" is not an address of this machine. Choose another with ${said.host}`,
    ENOTFOUND: `there is no host "${host}". Choose another with ${said.host}`,
    EAI_AGAIN: `the host "${host}" cannot be resolved. Choose another with ${said.host}`,
  };
  return reasons[code] ?? `${code} on "${host}"`;
}

function socketReason(code: string, path: string): string {
  const socket = printable(path);
  // Node says EACCES in place of ENOENT.
  if (code === 'EACCES' && !existsSync(dirname(path)))
    return `the folder of ${socket} does not exist. Create it, or choose another path with --socket`;
  const reasons: Record<string, string> = {
    EADDRINUSE: `there is something else at ${socket}. Choose another path with --socket`,
    EACCES: `this user may not create ${socket}. Choose another path with --socket, or give its folder to this user`,
    ENOTDIR: `the folder of ${socket} is a file. Choose another path with --socket`,
    EINVAL: `${socket} is longer than the path of a socket may be. Choose a shorter one with --socket`,
  };
  return reasons[code] ?? `${code} on ${socket}`;
}
