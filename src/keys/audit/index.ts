/** The audit log: entries, their chain, what is read, compared, verified and pruned. */
export {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditActor,
  auditChange,
  type AuditDraft,
  type AuditEntry,
  type AuditNote,
  type AuditPosition,
  type AuditQuery,
  type AuditReader,
  type AuditValues,
  auditValuesOf,
  type AuditWriter,
  CHAIN_START,
  chainHash,
  matchesAuditKey,
  type Refusal,
  RefusalSampler,
  requireAuditKey,
} from './audit-entry.ts';
export { AUDIT_OPTIONS, type AuditRequest, findPrunable, type PrunedEntries, readAuditRequest } from './audit-log.ts';
export {
  type AuditVerification,
  compareKeys,
  findDifferences,
  type KeyComparison,
  type KeyDifference,
  readAuditHead,
  verifyAuditLog,
} from './verify.ts';
