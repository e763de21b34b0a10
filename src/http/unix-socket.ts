import { once } from 'node:events';
import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { KeysError } from '../keys/errors.ts';
import { printable } from '../keys/text.ts';

/** The file mode creation mask that leaves a socket the mode 0660: whoever may write to it may connect. */
export const SOCKET_UMASK = 0o117;

/**
 * Runs what creates a socket under a mask that keeps it to its user and group. Its mode cannot be set before others can
 * see it otherwise.
 */
export function withSocketMask<Result>(create: () => Result): Result {
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
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (!found) return;
  if (!found.isSocket()) {
    const what = found.isSymbolicLink() ? 'a symbolic link, which is not followed' : 'not a socket';
    throw refused(`${printable(path)} is ${what}. Remove it, or choose another path with --socket`);
  }
  if (await isListenedTo(path))
    throw refused(`another server listens on ${printable(path)}. Stop it, or choose another path with --socket`);
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

function refused(reason: string): KeysError {
  return new KeysError('LISTEN_FAILED', `The server cannot start: ${reason}.`);
}
