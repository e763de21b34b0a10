import { formatCount } from '../../../cli/output.ts';
import { withKeys } from '../../../cli/with-keys.ts';
import { failureBy, type Finding } from '../inspection/finding.ts';

/** The outcome of repairs. */
export interface Fixes {
  /** The repairs, as sentences for users. */
  readonly fixed: string[];
  /** The bytes that were freed; null for PostgreSQL, and for a store that was not changed. */
  readonly freedBytes: number | null;
  /** The findings of repairs that failed. */
  readonly failed: Finding[];
}

/** Checks of a store that must pass before it is opened for changes. Opening an older one would migrate it. */
const NEEDED: ReadonlySet<string> = new Set(['STORE', 'SCHEMA', 'INTEGRITY']);

/** Makes the repairs in the findings, and returns the free space of the store to the system. */
export async function fix(findings: readonly Finding[], database: string | undefined): Promise<Fixes> {
  const fixed: string[] = [];
  const failures: Finding[] = [];
  const attempt = async (check: string, work: () => Promise<void> | void) => {
    try {
      await work();
    } catch (error) {
      const failed = failureBy(check, error);
      // If the store cannot be opened, its check has already reported that.
      if (!findings.some(({ message }) => message === failed.message)) failures.push(failed);
    }
  };
  for (const { check, fix: repair, remedy } of findings)
    if (repair)
      await attempt(check, () => {
        repair();
        fixed.push(`Done: ${remedy}`);
      });
  let freedBytes: number | null = null;
  const isSound = findings.every(({ check, status }) => !NEEDED.has(check) || status === 'ok');
  if (isSound)
    await attempt('SPACE', async () => {
      const { freed, store } = await compact(database);
      freedBytes = freed;
      fixed.push(
        freed === null
          ? `Vacuumed the tables of ${store}.`
          : `Returned ${formatCount(freed, 'byte', 'bytes')} of free space in ${store} to the disk.`,
      );
    });
  return { fixed, freedBytes, failed: failures };
}

/** Returns free space in steps, between which others can use the store. @throws KeysError STORE_… */
function compact(database: string | undefined): Promise<{ freed: number | null; store: string }> {
  return withKeys({ database, ifMissing: 'fail' }, async (keys) => {
    const compacting = keys.compact();
    let step = await compacting.next();
    while (!step.done) step = await compacting.next();
    return { freed: step.value, store: keys.location };
  });
}
