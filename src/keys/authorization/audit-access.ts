import {
  AUDIT_OPTIONS,
  type AuditEntry,
  type AuditRequest,
  type AuditValues,
  type AuditVerification,
  compareKeys,
  findPrunable,
  type KeyComparison,
  matchesAuditKey,
  pruneAuditLog,
  type PrunedEntries,
  readAuditHead,
  readAuditRequest,
  verifyAuditLog,
} from '../audit/index.ts';
import { amount, checkOptions, type ProgressReport, requirePastTime } from '../basics/index.ts';
import type { KeyFinder, KeyRepository } from '../repository/index.ts';
import { type Actor, mayFor, OPERATOR, requirePermission, uses } from './principal.ts';

/** What reading the audit log needs from outside. */
export interface AuditAccessOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** The user of the command line, for the audit log. */
  operator: string;
}

/** The audit log, as far as each may read it. */
export class AuditAccess {
  readonly #options: AuditAccessOptions;

  constructor(options: AuditAccessOptions) {
    this.#options = options;
  }

  /**
   * Entries of the audit log, the newest first: all of them for readers of all keys; for others, those about or by keys
   * that they may read, and those that concern no key.
   * @throws KeysError OPTION_INVALID, INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async read(
    request: AuditRequest,
    actor: Actor,
    place: { before?: number; after?: number } = {},
  ): Promise<AuditEntry[]> {
    checkOptions('keys.audit.read', request, AUDIT_OPTIONS);
    checkOptions<typeof place>('keys.audit.read', place, { before: amount, after: amount });
    if (actor !== OPERATOR) requirePermission(actor, 'LOGS', 'READ_ANY');
    const query = readAuditRequest(request, this.#options.clock());
    const order = place.after === undefined ? 'newest' : 'oldest';
    const { repository } = this.#options;
    const owner = auditOwner(actor);
    const entries = await repository.auditLog.find({ ...query, ...place, order, owner });
    return owner === undefined ? entries : redactEntries(entries, actor, repository);
  }

  /**
   * Goes through the whole audit log, and tells whether it is as it was written.
   * @param head the newest entry at an earlier time, as `<number>:<hash>`, which the log must still have
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async verify(head?: string, onProgress?: ProgressReport): Promise<AuditVerification> {
    const known = head === undefined ? undefined : readAuditHead(head);
    return verifyAuditLog(this.#options.repository.auditLog, known, onProgress);
  }

  /**
   * Whether the newest entry of the audit log was made with the key at hand; true in a log without a key.
   * @throws KeysError STORE_AUDIT_KEY if the log has a key and there is none at hand; other STORE_ codes
   */
  matchesKey(): Promise<boolean> {
    return matchesAuditKey(this.#options.repository.auditLog);
  }

  /** Compares all keys with what the audit log says of them. @throws KeysError STORE_… */
  compare(onProgress?: ProgressReport): Promise<KeyComparison> {
    const { repository } = this.#options;
    return compareKeys(repository.auditLog, repository, onProgress);
  }

  /**
   * The entries of the audit log that were written before a time, written as in `AuditRequest`; undefined if there are
   * none.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async findPrunable(before: string): Promise<PrunedEntries | undefined> {
    return findPrunable(this.#options.repository.auditLog, requirePastTime(before, this.#options.clock()));
  }

  /**
   * Deletes the entries of the audit log that were written before a time, for the operator, and records that. The rest
   * can still be verified.
   * @param before as in `AuditRequest`
   * @returns what was deleted; undefined if there was nothing
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async prune(before: string): Promise<PrunedEntries | undefined> {
    const now = this.#options.clock();
    const time = requirePastTime(before, now);
    const { repository, operator } = this.#options;
    return repository.write((writer) => pruneAuditLog(writer, time, { now, operator }), { now });
  }
}

/**
 * Whose entries of the audit log an actor may read: undefined for all, the id of a key for those about or by that key
 * and the keys that it created, null for none but those that concern no key.
 */
function auditOwner(actor: Actor): string | null | undefined {
  if (actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY')) return undefined;
  return uses(actor, 'API_KEY', 'READ_OWN') ? actor.apiKey.id : null;
}

/**
 * Entries without what names keys that a reader may not read: as the key concerned, as the actor, or as a creator.
 * Users of the command line are named to readers of all keys only.
 * @throws KeysError STORE_…
 */
async function redactEntries(
  entries: readonly AuditEntry[],
  reader: Actor,
  find: Pick<KeyFinder, 'findBy'>,
): Promise<AuditEntry[]> {
  const keys = await find.findBy('id', [...new Set(entries.flatMap(namedIn))]);
  const readable: ReadonlySet<unknown> = new Set(keys.filter((key) => mayFor(reader, 'READ', key)).map(({ id }) => id));
  const withoutCreator = (values: AuditValues | null) =>
    typeof values?.['createdBy'] === 'string' && !readable.has(values['createdBy'])
      ? { ...values, createdBy: null }
      : values;
  return entries.map((entry) => {
    const { actor, apiKey: key, before, after } = entry;
    const isNamed = actor.kind === 'REQUEST' || actor.kind === 'POLICY' || readable.has(actor.id);
    const redacted = { ...entry, actor: isNamed ? actor : { ...actor, id: null, name: null } };
    if (key && !readable.has(key.id)) return { ...redacted, apiKey: null, before: null, after: null };
    return { ...redacted, before: withoutCreator(before), after: withoutCreator(after) };
  });
}

/** The ids of all keys that an entry names. */
function namedIn({ actor, apiKey: key, before, after }: AuditEntry): string[] {
  return [actor.id, key?.id, before?.['createdBy'], after?.['createdBy']].filter((id) => typeof id === 'string');
}
