/** A key: its fields with their rules, its state, and its usage. */
export * from './allow-from.ts';
export * from './api-key.ts';
export * from './audience.ts';
export * from './expiry.ts';
export * from './field-changes.ts';
export * from './fields.ts';
export * from './identities.ts';
export * from './key-change.ts';
export * from './name.ts';
export { appliedLimits } from './restriction.ts';
export * from './rotated-secret.ts';
export * from './status.ts';
export * from './labels.ts';
export * from './rotation.ts';
export * from './skeleton.ts';
export * from './use.ts';
