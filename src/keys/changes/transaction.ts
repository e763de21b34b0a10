import {
  type AuditAction,
  type AuditActor,
  auditChange,
  type AuditDraft,
  type AuditNote,
  type AuditReader,
  auditValuesOf,
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
import { checkSearchText, KeysError, type Port, printable, type WritePorts, yielding } from '../basics/index.ts';
import { type ApiKey, requireWhole, rotatedSecrets, type StoredKey, withoutDigests } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { KeyFinder, KeyRepository, KeyWriter, StoredKeyFinder } from '../repository/index.ts';
import type { RandomBytes } from '../secret/index.ts';
import type { SecretDelivery } from './delivery.ts';
import type { Issued } from './issued.ts';

/** A key that was changed, as it was and as it is. */
export interface ChangedKey {
  before: ApiKey;
  after: ApiKey;
}

/** A key before and after it is written. Before it is created, there is none, or the key whose place it takes. */
export interface WrittenKey<Key extends ApiKey = ApiKey> {
  readonly before: Key | undefined;
  readonly after: Key;
}

/** A new key that takes the place of others. */
export interface Replacement {
  readonly apiKey: ApiKey;
  /** The keys that are deleted for it: the one of the same name first, then those that this one had created. */
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
 * Follows changes of keys, in the transactions that make them. An import tells some hundred keys at once. If a listener
 * throws, nothing is changed.
 */
export interface KeyListener {
  /**
   * Refuses a change of a key, also where it is only planned. Returns the error.
   * @param fields that change. Left out where the key gets another secret, or another key takes its place
   */
  readonly refuses?: (key: ApiKey, fields?: readonly string[]) => KeysError | undefined;
  /** Keys are about to be created or changed. All rows are still as they were. */
  readonly changing?: (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;
  /** Keys were created or changed. */
  readonly changed?: (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;
  /** Keys were deleted, each after those that it had created. */
  readonly deleted?: (transaction: Transaction, keys: readonly ApiKey[]) => Promise<void>;
  /** A key is about to take the place of others, which are still there. */
  readonly replacing?: (transaction: Transaction, replacement: Replacement) => Promise<ReplacementSteps | void>;
  /**
   * Finds what keys did to others and is in force, oldest first, as far as the caller may read the others. The keys may
   * be gone.
   * @param since in milliseconds since 1970; 0 for all of it
   */
  readonly issued?: (place: Place, ids: readonly string[], since: number) => Promise<Issued[]>;
  /** The rules of changes that a feature makes to a key, by the names of these. Pages offer what is not refused. */
  readonly rules?: Readonly<Record<string, ChangeRule>>;
  /** Revoked keys with these ids are about to come back from a backup. It can return a step that runs once they are back. */
  readonly restoring?: (backup: KeyWriter, ids: readonly string[]) => Promise<RestoreStep | void>;
}

/** Refuses a caller that may not make a change of a key now, by throwing a `KeysError`. */
export type ChangeRule = (place: Place, key: ApiKey) => void | Promise<void>;

/** A step of a listener that belongs to a restore. */
export type RestoreStep = (transaction: Transaction, changes: readonly WrittenKey[]) => Promise<void>;

export interface KeyStep {
  after: StoredKey;
  action: AuditAction;
}

/** What a change is decided by. A transaction is such a place; so is the store as it is now, to tell beforehand. */
export interface Place<Key extends ApiKey = ApiKey> {
  /** Who asks. */
  readonly caller: Actor;
  readonly catalog: Catalog;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly find: KeyFinder<Key>;
  /** The listeners of changes. */
  readonly listeners: readonly KeyListener[];
}

/** The refusal of a change by a feature, if there is one. See `KeyListener.refuses`. */
export function refusalOf(
  { listeners }: Pick<Place, 'listeners'>,
  key: ApiKey,
  fields?: readonly string[],
): KeysError | undefined {
  for (const { refuses } of listeners) {
    const refusal = refuses?.(key, fields);
    if (refusal) return refusal;
  }
  return undefined;
}

/** @throws KeysError that refuses a change: see `refusalOf` */
export function requireUnrefused(place: Pick<Place, 'listeners'>, key: ApiKey, fields?: readonly string[]): void {
  const refusal = refusalOf(place, key, fields);
  if (refusal) throw refusal;
}

export interface TransactionOptions {
  /** Who asks, as it stands inside the transaction. */
  caller: Actor;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  /** The user of the command line, for the audit log. */
  operator: string;
  /** Who does it, for the audit log. Default: the caller. */
  auditActor?: AuditActor | undefined;
  /** True if the changes undo those of other keys, so that the caller does not answer for them. */
  isUndoing?: boolean;
  /** The listeners of changes. */
  listeners: readonly KeyListener[];
}

/** Changes of keys that are made together or not at all. None can be made without its entry in the audit log. */
export class Transaction implements Place<StoredKey>, WritePorts {
  readonly caller: Actor;
  readonly catalog: Catalog;
  readonly now: number;
  readonly find: StoredKeyFinder;
  readonly auditLog: AuditReader;
  readonly isUndoing: boolean;
  readonly listeners: readonly KeyListener[];
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

  /** What a feature reads and writes in this transaction. */
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Writer {
    return this.#writer.port(port);
  }

  /** Notes something in the audit log. Changes of keys are noted as they are made. */
  note({ action, key, before = null, after = null, address }: AuditNote): void {
    const apiKey = key ? { id: key.id, name: key.name } : null;
    const from = address == null ? {} : { address };
    this.#entries.push({ at: this.now, actor: this.#actor, action, apiKey, before, after, ...from });
  }

  /** The key that is to be changed. @throws KeysError NOT_FOUND; ForbiddenError */
  async findToChange(id: string): Promise<StoredKey> {
    checkSearchText(id);
    const key = await this.find.findById(id);
    if (!key) throw new KeysError('NOT_FOUND', `There is no API key with the id "${printable(id)}".`);
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
   * @param replaced the key whose place the first one takes
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
   * Makes changes of several keys, in few statements. The audit log has an entry for each step that changes something.
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

  /** Deletes keys, which stand in an order in which none comes before its creator. */
  async delete(keys: readonly StoredKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#writer.delete(keys.map(({ id }) => id).toReversed());
    for (const { deleted } of this.listeners) await deleted?.(this, keys.toReversed());
    for await (const key of yielding(keys)) this.note({ action: 'DELETE', key, before: auditValuesOf(key) });
  }

  /** Tells listeners that a key is about to take the place of others, if there are any. */
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
   * Puts keys in the place of those with their ids, whole, also of those that are damaged. Those that are not there are
   * inserted; each comes after the key that created it.
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

  /** Writes down what was done: the last step. */
  async finish(): Promise<void> {
    await this.#writer.appendToAuditLog(this.#entries);
  }
}

/** Finds the effects of keys on others that are in force, by the listeners. */
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
  listeners: readonly KeyListener[];
}

/** What features are built from. */
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
  /** Who the audit log names, where that is not who asks. */
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
   * Runs a transaction with the caller as it is inside it: its grants may have changed since it was authenticated.
   * @throws KeysError FORBIDDEN for a caller that is no longer valid; a STORE_ error; what `work` throws
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
   * Runs a change that makes secrets, and delivers them. A delivery that fails reverts the change.
   * @throws what `run` and `delivery` throw
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
 * @throws KeysError FORBIDDEN where that key, or the secret that it came with, no longer changes keys
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
  if (!chain || chainStatus(chain, now) !== 'ACTIVE') throw refused('The key that asks for this is no longer valid.');
  if (secret === 'previous' || current.publicId !== apiKey.publicId)
    throw refused('A previous secret changes no keys. Use the newest secret of this key.');
  return principalOf(chain, catalog, { observer });
}

/** A change that makes secrets: `Done` is what the rules know of it, `Change` what their callers learn. */
export interface SecretChange<Done, Change> {
  run: (transaction: Transaction) => Promise<Done>;
  present: (done: Done) => Change;
  /** Reverts the change, because its secrets could not be delivered. */
  revert: (transaction: Transaction, done: Done) => Promise<void>;
}
