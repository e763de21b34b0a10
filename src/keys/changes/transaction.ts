import { type ApiKey, type StoredKey, withoutDigests } from '../key/api-key.ts';
import { rotatedSecrets } from '../key/rotated-secret.ts';
import {
  type AuditAction,
  type AuditActor,
  auditChange,
  type AuditDraft,
  type AuditNote,
  type AuditReader,
  auditValuesOf,
} from '../audit/audit-entry.ts';
import { requireWhole } from '../key/damage.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { KeysError } from '../errors.ts';
import { type Chain, findChain } from '../authorization/chain.ts';
import { type Actor, OPERATOR, requireFor } from '../authorization/principal.ts';
import type { Port, WritePorts } from '../port.ts';
import type { KeyFinder, KeyWriter, StoredKeyFinder } from '../repository.ts';
import { printable, checkSearchText } from '../text.ts';
import { yielding } from '../yielding.ts';
import { findAdoptions, recordChanges, recordCreations } from './effects.ts';

/** A key that was changed, as it was and as it is. */
export interface ChangedKey {
  before: ApiKey;
  after: ApiKey;
}

/** What a key becomes, and by which action of the audit log. */
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
}

/** Refuses who may not change a key at all. @throws ForbiddenError */
export function requireToUpdate({ caller }: Pick<Place, 'caller'>, keys: readonly ApiKey[]): void {
  requireFor(caller, 'UPDATE', keys);
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
}

/** Changes of keys that are made together or not at all. None can be made without its entry in the audit log. */
export class Transaction implements Place<StoredKey>, WritePorts {
  readonly caller: Actor;
  readonly catalog: Catalog;
  readonly now: number;
  readonly find: StoredKeyFinder;
  readonly auditLog: AuditReader;
  readonly #writer: KeyWriter;
  readonly #actor: AuditActor;
  readonly #entries: AuditDraft[] = [];

  constructor(writer: KeyWriter, { caller, catalog, now, operator, auditActor }: TransactionOptions) {
    this.caller = caller;
    this.catalog = catalog;
    this.now = now;
    this.find = writer;
    this.auditLog = writer.auditLog;
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
    requireToUpdate(this, [key]);
    return key;
  }

  /** A key and its ancestors. */
  findChain(key: ApiKey): Promise<Chain> {
    return findChain(this.find, key);
  }

  async insert(keys: readonly StoredKey[]): Promise<void> {
    await this.#writer.insert(keys);
    await recordCreations(this, keys);
    for await (const key of yielding(keys)) this.note({ action: 'CREATE', key, after: auditValuesOf(key) });
  }

  /**
   * Changes a key. What the caller brings about by that is recorded, unless it takes something away from another key.
   * @throws KeysError STORE_CORRUPT for a damaged key
   */
  async change(
    before: StoredKey,
    after: StoredKey,
    action: AuditAction,
    { records = true }: { records?: boolean } = {},
  ): Promise<ChangedKey> {
    await this.changeAll([{ before, steps: [{ after, action }] }], { records });
    return { before: withoutDigests(before), after: withoutDigests(after) };
  }

  /**
   * Makes changes of several keys, in few statements. The audit log has an entry for each step that changes something.
   * @param options see `change`
   * @throws KeysError STORE_CORRUPT for a damaged key
   */
  async changeAll(
    changes: readonly { before: StoredKey; steps: readonly KeyStep[] }[],
    { records = true }: { records?: boolean } = {},
  ): Promise<void> {
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
    const adoptions = await findAdoptions(this, updates);
    await this.#writer.update(updates);
    await this.#writer.addRotatedSecrets(
      updates.flatMap(({ before, after }) => rotatedSecrets(before, after, this.now)),
    );
    await recordChanges(this, updates, { adoptions, records });
  }

  /** Deletes keys, which stand in an order in which none comes before its creator. */
  async delete(keys: readonly StoredKey[]): Promise<void> {
    await this.#writer.delete(keys.map(({ id }) => id).toReversed());
    for await (const key of yielding(keys)) this.note({ action: 'DELETE', key, before: auditValuesOf(key) });
  }

  /**
   * Puts keys in the place of those with their ids, whole, also of those that are damaged. Those that are not there are
   * inserted; each comes after the key that created it. What the caller brings about by that is not recorded.
   */
  async replace(
    changes: readonly { before: StoredKey | undefined; after: StoredKey }[],
    action: AuditAction,
  ): Promise<void> {
    const there = changes.flatMap(({ before, after }) => (before ? [{ before, after }] : []));
    const adoptions = await findAdoptions(this, there);
    await this.#writer.replace(there.map(({ after }) => after));
    await this.#writer.insert(changes.filter(({ before }) => !before).map(({ after }) => after));
    for await (const { before, after } of yielding(changes)) {
      if (before) await this.#writer.addRotatedSecrets(rotatedSecrets(before, after, this.now));
      const isWhole = before && !before.damaged;
      this.note({ action, key: after, ...(isWhole ? auditChange(before, after) : { after: auditValuesOf(after) }) });
    }
    await recordChanges(this, there, { adoptions, records: false });
  }

  /** Writes down what was done: the last step. */
  async finish(): Promise<void> {
    await this.#writer.appendToAuditLog(this.#entries);
    await this.#writer.rememberTime(this.now);
  }
}
