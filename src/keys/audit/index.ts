/** The audit log: entries, their chain, what is read, compared, verified and pruned. */
export * from './audit-entry.ts';
export * from './audit-log.ts';
export { type AuditCheck, checkAuditLog, findDifferences, type KeyComparison } from './compare.ts';
export { type AuditHistogram, countEntries } from './histogram.ts';
export { type AuditVerification, type ChainState, readAuditHead, VerifiedChain, verifyAuditLog } from './verify.ts';
