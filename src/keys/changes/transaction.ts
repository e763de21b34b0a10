import {
  type AuditAction,
  type AuditActor,
  auditChange,
  type AuditDraft,
  type AuditNote,
  type AuditReader,
  auditValuesOf,
  type PruneListener,
} from '../audit/index.ts';
import {
  type Actor,
  type Chain,
  chainStatus,
  findChain,
  OPERATOR,
  type Principal,
  principalOf,
  requireFor,
} from '../authorization/index.ts';
import { checkSearchText, KeysError, type Port, noKeyWithId, type WritePorts, yielding } from '../basics/index.ts';
import {
  type ApiKey,
  type KeyUse,
  requireWhole,
  rotatedSecrets,
  type StoredKey,
  withoutDigests,
} from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { KeyFinder, KeyRepository, KeyWriter, StoredKeyFinder } from '../repository/index.ts';
import type { RandomBytes } from '../secret/index.ts';
import type { SecretDelivery } from './delivery.ts';
import type { Issued } from './issued.ts';

/** A key before and after a change. */
export interface ChangedKey {
  before: ApiKey;
  after: ApiKey;
}

/**
 * A key before and after it is written. `before` is undefined for a new key, unless it takes the place of another one.
 */
export interface WrittenKey<Key extends ApiKey = ApiKey> {
  readonly before: Key | undefined;
  readonly after: Key;
}

/** A new key that takes the place of other keys. */
export interface Replacement {
  readonly apiKey: ApiKey;
  /** The deleted keys: the one of the same name first, then those that it had created. */
  readonly replaced: readonly [ApiKey, ...ApiKey[]];
  /** True if the key replaces itself. */
  readonly takesOwnPlace: boolean;
}

/** Steps of a listener that belong to a replacement. */
export interface ReplacementSteps {
  /** Runs once the new key is there. */
  replaced(transaction: Transaction): Promise<void>;
  /** Runs in a later transaction that reverts the replacement, once the replaced keys are back. */
  reverted(transaction: Transaction): Promise<void>;
}

/**
 * Follows changes of keys, in the transactions that make them. An import passes several hundred keys at once. If a
 * listener throws, nothing is changed.
 */
export interface KeyListener {
  /**
   * Refuses a change of a key, even one that is only planned. Returns the error.
   * @param fields the changed ones. Left out if the key gets another secret, or another key takes its place
   */
  readonly refuses?: (key: ApiKey, fields?: readonly string[]) => Error | undefined | Promise<Error | undefined>;
  /** Called before keys are created or changed, while all rows are still as they were. */
  readonly changing?: (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;
  /** Called after keys were created or changed. */
  readonly changed?: (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;
  /** Called after keys were deleted. Each comes after the keys that it had created. */
  readonly deleted?: (transaction: Transaction, keys: readonly ApiKey[]) => Promise<void>;
  /** Called before a key takes the place of others, while those still exist. */
  readonly replacing?: (transaction: Transaction, replacement: Replacement) => Promise<ReplacementSteps | void>;
  /**
   * Finds effects of keys on other keys that are still in force, oldest first, if the caller is allowed to read the
   * others. The keys may have been deleted.
   * @param since in milliseconds since 1970; 0 for all
   */
  readonly issued?: (place: Place, ids: readonly string[], since: number) => Promise<Issued[]>;
  /** Rules for the feature's own changes of a key, by name. Pages offer the changes that are not refused. */
  readonly rules?: Readonly<Record<string, ChangeRule>>;
  /**
   * Called before revoked keys with these ids come back from a backup. It can return a step that runs once they are
   * back.
   */
  readonly restoring?: (backup: KeyWriter, ids: readonly string[]) => Promise<RestoreStep | void>;
}

/** A listener of svc-api itself. Plugins have no steps about use: one that fails would keep all use from being written. */
export interface OwnKeyListener extends KeyListener, PruneListener {
  /**
   * Adds uses of keys, some of which may be gone, in the transaction that writes them every few seconds. No request waits
   * for it, and no change of a key does while it writes its own tables alone.
   */
  readonly used?: (ports: WritePorts, uses: readonly KeyUse[]) => Promise<void>;
  /** Removes or sums up old rows about use: at most about so many at once. Returns false if more are left. */
  readonly condensing?: (ports: WritePorts, now: number, rows: number) => Promise<boolean>;
  /** Removes rows about the use of deleted keys: at most about so many at once. Returns false if more are left. */
  readonly forgetting?: (ports: WritePorts, ids: readonly string[], rows: number) => Promise<boolean>;
}

/** Refuses a caller that is not allowed to change a key now, by throwing a `KeysError`. */
export type ChangeRule = (place: Place, key: ApiKey) => void | Promise<void>;

/** A step of a listener that belongs to a restore. */
export type RestoreStep = (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;

export interface KeyStep {
  after: StoredKey;
  action: AuditAction;
}

/** The state that a change is checked against: a transaction or, to check in advance, the store as it is now. */
export interface Place<Key extends ApiKey = ApiKey> {
  /** The actor of the change. */
  readonly caller: Actor;
  readonly catalog: Catalog;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly find: KeyFinder<Key>;
  /** The listeners of changes. */
  readonly listeners: readonly OwnKeyListener[];
}

/** The refusal of a change by a feature, if there is one. See `KeyListener.refuses`. */
export async function refusalOf(
  { listeners }: Pick<Place, 'listeners'>,
  key: ApiKey,
  fields?: readonly string[],
): Promise<Error | undefined> {
  for (const { refuses } of listeners) {
    const refusal = await refuses?.(key, fields);
    if (refusal) return refusal;
  }
  return undefined;
}

/** @throws the error that refuses a change: see `refusalOf` */
export async function requireUnrefused(
  place: Pick<Place, 'listeners'>,
  key: ApiKey,
  fields?: readonly string[],
): Promise<void> {
  const refusal = await refusalOf(place, key, fields);
  if (refusal) throw refusal;
}

export interface TransactionOptions {
  /** The actor, as it is inside the transaction. */
  caller: Actor;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  /** The user of the command line, for the audit log. */
  operator: string;
  /** The actor in the audit log. Default: the caller. */
  auditActor?: AuditActor | undefined;
  /** True if the changes undo those of other keys: then they are not effects of the caller. */
  isUndoing?: boolean;
  /** The listeners of changes. */
  listeners: readonly OwnKeyListener[];
}

/** Changes of keys that are made together or not at all. Each one gets an entry in the audit log. */
export class Transaction implements Place<StoredKey>, WritePorts {
  readonly caller: Actor;
  readonly catalog: Catalog;
  readonly now: number;
  readonly find: StoredKeyFinder;
  readonly auditLog: AuditReader;
  readonly isUndoing: boolean;
  readonly listeners: readonly OwnKeyListener[];
  readonly #writer: KeyWriter;
  readonly #actor: AuditActor;
  readonly #entries: AuditDraft[] = [];

  constructor(
    writer: KeyWriter,
    { caller, catalog, now, operator, auditActor, isUndoing = false, listeners }: TransactionOptions,
  ) {
    this.caller = caller;
    this.catalog = catalog;
    this.now = now;
    this.find = writer;
    this.auditLog = writer.auditLog;
    this.isUndoing = isUndoing;
    this.listeners = listeners;
    this.#writer = writer;
    this.#actor =
      auditActor ??
      (caller === OPERATOR
        ? { kind: 'CLI', id: null, name: operator }
        : { kind: 'KEY', id: caller.apiKey.id, name: caller.apiKey.name });
  }

  /** A feature's own data, in this transaction. */
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Writer {
    return this.#writer.port(port);
  }

  /** Adds an entry to the audit log. Changes of keys add their own. */
  note({ action, key, before = null, after = null, address }: AuditNote): void {
    const apiKey = key ? { id: key.id, name: key.name } : null;
    const from = address == null ? {} : { address };
    this.#entries.push({ at: this.now, actor: this.#actor, action, apiKey, before, after, ...from });
  }

  /** The key to change. @throws KeysError NOT_FOUND; ForbiddenError */
  async findToChange(id: string): Promise<StoredKey> {
    checkSearchText(id);
    const key = await this.find.findById(id);
    if (!key) throw noKeyWithId(id);
    requireFor(this.caller, 'UPDATE', [key]);
    return key;
  }

  /** Finds the effects of keys on others: see `KeyListener`. */
  issued(ids: readonly string[], since: number): Promise<Issued[]> {
    return findIssued(this, ids, since);
  }

  findChain(key: ApiKey): Promise<Chain> {
    return findChain(this.find, key);
  }

  /**
   * Inserts keys, each after the key that created it.
   * @param replaced the key that the first one replaces
   */
  async insert(keys: readonly StoredKey[], action: AuditAction = 'CREATE', replaced?: StoredKey): Promise<void> {
    const changes = keys.map((after, at) => ({ before: at === 0 ? replaced : undefined, after }));
    await this.#write(changes, () => this.#writer.insert(keys));
    for await (const key of yielding(keys)) this.note({ action, key, after: auditValuesOf(key) });
  }

  /** Changes a key. @throws KeysError STORE_CORRUPT for a damaged key */
  async change(before: StoredKey, after: StoredKey, action: AuditAction): Promise<ChangedKey> {
    await this.changeAll([{ before, steps: [{ after, action }] }]);
    return { before: withoutDigests(before), after: withoutDigests(after) };
  }

  /**
   * Changes several keys in few statements. The audit log gets an entry for each step that changes something.
   * @throws KeysError STORE_CORRUPT for a damaged key
   */
  async changeAll(changes: readonly { before: StoredKey; steps: readonly KeyStep[] }[]): Promise<void> {
    const updates: { before: StoredKey; after: StoredKey }[] = [];
    for await (const { before, steps } of yielding(changes)) {
      requireWhole(before);
      let current = before;
      for (const { after, action } of steps) {
        const changed = auditChange(current, after);
        if (Object.keys(changed.after).length === 0) continue;
        this.note({ action, key: after, ...changed });
        current = after;
      }
      if (current !== before) updates.push({ before, after: current });
    }
    if (updates.length === 0) return;
    await this.#write(updates, () => this.#writer.update(updates));
  }

  /** Deletes keys. None may come before its creator in the list. */
  async delete(keys: readonly StoredKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#writer.delete(keys.map(({ id }) => id).toReversed());
    for (const { deleted } of this.listeners) await deleted?.(this, keys.toReversed());
    for await (const key of yielding(keys)) this.note({ action: 'DELETE', key, before: auditValuesOf(key) });
  }

  /** Calls listeners before a key takes the place of others, if there are any. */
  async replacing({
    apiKey,
    replaced,
    takesOwnPlace,
  }: Omit<Replacement, 'replaced'> & { replaced: readonly ApiKey[] }): Promise<ReplacementSteps[]> {
    const [named, ...created] = replaced;
    if (!named) return [];
    const steps: ReplacementSteps[] = [];
    for (const { replacing } of this.listeners) {
      const step = await replacing?.(this, { apiKey, replaced: [named, ...created], takesOwnPlace });
      if (step) steps.push(step);
    }
    return steps;
  }

  /**
   * Writes whole keys over those with the same ids, even damaged ones. Missing keys are inserted; each must come after
   * its creator.
   */
  async replace(changes: readonly WrittenKey<StoredKey>[], action: AuditAction): Promise<void> {
    const there = changes.flatMap(({ before, after }) => (before ? [{ before, after }] : []));
    await this.#write(changes, async () => {
      await this.#writer.replace(there);
      await this.#writer.insert(changes.filter(({ before }) => !before).map(({ after }) => after));
    });
    for await (const { before, after } of yielding(changes)) {
      const isWhole = before && !before.damaged;
      this.note({ action, key: after, ...(isWhole ? auditChange(before, after) : { after: auditValuesOf(after) }) });
    }
  }

  async #write(changes: readonly WrittenKey<StoredKey>[], write: () => Promise<void>): Promise<void> {
    if (changes.length === 0) return;
    for (const { changing } of this.listeners) await changing?.(this, changes);
    await write();
    await this.#writer.addRotatedSecrets(
      changes.flatMap(({ before, after }) => (before?.id === after.id ? rotatedSecrets(before, after, this.now) : [])),
    );
    for (const { changed } of this.listeners) await changed?.(this, changes);
  }

  /** Writes the entries of the audit log: the last step. */
  async finish(): Promise<void> {
    await this.#writer.appendToAuditLog(this.#entries);
  }
}

/** Finds effects of keys on others that are in force, by asking the listeners. */
export async function findIssued(place: Place, ids: readonly string[], since: number): Promise<Issued[]> {
  const found: Issued[] = [];
  for (const { issued } of place.listeners) found.push(...((await issued?.(place, ids, since)) ?? []));
  const shown = found.map(({ apiKey, ...others }) => ({ ...others, apiKey: apiKey && withoutDigests(apiKey) }));
  return shown.toSorted((one, other) => one.at - other.at);
}

export interface TransactionsOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** The user of the command line, for the audit log. */
  operator: string;
  /** The listeners of changes. */
  listeners: readonly OwnKeyListener[];
}

/** Parts that features are built from. */
export interface Parts extends TransactionsOptions {
  readonly transactions: Transactions;
  readonly randomBytes: RandomBytes;
  readonly randomId: () => string;
}

interface RunOptions {
  /** Milliseconds since 1970. Default: the clock's time. */
  now?: number;
  /** See `RepositoryWriteOptions`. */
  revokes?: boolean;
  /** The actor in the audit log, if it is not the caller. */
  auditActor?: AuditActor;
  /** See `TransactionOptions`. */
  isUndoing?: boolean;
}

/** Runs changes of keys, each in a transaction of the store. */
export class Transactions {
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /**
   * Runs a transaction with the caller as it is inside: its grants may have changed since it was authenticated.
   * @throws KeysError FORBIDDEN for a caller that is no longer valid; a STORE_ error; errors of `work`
   */
  run<Result>(
    actor: Actor,
    work: (transaction: Transaction) => Promise<Result>,
    { now = this.#options.clock(), revokes = false, auditActor, isUndoing }: RunOptions = {},
  ): Promise<Result> {
    const { repository, catalog, operator, listeners } = this.#options;
    return repository.write(
      async (writer) => {
        const caller = actor === OPERATOR ? OPERATOR : await refreshed(actor, writer, { catalog, now });
        const transaction = new Transaction(writer, {
          caller,
          catalog,
          now,
          operator,
          auditActor,
          isUndoing,
          listeners,
        });
        const result = await work(transaction);
        await transaction.finish();
        return result;
      },
      { revokes },
    );
  }

  /**
   * Runs a change that makes secrets, and delivers them. If the delivery fails, the change is reverted.
   * @throws errors of `run` and `delivery`
   */
  async runWithSecrets<Done, Change>(
    actor: Actor,
    { run, present, revert }: SecretChange<Done, Change>,
    { delivery, now }: { delivery: SecretDelivery<Change> | undefined; now?: number },
  ): Promise<Change> {
    const done = await this.run(
      actor,
      async (transaction) => {
        const result = await run(transaction);
        delivery?.prepare?.(present(result));
        return result;
      },
      now === undefined ? {} : { now },
    );
    const change = present(done);
    try {
      await delivery?.deliver(change);
    } catch (error) {
      await this.run(OPERATOR, (transaction) => revert(transaction, done), { revokes: true });
      throw error;
    }
    return change;
  }
}

/**
 * The principal of a key as it is now.
 * @throws KeysError FORBIDDEN if the key, or the secret it was used with, can no longer change keys
 */
export async function refreshed(
  {
    apiKey,
    secret,
    observer,
  }: Pick<Principal, 'secret'> &
    Partial<Pick<Principal, 'observer'>> & { readonly apiKey: Pick<ApiKey, 'id' | 'publicId'> },
  find: KeyFinder,
  { catalog, now }: { catalog: Catalog; now: number },
): Promise<Principal> {
  const refused = (message: string) => {
    observer?.lacked([]);
    return new KeysError('FORBIDDEN', message);
  };
  const current = await find.findById(apiKey.id);
  const chain = current && (await findChain(find, current));
  if (!chain || chainStatus(chain, now) !== 'ACTIVE') throw refused('The requesting key is no longer valid.');
  if (secret === 'previous' || current.publicId !== apiKey.publicId)
    throw refused('A previous secret cannot change keys. Use the newest secret of this key.');
  return principalOf(chain, catalog, { observer });
}

/** A change that makes secrets: `Done` is its internal result, `Change` the result for callers. */
export interface SecretChange<Done, Change> {
  run: (transaction: Transaction) => Promise<Done>;
  present: (done: Done) => Change;
  /** Reverts the change after a failed delivery. */
  revert: (transaction: Transaction, done: Done) => Promise<void>;
}
