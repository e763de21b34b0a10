import type { KeyComparison, KeyDifference } from '../../keys/audit/compare.ts';
import type { AuditVerification } from '../../keys/audit/verify.ts';
import { differenceText, type SchemaDifference } from '../../keys/schema.ts';
import { listOf, printable } from '../../keys/text.ts';
import { countOf } from './count.ts';

/** How many differing keys, or parts of the schema, are named in a text; JSON has all that were found. */
const MAX_NAMED = 5;

/**
 * What came of verifying the audit log, as JSON and as text. `keys` is there unless the log itself failed.
 * @param schema in what that of the store is not as it is made: what guards the log may be missing
 */
export function verificationView(
  result: AuditVerification,
  keys: KeyComparison | undefined,
  schema: readonly SchemaDifference[] | 'unknown',
): { whole: boolean; json: object; text: string } {
  const schemaDifferences = schema === 'unknown' ? null : schema;
  const end = schemaText(schema);
  if (!('entries' in result)) {
    const text =
      'broken' in result
        ? `The audit log is broken: entry ${result.broken} ${result.reason}.`
        : `The audit log cannot be verified: entry ${result.unverifiable} ${result.reason}.`;
    return { whole: false, json: { whole: false, ...result, schemaDifferences }, text: [text, ...end].join('\n') };
  }
  const { entries, number, hash } = result;
  const whole = (keys?.differences ?? []).length === 0 && (schema === 'unknown' || schema.length === 0);
  const text = [
    `The audit log is intact: ${countOf(entries, 'entry', 'entries')}, the last with the hash ${hash}.`,
    `Head: ${number}:${hash}`,
    ...(keys ? [keysText(keys)] : []),
    ...end,
  ].join('\n');
  return { whole, json: { whole, entries, hash, head: `${number}:${hash}`, keys, schemaDifferences }, text };
}

function schemaText(schema: readonly SchemaDifference[] | 'unknown'): string[] {
  if (schema === 'unknown') return ['The schema was not compared: this user of the database may create none.'];
  if (schema.length === 0) return [];
  const shown = firstOf(schema.map(differenceText));
  return [`The schema of the store is not as svc-api makes it: ${listOf(shown)}. "doctor" says what to do.`];
}

function keysText({ compared, older, differences }: KeyComparison): string {
  if (differences.length > 0) return `The keys are not as the log says: ${listOf(differencesText(differences))}.`;
  const rest = older > 0 ? ` ${countOf(older, 'key is', 'keys are')} older than the log, and compared in part.` : '';
  return `The keys are as the log says: ${countOf(compared, 'key', 'keys')} compared in full.${rest}`;
}

function differencesText(differences: readonly KeyDifference[]): string[] {
  return firstOf(differences.map(({ name, reason }) => `"${printable(name, 100)}" ${reason}`));
}

function firstOf(texts: readonly string[]): string[] {
  const shown = texts.slice(0, MAX_NAMED);
  return texts.length > MAX_NAMED ? [...shown, `${texts.length - MAX_NAMED} more`] : shown;
}
