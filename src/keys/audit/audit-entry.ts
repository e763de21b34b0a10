import { hash } from 'node:crypto';
import type { ApiKey } from '../key/api-key.ts';
import { prefixOf } from '../secret/secret.ts';
import { formatTime } from '../time.ts';

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
  'IMPORT',
  'REFUSE',
] as const;
/** What was done. REFUSE is a request that was not let in, or not let do what it asked for. */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who did it: a user of the command line, a key, or a request without a valid key. */
export const ACTOR_KINDS = ['CLI', 'KEY', 'REQUEST'] as const;
export interface AuditActor {
  kind: (typeof ACTOR_KINDS)[number];
  /** The id of the key. */
  id: string | null;
  /** The name of the user or of the key. */
  name: string | null;
}

/** The fields of a key, as far as they changed or matter. Never a secret, nor what one is recognised by. */
export type AuditValues = Readonly<Record<string, unknown>>;

/** What is to be written down. */
export interface AuditDraft {
  /** Milliseconds since 1970. */
  at: number;
  actor: AuditActor;
  action: AuditAction;
  key: { id: string; name: string } | null;
  before: AuditValues | null;
  after: AuditValues | null;
}

/** An entry of the audit log. */
export interface AuditEntry extends AuditDraft {
  /** 1 for the first, without gaps. */
  number: number;
  /** SHA-256 in hex over this entry and the hash of the one before. */
  hash: string;
}

/** Which entries of the audit log are meant. */
export interface AuditFilter {
  /** The id or the name of the key that was changed. */
  key?: string | undefined;
  /** The id or the name of the key that did it, or the name of the user. */
  actor?: string | undefined;
  action?: AuditAction | undefined;
  /** From this time on, in milliseconds since 1970. */
  since?: number | undefined;
  /** Before this time, in milliseconds since 1970. */
  until?: number | undefined;
}

export interface AuditQuery extends AuditFilter {
  limit: number;
  order: 'newest' | 'oldest';
  /** Only entries with a smaller number. */
  before?: number | undefined;
  /** Only entries with a larger number. */
  after?: number | undefined;
}

/** What can be asked of the audit log. */
export interface AuditReader {
  find(query: AuditQuery): Promise<AuditEntry[]>;
  /** The number and hash of the newest entry. */
  head(): Promise<{ number: number; hash: string } | undefined>;
}

/** The hash before the first entry. */
export const CHAIN_START = '0'.repeat(64);

/** The hash of an entry, which covers all that came before it by the hash of the previous one. */
export function chainHash(
  { number, at, actor, action, key, before, after }: Omit<AuditEntry, 'hash'>,
  previous: string,
): string {
  const fields = [
    previous,
    number,
    at,
    actor.kind,
    actor.id,
    actor.name,
    action,
    key?.id ?? null,
    key?.name ?? null,
    before,
    after,
  ];
  return hash('sha256', JSON.stringify(fields), 'hex');
}

/** All of a key that the audit log keeps. */
export function auditValuesOf(key: ApiKey): AuditValues {
  const { rotation } = key;
  return {
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
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
  };
}

/** What differs between two states of a key. */
export function auditChange(before: ApiKey, after: ApiKey): { before: AuditValues; after: AuditValues } {
  const [old, fresh] = [auditValuesOf(before), auditValuesOf(after)];
  const changed = Object.keys(old).filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]));
  const pick = (values: AuditValues) => Object.fromEntries(changed.map((field) => [field, values[field]]));
  return { before: pick(old), after: pick(fresh) };
}
