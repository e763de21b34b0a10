import { createHmac, hash, type KeyObject } from 'node:crypto';
import { formatTime, KeysError, withoutUndefined } from '../basics/index.ts';
import { type ApiKey, keyRestrictions } from '../key/index.ts';
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
 * What was done. REFUSE is a request whose key was refused or lacked a permission; PRUNE is the deletion of the oldest
 * entries; RESTORE is that of a backup and, with a key, what that did to it; LEAK is that a scan has found a secret;
 * FEDERATE is that a token of an issuer that is trusted was exchanged for a key; CONTAIN is that all that a key did was undone, each change of a key
 * with an entry of its own beside it; REVIEW is that somebody has attested which keys there are; OBSERVE is that a
 * route that observes has begun to, or has let pass what it would refuse.
 */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** How it ended: what was done, and requests that were refused. */
export const AUDIT_OUTCOMES = ['DONE', 'REFUSED'] as const;
/** DONE for everything but requests that were refused. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** Who did it. */
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
  /** Who did it. */
  actor: AuditActor;
  /** What was done. */
  action: AuditAction;
  /** The key concerned, by the name that it had then. */
  apiKey: { id: string; name: string } | null;
  /** The old values of the fields that changed; null if there was no key before. */
  before: AuditValues | null;
  /** The new values of those fields; null if there is no key any more. */
  after: AuditValues | null;
  /** The client's address, of a refused request, and of what an application asks for. */
  address?: string;
}

/** What is noted in the audit log: who did it, and when, is known by the transaction. */
export interface AuditNote {
  action: AuditAction;
  /** The key concerned; undefined if there is none. It may be gone. */
  key?: Pick<ApiKey, 'id' | 'name'> | undefined;
  before?: AuditValues | null;
  after?: AuditValues | null;
  /** The client's address, where it is known and tells something. */
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

/** Selects entries of the audit log. */
export interface AuditFilter {
  /** The id or name of the key that was changed. */
  apiKey?: string | undefined;
  /** The id or name of the key, or the name of the user, that did it. */
  actor?: string | undefined;
  /** What was done. */
  action?: AuditAction | undefined;
  /** Only what was done, or only requests that were refused. */
  outcome?: AuditOutcome | undefined;
  /** At or after this time, in milliseconds since 1970. */
  since?: number | undefined;
  /** Before this time, in milliseconds since 1970. */
  until?: number | undefined;
}

/** The key whose entries a reader sees, and those of the keys that it created. */
export interface AuditOwner {
  id: string;
  withCreated: boolean;
}

/** Entries that match a filter, as far as somebody may read them. */
export interface AuditSelection extends AuditFilter {
  /**
   * Only entries about or by the keys of this owner, and those that concern no key; null for the latter alone. A filter
   * never matches the name of another key or user.
   */
  owner?: AuditOwner | null | undefined;
  /** Only entries with a smaller number. */
  before?: number | undefined;
  /** Only entries with a larger number. */
  after?: number | undefined;
}

/** A page of entries that match a filter. */
export interface AuditQuery extends AuditSelection {
  /** The maximum number of entries. */
  limit: number;
  /** Which entries come first. */
  order: 'newest' | 'oldest';
}

/** A change of a key, as the log has it. */
export type AuditedChange = Omit<AuditEntry, 'address' | 'hash'>;

/** How many entries were written in a period of time. */
export interface AuditCount {
  /** When it begins, in milliseconds since 1970. */
  start: number;
  /** How many there are. */
  entries: number;
  /** How many of them are requests that were refused. */
  refused: number;
}

/** An entry's place in the chain. */
export type AuditPosition = Pick<AuditEntry, 'number' | 'hash'>;

/** Read access to the audit log. */
export interface AuditReader {
  /** The key of the chain; undefined if there is none. */
  readonly key: KeyObject | undefined;
  /** The entries that match, in the order asked for. */
  find(query: AuditQuery): Promise<AuditEntry[]>;
  /** The changes of the keys with these ids, without refused requests and containments, in the order asked for. */
  findChanges(
    ids: readonly string[],
    page: Pick<AuditQuery, 'limit' | 'order' | 'before' | 'after'>,
  ): Promise<AuditedChange[]>;
  /**
   * The ids of the keys that were changed, but for being created or imported, by the entries after a number, up to
   * another. One may be there several times.
   */
  findChanged(after: number, upTo: number): Promise<string[]>;
  /** How many entries match in each period of so many milliseconds in which there is any, in no order. */
  count(selection: AuditSelection, periodMs: number): Promise<AuditCount[]>;
  /** The number of the first entry with at least this number, and when it was written; undefined if there is none. */
  timeFrom(number: number): Promise<{ number: number; at: number } | undefined>;
  /** The newest entry; undefined while there is none. */
  head(): Promise<AuditPosition | undefined>;
  /** The last entry that was pruned; undefined if none was. The first that is left is chained to it. */
  start(): Promise<AuditPosition | undefined>;
  /**
   * The last entry of those that were written before a time, without a gap, that a webhook need not be told of any more.
   * Times are milliseconds since 1970.
   */
  lastBefore(time: number, now: number): Promise<AuditPosition | undefined>;
  /**
   * The last changes of keys that are not in the store, although that change is not a deletion: of the entries after a
   * number, up to another.
   */
  findLost(after: number, upTo: number): Promise<AuditEntry[]>;
}

/** Write access to the audit log, in a transaction. */
export interface AuditWriter {
  readonly auditLog: AuditReader;
  /** Chains entries to the audit log. @throws KeysError STORE_AUDIT_KEY if it has a key that is not known */
  appendToAuditLog(entries: readonly AuditDraft[]): Promise<void>;
  /** Lets the log start after this entry: earlier ones are no part of it from then on. */
  startAuditLogAfter(last: AuditPosition): Promise<void>;
  /** Removes so many entries from before the start, at most. @returns how many */
  removePruned(limit: number): Promise<number>;
  /** Forgets so many secrets that keys lost before a time, in milliseconds since 1970, at most. @returns how many */
  forgetRotatedSecrets(before: number, limit: number): Promise<number>;
}

/** The hash that the first entry is chained to. */
export const CHAIN_START = '0'.repeat(64);

/** The tag of hashes that only a holder of the key can make. */
const KEYED = 'hmac:';

/** Whether a hash was made with a key. After the first such entry, all must be: otherwise the key could be left out. */
export function isKeyedHash(text: string): boolean {
  return text.startsWith(KEYED);
}

/** The hash of an entry, made with a key or without. It covers all earlier entries through that of the previous one. */
export function chainHash(
  { number, at, actor, action, apiKey: key, before, after, address }: Omit<AuditEntry, 'hash'>,
  previous: string,
  secret?: KeyObject,
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
    // Entries without one keep the hash that they had before there were addresses.
    ...(address === undefined ? [] : [address]),
  ];
  const text = JSON.stringify(fields);
  return secret ? KEYED + createHmac('sha256', secret).update(text).digest('hex') : hash('sha256', text, 'hex');
}

/** The fields of a key that the audit log records. */
export function auditValuesOf(key: ApiKey): AuditValues {
  const { rotation } = key;
  return {
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
    ...keyRestrictions(key),
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
    ...(key.person && { person: key.person }),
    ...(key.audience !== null && { audience: key.audience }),
    ...(key.owner !== null && { owner: key.owner }),
    ...(key.tags.length > 0 && { tags: key.tags }),
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

/** Refuses to extend a log that has a key without that key. @throws KeysError STORE_AUDIT_KEY */
export function requireAuditKey(head: AuditPosition | undefined, key: KeyObject | undefined): void {
  if (!head || !isKeyedHash(head.hash) || key) return;
  throw new KeysError(
    'STORE_AUDIT_KEY',
    'The audit log of this key store has a key. Set SVC_API_AUDIT_KEY to the path of that key.',
  );
}

/**
 * Whether the newest entry of a log that has a key was made with the key at hand. If not, it is another key, or the
 * entry was changed.
 * @throws KeysError STORE_AUDIT_KEY without a key
 */
export async function matchesAuditKey(log: AuditReader): Promise<boolean> {
  const head = await log.head();
  requireAuditKey(head, log.key);
  if (!head || !isKeyedHash(head.hash)) return true;
  const [newest, previous = await log.start()] = await log.find({
    order: 'newest',
    before: head.number + 1,
    limit: 2,
  });
  if (newest?.number !== head.number) return true;
  return chainHash(newest, previous?.hash ?? CHAIN_START, log.key) === head.hash;
}

/** A request whose key was refused or lacked a permission. */
export interface Refusal {
  /** `forbidden`, or why the key was refused. */
  reason: string;
  /** Who made the request. */
  actor: AuditActor;
  /** The key that was refused, if it is known. */
  apiKey: AuditDraft['apiKey'];
  /** The permissions that were missing. */
  missing?: readonly string[] | undefined;
  /** The tool of an MCP server that was called. */
  tool?: string | undefined;
  /** The client's address, if it is known. */
  address?: string | undefined;
  /** The pattern of the route that has let it pass nevertheless, since it only observes. */
  route?: string | undefined;
  /** The key of the edge that has reported it. */
  edge?: { readonly id: string; readonly name: string } | undefined;
}

/** A kind of refusals, and how many of it were not recorded yet. */
interface CountedRefusal {
  refusal: Refusal;
  count: number;
}

/** How long repeated refusals are only counted. */
const PERIOD_MS = 600_000;
/** How many kinds of refusals of one key are counted separately in one period; the others share one count. */
const MAX_KINDS = 5;
/** The number of keys counted separately in one period, in all and for the edges of one key. */
const [MAX_KEYS, MAX_KEYS_OF_EDGE] = [1000, 100];
/** The kind of those that share one count. */
const VARIOUS = '';

/**
 * Samples refusals for the audit log: each kind once in a period, and its repetitions as one count at its end. However
 * many requests a client sends, the number of entries is bounded: for each key that is known, and for all requests
 * without a known key together, so that those cannot hide what concerns a key.
 */
export class RefusalSampler {
  #keys = new Map<string, Map<string, CountedRefusal>>();
  /** How many of them were reported by edges, by the ids of their keys; those of this process have none. */
  #sizes = new Map<string | undefined, number>();
  #periodEnd = 0;
  #due: AuditDraft[] = [];

  /** Records a refusal, or several of its kind, at a time in milliseconds since 1970. */
  add(refusal: Refusal, now: number, times = 1): void {
    this.#endPeriod(now);
    const { edge, route } = refusal;
    const most = edge ? MAX_KEYS_OF_EDGE : MAX_KEYS;
    if ((this.#sizes.get(edge?.id) ?? 0) < most || this.#keys.has(keyOf(refusal))) this.#count(refusal, now, times);
    // An edge's report names routes, too.
    else this.#count(generalize({ actor: NOBODY, apiKey: null, edge, route: edge && route ? '' : route }), now, times);
  }

  #count(refusal: Refusal, now: number, times: number): void {
    const { reason, actor, missing, tool, address, edge } = refusal;
    const key = keyOf(refusal);
    let kinds = this.#keys.get(key);
    if (!kinds) {
      this.#keys.set(key, (kinds = new Map<string, CountedRefusal>()));
      this.#sizes.set(edge?.id, (this.#sizes.get(edge?.id) ?? 0) + 1);
    }
    const kind = JSON.stringify([reason, actor.name, missing, tool, address]);
    const counted = kinds.get(kind) ?? kinds.get(VARIOUS);
    if (counted) counted.count += times;
    else if (kinds.size < MAX_KINDS) {
      kinds.set(kind, { refusal, count: 0 });
      this.#addDraft(refusal, times, now);
    } else kinds.set(VARIOUS, { refusal: generalize(refusal), count: times });
  }

  /** Removes and returns the entries that are due; with `all` also the counts of the current period. */
  take(now: number, all = false): AuditDraft[] {
    this.#endPeriod(all ? Number.POSITIVE_INFINITY : now, now);
    const due = this.#due;
    this.#due = [];
    return due;
  }

  #endPeriod(until: number, now = until): void {
    if (until < this.#periodEnd) return;
    for (const kinds of this.#keys.values())
      for (const { refusal, count } of kinds.values()) if (count > 0) this.#addDraft(refusal, count, now);
    this.#keys = new Map();
    this.#sizes = new Map();
    this.#periodEnd = now + PERIOD_MS;
  }

  #addDraft({ reason, actor, apiKey, missing, tool, address, route, edge }: Refusal, count: number, at: number): void {
    const optional = { missing, tool, route, edge: edge && { id: edge.id, name: edge.name } };
    const after = { reason, count, ...withoutUndefined(optional) };
    this.#due.push({
      at,
      actor,
      action: route === undefined ? 'REFUSE' : 'OBSERVE',
      apiKey,
      before: null,
      after,
      ...(address !== undefined && { address }),
    });
  }
}

const NOBODY: AuditActor = { kind: 'REQUEST', id: null, name: null };

/** What identifies the key that a refusal concerns; the same for all that concern none. */
function keyOf({ actor, apiKey, route, edge }: Pick<Refusal, 'actor' | 'apiKey' | 'route' | 'edge'>): string {
  return JSON.stringify([actor.id, apiKey?.id, route, edge?.id]);
}

/** What refusals of different kinds have in common: the key, if it is known. */
function generalize({ actor, apiKey, route, edge }: Omit<Refusal, 'reason'>): Refusal {
  return { reason: 'various', actor: actor.kind === 'KEY' ? actor : NOBODY, apiKey, route, edge };
}
