import type { KeyComparison, KeyDifference } from '../../keys/audit/compare.ts';
import type { AuditVerification } from '../../keys/audit/verify.ts';
import { listOf, printable } from '../../keys/text.ts';
import { countOf } from './count.ts';

/** How many differing keys are named in a text; JSON has all that were found. */
const MAX_NAMED = 5;

/** What came of verifying the audit log, as JSON and as text. `keys` is there unless the log itself failed. */
export function verificationView(
  result: AuditVerification,
  keys: KeyComparison | undefined,
): { whole: boolean; json: object; text: string } {
  if ('broken' in result) return failure(result, `The audit log is broken: entry ${result.broken} ${result.reason}.`);
  if ('unverifiable' in result)
    return failure(result, `The audit log cannot be verified: entry ${result.unverifiable} ${result.reason}.`);
  const { entries, number, hash } = result;
  const whole = !keys || keys.differences.length === 0;
  const text = [
    `The audit log is intact: ${countOf(entries, 'entry', 'entries')}, the last with the hash ${hash}.`,
    `Head: ${number}:${hash}`,
    ...(keys ? [keysText(keys)] : []),
  ].join('\n');
  return { whole, json: { whole, entries, hash, head: `${number}:${hash}`, keys }, text };
}

function failure(result: object, text: string): { whole: false; json: object; text: string } {
  return { whole: false, json: { whole: false, ...result }, text };
}

function keysText({ compared, older, differences }: KeyComparison): string {
  if (differences.length > 0) return `The keys are not as the log says: ${listOf(differencesText(differences))}.`;
  const rest = older > 0 ? ` ${countOf(older, 'key is', 'keys are')} older than the log, and compared in part.` : '';
  return `The keys are as the log says: ${countOf(compared, 'key', 'keys')} compared in full.${rest}`;
}

function differencesText(differences: readonly KeyDifference[]): string[] {
  const shown = differences.slice(0, MAX_NAMED).map(({ name, reason }) => `"${printable(name, 100)}" ${reason}`);
  return differences.length > MAX_NAMED ? [...shown, `${differences.length - MAX_NAMED} more`] : shown;
}
