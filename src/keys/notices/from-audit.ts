import type { AuditEntry, AuditValues } from '../audit/audit-entry.ts';
import { type Notice, noticeOf, type NoticeType } from './notice.ts';

/** How many roles, and how many permissions, a notice names. */
const MAX_NAMED = 100;
/** The latest time that there is (ECMA-262, section 21.4.1.1). An entry that is damaged may have another. */
const MAX_TIME_MS = 8.64e15;

/** The notice of an entry of the audit log; undefined for one of which nobody is told. */
export function noticeOfEntry(entry: AuditEntry): Notice | undefined {
  const type = typeOf(entry);
  if (!type || !entry.apiKey) return undefined;
  const { number, at, actor, action, apiKey: key, before, after, hash } = entry;
  const data = {
    ...key,
    ...(type === 'key.leaked' ? { secret: after?.['secret'], place: after?.['place'] } : fieldsIn(after ?? before)),
    actor,
    action,
    entry: number,
  };
  // Without its time it is told, too: what throws would keep all others waiting.
  return noticeOf(type, { event: [hash], at: Math.abs(at) <= MAX_TIME_MS ? at : 0, data });
}

function typeOf({ action, before }: AuditEntry): NoticeType | undefined {
  switch (action) {
    case 'CREATE':
    case 'IMPORT':
      return 'key.created';
    case 'RESTORE':
      // One that is changed by a backup was there; of one that was damaged, it is not known what it was.
      return before === null ? 'key.created' : undefined;
    case 'DELETE':
      return 'key.deleted';
    case 'LEAK':
      return 'key.leaked';
    default:
      return undefined;
  }
}

function fieldsIn(values: AuditValues | null): object {
  const { prefix = null, roles, permissions, createdBy = null, expiresAt = null } = values ?? {};
  return { prefix, roles: some(roles), permissions: some(permissions), createdBy, expiresAt };
}

function some(list: unknown): unknown[] {
  return Array.isArray(list) ? list.slice(0, MAX_NAMED) : [];
}
