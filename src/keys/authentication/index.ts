/** Authentication: from a secret to a principal, with verified keys and their use. */
export { Activity, type ActivityEvents, type ActivityWriters, writeEvents, writeUses } from './activity.ts';
export { Upkeep } from './upkeep.ts';
export { Authenticator } from './authenticator.ts';
export { type CheckCounts, lookUp, noChecks, type RefusalReason } from './look-up.ts';
export { type Identification, identify, type SecretStatus } from './identify.ts';
export type { VerifiedKey } from './verified-keys.ts';
