import type { AuditEntry, AuditValues } from '../../keys/audit/audit-entry.ts';
import { printable } from '../../keys/text.ts';
import { formatDuration, formatTime } from '../../keys/time.ts';
import type { Column } from './table.ts';

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

/** The columns of the log. On a narrow terminal, those that say least of what happened are left out. */
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
  const parts = fields.map((field) => {
    const values = [before, after].filter((side) => side !== null).map((side) => valueOf(field, side[field]));
    return `${field}: ${values.join(' -> ')}`;
  });
  return parts.filter((part) => !/: (?:-|false)$/.test(part)).join('; ') || '-';
}

function valueOf(field: string, value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'object') {
    const set = Object.entries(value).filter(([, each]) => each !== null);
    return set.map(([name, each]) => `${name}: ${valueOf(name, each)}`).join(', ');
  }
  if (field === 'grace' && typeof value === 'number') return formatDuration(value);
  return printable(typeof value === 'string' ? value : JSON.stringify(value), 200);
}
