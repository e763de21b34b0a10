/** Authentication: from a secret to a principal, with verified keys and their usage. */
export { Activity, type ActivityEvents, type ActivityWriters, writeEvents } from './activity.ts';
export { UsageRetention } from './usage-retention.ts';
export { Authenticator } from './authenticator.ts';
export { type CheckCounts, lookUp, noChecks, type RefusalReason } from './look-up.ts';
export { type Identification, identify, type SecretStatus } from './identify.ts';
export type { VerifiedKey } from './verified-keys.ts';
