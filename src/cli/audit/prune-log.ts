import type { PrunedEntries } from '../../keys/audit/prune.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { CliError } from '../errors.ts';
import { countOf } from '../views/count.ts';

export interface PruneOptions {
  /** Delete the entries that were written before this time. */
  before: string | undefined;
  /** Delete them without a question. */
  yes: boolean;
  /** Whether the user can be asked. */
  interactive: boolean;
}

/** Deletes the oldest entries of the audit log; undefined if there are none. @throws CliError USAGE, CANCELLED */
export async function runPrune(
  keys: OpenKeys,
  { before, yes, interactive }: PruneOptions,
): Promise<PrunedEntries | undefined> {
  if (before === undefined)
    throw new CliError('USAGE', 'The time is missing. Pass --before <date>, or an age, such as --before 52w.');
  if (!yes && !interactive)
    throw new CliError(
      'USAGE',
      'Pass --yes to delete entries: you can only be asked on a terminal, without --json and --no-input.',
    );
  const prunable = await keys.findPrunableAudit(before);
  if (!prunable) return undefined;
  if (!yes) {
    const { confirmOrCancel } = await import('../prompts/with-prompts.ts');
    const entries = countOf(prunable.entries, 'entry', 'entries');
    await confirmOrCancel(`Delete ${entries} of the audit log, up to number ${prunable.last.number}?`);
  }
  return keys.pruneAuditLog(before);
}
