/** From a secret to a principal: verified keys, and their use. */
export { Activity, type ActivityEvents, type ActivityWriters, writeEvents } from './activity.ts';
export { UsageRetention } from './usage-retention.ts';
export { Authenticator } from './authenticator.ts';
export { type CheckCounts, lookUp, noChecks, type RefusalReason } from './look-up.ts';
export { type Identification, identify, type SecretStatus } from './identify.ts';
export type { VerifiedKey } from './verified-keys.ts';
