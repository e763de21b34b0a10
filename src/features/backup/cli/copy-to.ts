import { CliError } from '../../../cli/errors.ts';
import { withProgress } from '../../../cli/progress.ts';
import type { Terminal } from '../../../cli/terminal.ts';
import { BUSY_TIMEOUT_MS } from '../../../cli/with-keys.ts';
import type { StoreCopy } from '../copy-store.ts';

/** How long PostgreSQL may take to make an index of all keys, in milliseconds. */
const STATEMENT_MS = 600_000;

/** True for the address of a store: a URL, or a path with the extension of an SQLite file. */
export function isStoreAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(text) || /\.(sqlite3?|db)$/i.test(text);
}

/**
 * Copies the whole store into another one, and shows the progress.
 * @param database the store of the command
 * @throws CliError USAGE if both are the same; KeysError STORE_…
 */
export async function copyTo(to: string, database: string | undefined, terminal: Terminal): Promise<StoreCopy> {
  const [{ openConnection }, { copyStore }, { allStores }] = await Promise.all([
    import('../../../store/open.ts'),
    import('../copy-store.ts'),
    import('../../index.ts'),
  ]);
  const how = { busyTimeoutMs: BUSY_TIMEOUT_MS, features: await allStores() };
  const from = await openConnection({ database, mustExist: true, ...how });
  try {
    const target = await openConnection({ database: to, statementMs: STATEMENT_MS, ...how });
    try {
      if (target.location === from.location)
        throw new CliError('USAGE', `--to is the store itself: ${target.location}. Choose another one.`);
      return await withProgress(terminal, (progress) =>
        copyStore(from, target, {
          onCopied: progress.of('Copying', 'rows'),
          onCompared: progress.of('Comparing', 'rows'),
        }),
      );
    } finally {
      await target.close();
    }
  } finally {
    await from.close();
  }
}
