import cluster from 'node:cluster';
import { readFileSync, readlinkSync } from 'node:fs';
import type { ListenAddress } from '../../http/listen-address.ts';
import { KeysError } from '../../keys/errors.ts';

/** The first descriptor that a service manager hands over. */
const FIRST_DESCRIPTOR = 3;

/**
 * The socket that a service manager, as systemd, has opened for this process, or for the first of its workers
 * (sd_listen_fds(3)); undefined if there is none.
 * @param owner the process that it must be for
 * @throws KeysError LISTEN_FAILED if there are several
 */
export function handedSocket(
  { LISTEN_PID: pid, LISTEN_FDS: count }: NodeJS.ProcessEnv,
  owner = cluster.isWorker ? process.ppid : process.pid,
): (ListenAddress & { fd: number }) | undefined {
  // Those of another process are none of ours, whoever has left the variables.
  if (!count || Number(pid) !== owner) return undefined;
  if (count !== '1')
    throw new KeysError(
      'LISTEN_FAILED',
      `The server cannot start: ${count} sockets were handed over (LISTEN_FDS), and it takes one. ` +
        'Give its socket unit a single ListenStream=, such as ListenStream=4000 for IPv4 and IPv6.',
    );
  return { fd: FIRST_DESCRIPTOR, socket: pathOfSocket(owner, FIRST_DESCRIPTOR) };
}

/** The path of a Unix socket by its descriptor; undefined for that of a port. */
function pathOfSocket(process: number, fd: number): string | undefined {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${process}/fd/${fd}`)) ?? [];
    // Num, RefCount, Protocol, Flags, Type, St, Inode, Path.
    const row = new RegExp(String.raw`^\S+: (?:\S+ +){5}${inode} (.+)$`, 'm');
    return row.exec(readFileSync('/proc/self/net/unix', 'utf8'))?.[1];
  } catch {
    return undefined; // There are such files on Linux alone.
  }
}
