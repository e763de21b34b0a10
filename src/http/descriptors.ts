import { readFileSync } from 'node:fs';

/** The limit that is assumed where it cannot be read. */
const USUAL_LIMIT = 1024;
/** Those that are kept for the store, its copies, the log and Node itself: so many, or where there are few, most. */
const RESERVED = 128;
const LEAST_SHARE = 1 / 4;
/** What a connection costs in memory bounds them where descriptors do not. */
const MAX_CONNECTIONS = 20_000;

/**
 * How many connections this process can have at a time: below the descriptors that it may have open.
 * @param wanted how many it is to have
 * @param descriptorsEach how many descriptors each needs, with what is opened for it
 */
export function affordableConnections(wanted = MAX_CONNECTIONS, descriptorsEach = 1): number {
  const limit = descriptorLimit();
  const descriptors = Math.max(limit - RESERVED, limit * LEAST_SHARE);
  return Math.min(wanted, Math.floor(descriptors / descriptorsEach));
}

/** The soft limit of open descriptors (RLIMIT_NOFILE), which Node has raised to the hard one. */
function descriptorLimit(): number {
  try {
    const [, limit] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === 'unlimited' ? Infinity : Number(limit ?? USUAL_LIMIT);
  } catch {
    return USUAL_LIMIT; // There is no such file but on Linux.
  }
}
