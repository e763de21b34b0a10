import { relativeTime } from '../../keys/basics/index.ts';
import type { PlannedChange } from '../../keys/key/index.ts';
import { changeText, fieldText } from './key-view.ts';

/** Changes as a diff: `+` for a new or renewed key, `~` for a changed one, `-` for a deleted one. */
export function formatDiff(changes: readonly PlannedChange[]): string[] {
  return changes.flatMap(({ action, name, secretSince, changes: fields = [] }) => {
    if (action === 'DELETE') return [`- delete "${name}"`];
    if (action === 'CREATE')
      return [`+ create "${name}"`, ...fields.map(({ field, after }) => `    ${field}: ${fieldText(field, after)}`)];
    const age = secretSince === undefined ? '' : ` (secret is ${ageOf(secretSince)})`;
    const head = action === 'RENEW' ? `+ renew "${name}"` : `~ ${action.toLowerCase()} "${name}"${age}`;
    return [head, ...fields.map((change) => `    ${changeText(change)}`)];
  });
}

/** `92 days old`. */
function ageOf(since: number): string {
  const now = Date.now();
  return relativeTime(Math.min(since, now - 1000), now).replace(/ ago$/, ' old');
}
