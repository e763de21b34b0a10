import type { AuditEntry, AuditValues } from '../../keys/audit/audit-entry.ts';
import { printable } from '../../keys/text.ts';
import { formatTime } from '../../keys/time.ts';

/** An entry of the audit log as JSON: a closed list of fields. */
export function auditJson({ number, at, actor, action, key, before, after, address, hash }: AuditEntry): object {
  return {
    number,
    at: formatTime(at),
    actor,
    action,
    key,
    before,
    after,
    ...(address !== undefined && { address }),
    hash,
  };
}

export const AUDIT_HEAD = ['NUMBER', 'TIME', 'ACTOR', 'ACTION', 'KEY', 'CHANGES'];

/** An entry as the cells of a row. */
export function auditRow({ number, at, actor, action, key, before, after, address }: AuditEntry): string[] {
  const name = actor.name === null ? '-' : printable(actor.name, 100);
  const place = address === undefined ? '' : ` from ${printable(address, 100)}`;
  return [
    String(number),
    formatTime(at),
    `${actor.kind.toLowerCase()} ${name}${place}`,
    action,
    key ? printable(key.name, 100) : '-',
    changesText(before, after),
  ];
}

/** `roles: VIEWER -> GUEST`, or all fields of a key that was created or deleted. */
function changesText(before: AuditValues | null, after: AuditValues | null): string {
  const fields = Object.keys(after ?? before ?? {});
  const parts = fields.map((field) => {
    const values = [before, after].filter((side) => side !== null).map((side) => valueOf(side[field]));
    return `${field}: ${values.join(' -> ')}`;
  });
  return parts.filter((part) => !/: (?:-|false)$/.test(part)).join('; ') || '-';
}

function valueOf(value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value)) return value.join(',');
  return printable(typeof value === 'string' ? value : JSON.stringify(value), 200);
}
