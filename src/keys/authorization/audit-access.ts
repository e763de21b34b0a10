import { setTimeout as delay } from 'node:timers/promises';
import {
  AUDIT_OPTIONS,
  type AuditActor,
  type AuditEntry,
  type AuditOwner,
  type AuditHistogram,
  type AuditCheck,
  type AuditPosition,
  type AuditRequest,
  type AuditValues,
  type ChainState,
  checkAuditLog,
  countEntries,
  findPrunable,
  lastUnneeded,
  matchesAuditKey,
  type PrunedEntries,
  type PruneListener,
  type VerifiedChain,
  readAuditHead,
  readAuditRequest,
} from '../audit/index.ts';
import { amount, checkOptions, type ProgressReport, requirePastTime } from '../basics/index.ts';
import { type Period, PERIOD_MS, startOf } from '../key/index.ts';
import type { KeyFinder, KeyRepository, KeyWriter } from '../repository/index.ts';
import { type Actor, mayFor, OPERATOR, requirePermission, uses } from './principal.ts';

export interface AuditAccessOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** The user of the command line, for the audit log. */
  operator: string;
  /** The part of the log that this process has verified. */
  chain: VerifiedChain;
  listeners: readonly PruneListener[];
}

/** Filters for the entries to count, with both times. */
export interface AuditCountRequest extends Omit<AuditRequest, 'first'> {
  since: string;
  /** The length of the periods, which are those of UTC. */
  by: Period;
}

/** The audit log, limited to the entries that each actor is allowed to read. */
export class AuditAccess {
  readonly #options: AuditAccessOptions;

  constructor(options: AuditAccessOptions) {
    this.#options = options;
  }

  /**
   * Entries of the audit log, newest first. Readers of all keys get all entries; others get entries about or by keys
   * that they are allowed to read, and entries that concern no key.
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
    return owner === undefined ? entries : redactEntries(entries, actor, owner, repository);
  }

  /**
   * Counts the entries that the actor is allowed to read, by periods; in a long log, only the newest.
   * @throws KeysError INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async count({ by, ...request }: AuditCountRequest, actor: Actor): Promise<AuditHistogram> {
    if (actor !== OPERATOR) requirePermission(actor, 'LOGS', 'READ_ANY');
    const { clock, repository } = this.#options;
    const { limit: _, since, until, ...filter } = readAuditRequest(request, clock());
    const times = { since: startOf(by, since!), until: until ?? clock() + 1 };
    return countEntries(repository.auditLog, { ...filter, ...times, owner: auditOwner(actor) }, PERIOD_MS[by]);
  }

  /**
   * How much of the audit log this process has verified since it started, piece by piece: see `VerifiedChain`.
   * @throws ForbiddenError; KeysError STORE_…
   */
  async chain(actor: Actor): Promise<ChainState> {
    if (actor !== OPERATOR) requirePermission(actor, 'LOGS', 'READ_ANY');
    return this.#options.chain.state();
  }

  /**
   * True if the newest entry of the audit log was made with the key at hand, or the log has no key.
   * @throws KeysError STORE_AUDIT_KEY if the log has a key and none is at hand; other STORE_ codes
   */
  matchesKey(): Promise<boolean> {
    return matchesAuditKey(this.#options.repository.auditLog);
  }

  /**
   * Verifies the whole audit log and, if it is intact, compares the keys with it.
   * @param head the newest entry at an earlier time, as `<number>:<hash>`, which the log must still have
   * @param reports called with the number of verified entries and, once all are verified, the number of compared keys
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async check(
    head?: string,
    reports: { onProgress?: ProgressReport; onCompared?: ProgressReport } = {},
  ): Promise<AuditCheck> {
    const known = head === undefined ? undefined : readAuditHead(head);
    const { repository } = this.#options;
    return checkAuditLog(repository.auditLog, repository, { known, ...reports });
  }

  /**
   * The entries written before a time, given as in `AuditRequest`; undefined if there are none.
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async findPrunable(before: string): Promise<PrunedEntries | undefined> {
    return this.#findPrunable(requirePastTime(before, this.#options.clock()));
  }

  /**
   * Deletes the entries written before a time, for the operator, and records that. The rest can still be verified.
   * Removes them in pieces, between which others change keys, along with the remains of an earlier pruning that was
   * interrupted.
   * @param before as in `AuditRequest`
   * @returns the deleted entries; undefined if there were none
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async prune(before: string): Promise<PrunedEntries | undefined> {
    const time = requirePastTime(before, this.#options.clock());
    const pruning = this.#prune(time, { kind: 'CLI', id: null, name: this.#options.operator });
    for (;;) {
      const { done, value } = await pruning.next();
      if (done) return value;
    }
  }

  /**
   * Like `prune`, for entries older than this many milliseconds, as configured. If it is stopped after a piece, the
   * next call does the rest.
   * @throws KeysError STORE_…
   */
  keep(ageMs: number): AsyncGenerator<void, PrunedEntries | undefined> {
    return this.#prune(this.#options.clock() - ageMs, { kind: 'POLICY', id: null, name: 'audit.keep' });
  }

  async *#prune(before: number, actor: AuditActor): AsyncGenerator<void, PrunedEntries | undefined> {
    const { repository } = this.#options;
    // Outside the transaction, which revocations wait for.
    const found = await this.#findPrunable(before);
    const pruned = found && (await this.#startAfter(found.last, actor));
    const steps = [
      (writer: KeyWriter, rows: number) => writer.removePruned(rows),
      (writer: KeyWriter, rows: number) => writer.forgetBefore(before, rows),
    ];
    for (const remove of steps) {
      let rows = FIRST_ROWS;
      for (;;) {
        const began = performance.now();
        const removed = await repository.write((writer) => remove(writer, rows));
        if (removed < rows) break;
        const fitting = Math.floor((rows * PIECE_MS) / Math.max(performance.now() - began, 1));
        rows = Math.min(Math.max(fitting, MIN_ROWS), MAX_ROWS);
        yield;
        await delay(REST_MS);
      }
    }
    return pruned;
  }

  async #findPrunable(before: number): Promise<PrunedEntries | undefined> {
    const { repository, listeners, clock } = this.#options;
    const upTo = await lastUnneeded(listeners, repository, clock());
    return findPrunable(repository.auditLog, before, upTo);
  }

  /** Moves the start of the log behind the last of these entries. */
  #startAfter(last: AuditPosition, actor: AuditActor): Promise<PrunedEntries | undefined> {
    const { repository, clock } = this.#options;
    const now = clock();
    return repository.write(async (writer) => {
      const entries = last.number - ((await writer.auditLog.start())?.number ?? 0);
      if (entries <= 0) return undefined;
      await writer.startAuditLogAfter(last);
      const after = { entries, number: last.number, hash: last.hash };
      await writer.appendToAuditLog([{ at: now, actor, action: 'PRUNE', apiKey: null, before: null, after }]);
      return { entries, last };
    });
  }
}

/** How long a piece takes at most, and the pause before the next one, in milliseconds. */
const [PIECE_MS, REST_MS] = [20, 20];
const [FIRST_ROWS, MIN_ROWS, MAX_ROWS] = [500, 50, 5000];

/**
 * The owner whose entries an actor is allowed to read: undefined for all, null for none. A key that can read itself
 * reads changes to it and by it.
 */
function auditOwner(actor: Actor): AuditOwner | null | undefined {
  if (actor === OPERATOR || uses(actor, 'API_KEY', 'READ_ANY')) return undefined;
  const { id } = actor.apiKey;
  if (uses(actor, 'API_KEY', 'READ_OWN')) return { id, withCreated: true };
  return uses(actor, 'ME', 'READ_OWN') ? { id, withCreated: false } : null;
}

/**
 * Removes names of keys that a reader is not allowed to read: the key concerned, the actor and creators. Only readers
 * of all keys see the names of command line users.
 * @throws KeysError STORE_…
 */
async function redactEntries(
  entries: readonly AuditEntry[],
  reader: Actor,
  owner: AuditOwner | null,
  find: Pick<KeyFinder, 'findBy'>,
): Promise<AuditEntry[]> {
  const keys = await find.findBy('id', [...new Set(entries.flatMap(namedIn))]);
  const readable: ReadonlySet<unknown> = new Set(
    keys.filter((key) => key.id === owner?.id || mayFor(reader, 'READ', key)).map(({ id }) => id),
  );
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

function namedIn({ actor, apiKey: key, before, after }: AuditEntry): string[] {
  return [actor.id, key?.id, before?.['createdBy'], after?.['createdBy']].filter((id) => typeof id === 'string');
}
