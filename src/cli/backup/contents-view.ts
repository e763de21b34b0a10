import type { AuditVerification } from '../../keys/audit/verify.ts';
import type { BackupContents } from '../../store/backup/back-up-store.ts';
import { countOf } from '../views/count.ts';

/** What a backup has, as JSON: a closed list of fields. */
export function contentsJson({ keys, auditEntries, schema, head, log }: BackupContents): object {
  return {
    keys,
    auditEntries,
    schema,
    head: head ? `${head.number}:${head.hash}` : null,
    log: 'entries' in log ? 'whole' : 'broken' in log ? 'broken' : 'unverifiable',
    problem: problemOf(log) ?? null,
  };
}

/** `12 keys and 40 entries of the audit log`. */
export function contentsText({ keys, auditEntries }: BackupContents): string {
  return `${countOf(keys, 'key', 'keys')} and ${countOf(auditEntries, 'entry', 'entries')} of the audit log`;
}

/** Why an audit log is not known to be whole. */
export function problemOf(log: AuditVerification): string | undefined {
  if ('entries' in log) return undefined;
  if ('broken' in log) return `The audit log is broken: entry ${log.broken} ${log.reason}.`;
  return `The audit log could not be verified: entry ${log.unverifiable} ${log.reason}.`;
}
