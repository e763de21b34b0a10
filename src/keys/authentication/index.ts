/** From a secret to a principal: verified keys, what they are used for, and people's sessions. */
export { Activity, type ActivityEvents, type ActivityWriters, UsageRetention, writeEvents } from './activity.ts';
export {
  Authenticator,
  type CheckCounts,
  type Identification,
  identify,
  lookUp,
  noChecks,
  type RefusalReason,
  type SecretStatus,
  type VerifiedKey,
} from './authenticator.ts';
export * from './people.ts';
export { Sessions } from './sessions.ts';
