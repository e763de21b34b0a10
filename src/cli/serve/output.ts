import { neverBlock, type OpenLog } from '../../log.ts';

/** How long the reader of the log gets for its last lines. */
export const FLUSH_MS = 1000;

/**
 * Lets the reader of the log have its last lines. A reader that does not read keeps no process from ending.
 * @param exit the exit code of a failure, which nobody has set yet
 */
export async function leave(log: OpenLog, exit: number | undefined): Promise<void> {
  const isRead = await log.drained(FLUSH_MS);
  if (!isRead || process.stdout.writableLength > 0) process.exit(exit);
}

/** Prints where the server listens. It neither waits for a reader of stdout nor fails without one. */
export function announce(url: string): void {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => {});
  neverBlock(process.stdout);
  process.stdout.write(`Listening on ${url}\n`);
}
