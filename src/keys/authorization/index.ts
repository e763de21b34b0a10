/** Authorization: principals, the parents of a key, and the grants and keys that each can give and read. */
export { AuditAccess } from './audit-access.ts';
export * from './chain.ts';
export * from './explain.ts';
export * from './granting.ts';
export * from './policy.ts';
export * from './principal.ts';
export * from './restrictions.ts';
