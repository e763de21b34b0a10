import { formatTime } from '../basics/index.ts';
import { type ApiKey, givenIn, storedFields, unreadValues } from '../key/index.ts';
import { prefixOf } from '../secret/index.ts';

/** The actions that the audit log records. */
export const AUDIT_ACTIONS = [
  'CREATE',
  'UPDATE',
  'DELETE',
  'ENABLE',
  'DISABLE',
  'ROTATE',
  'ROTATE_ACTIVATE',
  'ROTATE_FINISH',
  'ROTATE_ROLLBACK',
  'ADOPT',
  'IMPORT',
  'CONSENT_REQUEST',
  'CONSENT_APPROVE',
  'CONSENT_DENY',
  'CONSENT_EXCHANGE',
  'CONSENT_REPLAY',
  'CONSENT_REVOKE',
  'FEDERATE',
  'REFUSE',
  'PRUNE',
  'RESTORE',
  'LEAK',
  'CONTAIN',
  'REVIEW',
  'OBSERVE',
] as const;
/**
 * The action of an entry.
 * - REFUSE: a request whose key was refused or lacked a permission.
 * - PRUNE: the oldest entries were deleted.
 * - RESTORE: a backup was restored; with a key, its effect on that key.
 * - LEAK: a scan found a secret.
 * - FEDERATE: a token of a trusted issuer was exchanged for a key.
 * - CONTAIN: all changes by a key were undone; each undone change has an entry of its own.
 * - REVIEW: a person confirmed the list of keys.
 * - OBSERVE: a route in observe mode started, or let a request pass that it would refuse.
 */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** DONE for an action, REFUSED for a request that was refused. */
export const AUDIT_OUTCOMES = ['DONE', 'REFUSED'] as const;
/** REFUSED for requests that were refused, DONE for everything else. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** The one who acted. */
export interface AuditActor {
  /** A user of the command line, a key, a request without a valid key, or the policy. */
  kind: 'CLI' | 'KEY' | 'REQUEST' | 'POLICY';
  /** The id of the key; null for other kinds. */
  id: string | null;
  /** The name of the user or key, the prefix of a refused secret, or the rule of the policy; null if there is none. */
  name: string | null;
}

/** Fields of a key. Never a secret or its digest. */
export type AuditValues = Readonly<Record<string, unknown>>;

/** An entry of the audit log before it is chained to the others. */
export interface AuditDraft {
  /** Milliseconds since 1970. */
  at: number;
  actor: AuditActor;
  /** The action. */
  action: AuditAction;
  /** The key concerned, by the name that it had then. */
  apiKey: { id: string; name: string } | null;
  /** The old values of the fields that changed; null if there was no key before. */
  before: AuditValues | null;
  /** The new values of those fields; null if the key no longer exists. */
  after: AuditValues | null;
  /** The client's address, for a refused request or an application's request for a key. */
  address?: string;
}

/** A note for the audit log. The transaction adds the actor and the time. */
export interface AuditNote {
  action: AuditAction;
  /** The key concerned, which may be deleted by now; undefined if there is none. */
  key?: Pick<ApiKey, 'id' | 'name'> | undefined;
  before?: AuditValues | null;
  after?: AuditValues | null;
  /** The client's address, if it is known and useful. */
  address?: string | null | undefined;
}

/** An entry of the audit log. */
export interface AuditEntry extends AuditDraft {
  /** Counts from 1, without gaps. */
  number: number;
  /**
   * SHA-256 in hex of this entry and the hash of the previous one; in a log with a key, `hmac:` and HMAC-SHA-256 (RFC
   * 2104) in hex.
   */
  hash: string;
}

/** A change of a key, as the log has it. */
export type AuditedChange = Omit<AuditEntry, 'address' | 'hash'>;

/** An entry's place in the chain. */
export type AuditPosition = Pick<AuditEntry, 'number' | 'hash'>;

/** The fields of a key that the audit log records. */
export function auditValuesOf(key: ApiKey): AuditValues {
  const { rotation } = key;
  return {
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
    limits: key.limits,
    allowFrom: key.allowFrom,
    prefix: prefixOf(key.publicId),
    createdBy: key.createdBy,
    expiresAt: formatTime(key.expiresAt),
    disabledAt: formatTime(key.disabledAt),
    managed: key.managed,
    rotation: rotation && {
      previousPrefix: prefixOf(rotation.previousPublicId),
      grace: rotation.grace,
      previousEndsAt: formatTime(rotation.previousEndsAt),
    },
    ...unreadValues(key.unknownFields),
    // Fields without a value are left out, so that entries keep their hashes when a field is added to svc-api.
    ...givenIn(storedFields, key),
  };
}

/** The fields that differ between two states of a key. */
export function auditChange(before: ApiKey, after: ApiKey): { before: AuditValues; after: AuditValues } {
  const [oldValues, newValues] = [auditValuesOf(before), auditValuesOf(after)];
  const changed = Object.keys({ ...oldValues, ...newValues }).filter(
    (field) =>
      oldValues[field] !== newValues[field] && JSON.stringify(oldValues[field]) !== JSON.stringify(newValues[field]),
  );
  const pick = (values: AuditValues) => Object.fromEntries(changed.map((field) => [field, values[field] ?? null]));
  return { before: pick(oldValues), after: pick(newValues) };
}
