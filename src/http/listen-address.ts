import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { lstat, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { debug, isLoopbackHost, KeysError, printable } from '../keys/basics/index.ts';

/** The file mode creation mask that gives a socket mode 0660: users who can write to it can connect. */
export const SOCKET_UMASK = 0o117;

/**
 * Runs the creation of a socket under a mask that limits it to its user and group. Setting the mode afterwards would
 * leave a moment in which others can connect.
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
 * Removes the socket of a killed server, to create another one.
 * @throws KeysError LISTEN_FAILED if a server listens there, or the path is something else
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

/** True if a server listens on a socket; otherwise connections are refused. */
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

/** The address of a server: a port, a Unix socket, or a socket opened by the process that started it. */
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
      /** The descriptor of a socket that the process that started this one opened, and keeps when the server stops. */
      fd: number;
      /** Its path, if it is a Unix socket. */
      socket?: string | undefined;
      host?: undefined;
      port?: undefined;
    };

/** The names of the settings for the address, for error messages. */
type SaidBy = Readonly<Record<'host' | 'port', string>>;

/**
 * Starts listening. A socket left by a killed server is replaced. On a kernel without IPv6, `::`, which stands for all
 * addresses, listens on all IPv4 addresses.
 * @param said the settings of the address
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

/** The address of a server as a URL; for a Unix socket, `unix:` and its path. */
export function formatUrl(
  server: Server,
  scheme: 'http' | 'https',
  { socket, fd }: Pick<ListenAddress, 'socket' | 'fd'> = {},
): string {
  const at = server.address();
  // Node does not know the path of a socket that it did not open.
  if (typeof at === 'string' || at === null) return `unix:${at ?? socket ?? `descriptor ${fd}`}`;
  return `${scheme}://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`;
}

/** True for a server that is reached over a network without TLS. */
export function isInClear(url: string): boolean {
  return url.startsWith('http:') && !isLoopbackHost(new URL(url).hostname);
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
  return `the inherited descriptor ${fd} is not a socket that accepts connections (${code}): ${wanted}`;
}

function portReason(code: string, { host, port }: { host: string; port: number }, said: SaidBy): string {
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} is taken. Choose another with ${said.port}, or 0 for a free one`,
    EACCES: `this user is not allowed to listen on port ${port}. Choose one above 1023 with ${said.port}`,
    EADDRNOTAVAIL: `"${host}" is not an address of this machine. Choose another with ${said.host}`,
    ENOTFOUND: `there is no host "${host}". Choose another with ${said.host}`,
    EAI_AGAIN: `the host "${host}" cannot be resolved. Choose another with ${said.host}`,
  };
  return reasons[code] ?? `${code} on "${host}"`;
}

function socketReason(code: string, path: string): string {
  const socket = printable(path);
  // Node reports EACCES in place of ENOENT.
  if (code === 'EACCES' && !existsSync(dirname(path)))
    return `the folder of ${socket} does not exist. Create it, or choose another path with --socket`;
  const reasons: Record<string, string> = {
    EADDRINUSE: `${socket} already exists. Choose another path with --socket`,
    EACCES: `this user is not allowed to create ${socket}. Choose another path with --socket, or give its folder to this user`,
    ENOTDIR: `the folder of ${socket} is a file. Choose another path with --socket`,
    EINVAL: `${socket} is too long for the path of a socket. Choose a shorter one with --socket`,
  };
  return reasons[code] ?? `${code} on ${socket}`;
}
