/** The audit log: entries, their chain, what is read, compared, verified and pruned. */
export {
  AUDIT_ACTIONS,
  AUDIT_OUTCOMES,
  type AuditAction,
  type AuditActor,
  auditChange,
  type AuditCount,
  type AuditDraft,
  type AuditedChange,
  type AuditEntry,
  type AuditNote,
  type AuditPosition,
  type AuditQuery,
  type AuditReader,
  type AuditSelection,
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
export * from './audit-log.ts';
export { type AuditCheck, checkAuditLog, findDifferences, type KeyComparison, type KeyDifference } from './compare.ts';
export { type AuditHistogram, countEntries } from './histogram.ts';
export { type AuditVerification, type ChainState, readAuditHead, VerifiedChain, verifyAuditLog } from './verify.ts';
