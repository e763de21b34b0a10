import { confirm } from '@inquirer/prompts';
import type { PrunedEntries } from '../../keys/audit/prune.ts';
import { countOf } from '../views/count.ts';
import { cancelled, ON_STDERR, orCancelled } from './prompt.ts';

/** Asks whether to delete entries of the audit log. @throws CliError CANCELLED on Ctrl-C, or if the answer is No */
export function confirmPrune({ entries, last }: PrunedEntries): Promise<void> {
  return orCancelled(async () => {
    const what = `${countOf(entries, 'entry', 'entries')} of the audit log, up to number ${last.number}`;
    if (!(await confirm({ message: `Delete ${what}?`, default: false }, ON_STDERR))) throw cancelled();
  });
}
