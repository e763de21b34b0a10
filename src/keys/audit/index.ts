/** The audit log: its entries and their chain, and how it is read, compared, verified and pruned. */
export * from './audit-entry.ts';
export * from './audit-reader.ts';
export * from './chain.ts';
export * from './refusals.ts';
export * from './audit-log.ts';
export * from './prune.ts';
export { type AuditCheck, checkAuditLog, findDifferences, type KeyComparison } from './compare.ts';
export { type AuditHistogram, countEntries } from './histogram.ts';
export { type ChainState, VerifiedChain } from './verified-chain.ts';
export { type AuditVerification, readAuditHead, verifyAuditLog } from './verify.ts';
