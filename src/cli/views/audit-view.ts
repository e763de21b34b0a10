import { type Column, firstOf, formatCount } from '../output.ts';
import type { AuditEntry, AuditValues, AuditVerification, KeyComparison } from '../../keys/audit/index.ts';
import { differenceText, type SchemaDifference } from '../../keys/repository/index.ts';
import { formatDuration, formatTime, formatList, inOneLine, isRecord, printable } from '../../keys/basics/index.ts';
import { formOf, isNone, textOf } from '../../keys/key/index.ts';

/** An entry of the audit log as JSON: a closed list of fields. */
export function auditJson({ number, at, actor, action, apiKey, before, after, address, hash }: AuditEntry): object {
  return {
    number,
    at: formatTime(at),
    actor,
    action,
    apiKey,
    before,
    after,
    ...(address !== undefined && { address }),
    hash,
  };
}

/** The columns of the log. On a narrow terminal, the least important ones are left out. */
export const AUDIT_COLUMNS: readonly Column[] = [
  { title: 'NUMBER', leaves: 1 },
  { title: 'TIME' },
  { title: 'ACTOR', least: 8, leaves: 3 },
  { title: 'ACTION', least: 8 },
  { title: 'KEY', least: 8 },
  { title: 'CHANGES', least: 10, leaves: 2 },
];

/** An entry as the cells of a row. On a terminal, times are without milliseconds. */
export function auditRow(
  { number, at, actor, action, apiKey, before, after, address }: AuditEntry,
  isTerminal: boolean,
): string[] {
  const name = actor.name === null ? '-' : printable(actor.name, 100);
  const place = address === undefined ? '' : ` from ${printable(address, 100)}`;
  const time = formatTime(at);
  return [
    String(number),
    isTerminal ? time.replace(/\.\d+Z$/, 'Z') : time,
    `${actor.kind.toLowerCase()} ${name}${place}`,
    action,
    apiKey ? printable(apiKey.name, 100) : '-',
    changesText(before, after),
  ];
}

/** `roles: VIEWER -> GUEST`, or all fields of a key that was created or deleted. */
function changesText(before: AuditValues | null, after: AuditValues | null): string {
  const fields = Object.keys(after ?? before ?? {});
  const parts = fields.flatMap((field) => {
    const values = [before, after].filter((side) => side !== null).map((side) => side[field]);
    const isUnset = (value: unknown) => isNone(value) || (value === false && formOf(field) !== 'boolean');
    if (values.every(isUnset)) return [];
    return `${field}: ${values.map((value) => valueOf(field, value)).join(' -> ')}`;
  });
  return parts.join('; ') || '-';
}

function valueOf(field: string, value: unknown): string {
  if (isNone(value)) return '-';
  if (formOf(field) === 'json') return textOf(value);
  if (Array.isArray(value)) return value.map((item) => valueOf(field, item)).join(',');
  if (isRecord(value)) {
    const set = Object.entries(value).filter(([, each]) => each !== null);
    return set.map(([name, each]) => `${printable(name)}: ${valueOf(name, each)}`).join(', ');
  }
  if (field === 'grace' && typeof value === 'number') return formatDuration(value);
  return printable(typeof value === 'string' ? inOneLine(value) : JSON.stringify(value), 200);
}

/** The most differing keys, or parts of the schema, that a text names; JSON has all that were found. */
const MAX_NAMED = 5;

/**
 * The result of verifying the audit log, as JSON and as text. `keys` is missing if the log itself failed.
 * @param schema the differences of the store's schema, since guards of the log may be missing
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
    `The audit log is intact: ${formatCount(entries, 'entry', 'entries')}, the last with the hash ${hash}.`,
    `Head: ${number}:${hash}`,
    ...(keys ? [keysText(keys)] : []),
    ...end,
  ].join('\n');
  return { whole, json: { whole, entries, hash, head: `${number}:${hash}`, keys, schemaDifferences }, text };
}

function schemaText(schema: readonly SchemaDifference[] | 'unknown'): string[] {
  if (schema === 'unknown')
    return ['The schema was not compared: this database user cannot create a schema for the comparison.'];
  if (schema.length === 0) return [];
  const shown = firstOf(schema.map(differenceText), MAX_NAMED);
  const problem = `The schema of the store differs from the one that svc-api creates: ${formatList(shown)}.`;
  return [`${problem} "svc-api apikey doctor" says what to do.`];
}

function keysText({ compared, older, differences }: KeyComparison): string {
  const shown = firstOf(
    differences.map(({ name, reason }) => `"${printable(name, 100)}" ${reason}`),
    MAX_NAMED,
  );
  if (shown.length > 0) return `The keys differ from the log: ${formatList(shown)}.`;
  const rest =
    older > 0 ? ` ${formatCount(older, 'key is', 'keys are')} older than the log, and only partly compared.` : '';
  return `The keys match the log: ${formatCount(compared, 'key', 'keys')} compared in full.${rest}`;
}
