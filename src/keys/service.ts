import { Activity } from './activity.ts';
import { type ApiKey, type KeyChange, type NewKey, withoutDigests } from './api-key.ts';
import { applyDeclaration, type ApplyOptions, type NewSecret, undoApply } from './apply.ts';
import type { AuditEntry } from './audit.ts';
import { type AuditRequest, type AuditVerification, readAuditRequest, verifyAuditLog } from './audit-log.ts';
import { type Authentication, type Lookup, lookUp } from './authenticate.ts';
import { Authenticator } from './authenticator.ts';
import type { Catalog, Grant } from './catalog.ts';
import { createKey, newKeyOf, undoCreateKey } from './create.ts';
import type { DeclaredKey } from './declaration.ts';
import { deleteKeys } from './delete.ts';
import { KeysError, refuseFaults } from './errors.ts';
import { type ExportedPage, exportKeys, type ExportOptions } from './export.ts';
import { importKeys, type ImportReport } from './import.ts';
import { type Identification, identify } from './identify.ts';
import { listKeys, type Page, type PageQuery } from './list.ts';
import { normalizeName } from './name.ts';
import { hasChanges, type Plan, planChanges } from './plan.ts';
import { type Actor, mayFor, OPERATOR, principalOf, requirePermission } from './principal.ts';
import { readImport } from './read-import.ts';
import type { KeyRepository } from './repository.ts';
import { activateRotation, finishRotation, rollBackRotation, rotateKey, undoRotation } from './rotate.ts';
import { isUnderWay, readRotation, type Rotation, type RotationRequest } from './rotation.ts';
import { createSecret, type RandomBytes } from './secret.ts';
import { type Status, statusOf } from './status.ts';
import { type ChangedKey, Transaction } from './transaction.ts';
import { setKeyEnabled, updateKey } from './update.ts';
import type { UsageTotals } from './usage.ts';
import { faultsOfChange, faultsOfNewKey } from './validation.ts';
import { writeActivity } from './write-activity.ts';

/** What the rules need from outside. */
export interface KeysOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  randomBytes: RandomBytes;
  randomId: () => string;
  /** Does something later, after so many milliseconds. */
  schedule: (work: () => void, delay: number) => void;
  /** Who the command line is run by, for the audit log. */
  operator: string;
}

/** A key that was just made: the only time its secret is known. */
export interface CreatedKey {
  secret: string;
  key: ApiKey;
  /** What made way for it: the key of the same name first, then those that this one had created. */
  replaced: ApiKey[];
  /** Takes the creation back: the key is removed, and what it replaced works again. */
  undo: () => Promise<void>;
}

/** A key with a new secret: the only time it is known. */
export interface RotatedKey extends ChangedKey {
  secret: string;
  /** Lets the grace begin, where it was to begin on the first use of the new secret. */
  activate: () => Promise<void>;
  /** Takes the rotation back: the secret before is the only one again. */
  undo: () => Promise<void>;
}

/** What an apply has done. */
export interface AppliedKeys {
  plan: Plan;
  /** The new keys, in the order in which they are declared. */
  created: NewSecret[];
  /** Takes it all back. */
  undo: () => Promise<void>;
}

/** The rules for making, changing and deleting keys. The command line and GraphQL both come through here. */
export class KeysService {
  readonly catalog: Catalog;
  readonly authenticator: Authenticator;
  readonly #options: KeysOptions;
  readonly #activity: Activity;

  constructor(options: KeysOptions) {
    const { catalog, clock, schedule } = options;
    this.catalog = catalog;
    this.#options = options;
    this.#activity = new Activity({
      clock,
      schedule,
      write: (batch) => options.repository.write((writer) => writeActivity(writer, batch, { ...options, now: clock() })),
    });
    this.authenticator = new Authenticator({ ...options, activity: this.#activity });
  }

  /** @throws ValidationError with all faults; KeysError NAME_TAKEN; ForbiddenError; a STORE_ error */
  async create(input: NewKey, actor: Actor): Promise<CreatedKey> {
    const { clock, randomBytes, randomId } = this.#options;
    const now = clock();
    refuseFaults(faultsOfNewKey(input, this.catalog, now));
    const secret = createSecret(randomBytes);
    const fresh = newKeyOf(input, { catalog: this.catalog, now, id: randomId(), secret });
    const { key, replaced } = await this.#write(actor, (transaction) => createKey(transaction, input, fresh), now);
    return {
      secret: secret.text,
      key: withoutDigests(key),
      replaced: replaced.map(withoutDigests),
      undo: () => this.#write(OPERATOR, (transaction) => undoCreateKey(transaction, key, replaced)),
    };
  }

  /** @throws ValidationError; KeysError NOT_FOUND, NAME_TAKEN; ForbiddenError; a STORE_ error */
  async update(id: string, change: KeyChange, actor: Actor): Promise<ChangedKey> {
    const now = this.#options.clock();
    refuseFaults(faultsOfChange(change, this.catalog, now));
    return this.#write(actor, (transaction) => updateKey(transaction, id, change), now);
  }

  /** Switches a key on or off. @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error */
  async setEnabled(id: string, enabled: boolean, actor: Actor): Promise<ChangedKey> {
    return this.#write(actor, (transaction) => setKeyEnabled(transaction, id, enabled));
  }

  /**
   * Gives a key a new secret; the one that it had works on until the grace ends.
   * @throws ValidationError; KeysError NOT_FOUND, ROTATION_UNDER_WAY; ForbiddenError; a STORE_ error
   */
  async rotate(id: string, request: RotationRequest, actor: Actor): Promise<RotatedKey> {
    const { faults, ...rotation } = readRotation(request);
    refuseFaults(faults);
    const secret = createSecret(this.#options.randomBytes);
    const changed = await this.#write(actor, (transaction) => rotateKey(transaction, id, secret, rotation));
    return {
      ...changed,
      secret: secret.text,
      activate: () => this.#write(actor, (transaction) => activateRotation(transaction, id, secret.publicId)),
      undo: () => this.#write(actor, (transaction) => undoRotation(transaction, id, secret.publicId)),
    };
  }

  /** Ends the secret before at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  finishRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#write(actor, (transaction) => finishRotation(transaction, id));
  }

  /** Ends the new secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  rollBackRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#write(actor, (transaction) => rollBackRotation(transaction, id));
  }

  /**
   * Deletes keys, and all keys that they created. Ids that no key has are passed over.
   * @returns what was deleted, the named ones first
   */
  async delete(ids: readonly string[], actor: Actor): Promise<ApiKey[]> {
    return this.#write(actor, (transaction) => deleteKeys(transaction, ids));
  }

  /**
   * Imports keys from JSON lines, for the operator: all of them, or none where one can't be. With `dryRun` it only looks
   * whether they can be. The report says what became of each line.
   * @throws KeysError STORE_…; what reading the input throws
   */
  async importKeys(input: AsyncIterable<Uint8Array>, { dryRun = false } = {}): Promise<ImportReport> {
    const { clock } = this.#options;
    // The store is not locked while a slow input is read.
    const lines = await readImport(input, { ...this.#options, now: clock() });
    return this.#write(OPERATOR, (transaction) => importKeys(transaction, lines, { dryRun }));
  }

  /** All keys page by page, for the operator, as they can be imported again. @throws KeysError STORE_… */
  exportKeys(options: ExportOptions): AsyncGenerator<ExportedPage> {
    return exportKeys(this.#options.repository, options, this.#options.clock());
  }

  /**
   * What `apply` would change now; nothing is written.
   * @throws DeclarationError; KeysError PRUNE_REFUSED; ForbiddenError; a STORE_ error
   */
  plan(declared: readonly DeclaredKey[], { prune = false }: Pick<ApplyOptions, 'prune'>, actor: Actor): Promise<Plan> {
    const { repository, clock } = this.#options;
    return planChanges(repository, declared, { prune, caller: actor, catalog: this.catalog, now: clock() });
  }

  /**
   * Brings the keys to what is declared, in one transaction. Where they are so already, nothing is written at all.
   * @throws DeclarationError; KeysError PRUNE_REFUSED; ForbiddenError; a STORE_ error; what `deliver` throws
   */
  async apply(declared: readonly DeclaredKey[], options: ApplyOptions, actor: Actor): Promise<AppliedKeys> {
    const { randomBytes, randomId } = this.#options;
    const plan = await this.plan(declared, options, actor);
    if (!hasChanges(plan)) return { plan, created: [], undo: async () => {} };
    const done = await this.#write(actor, (transaction) =>
      applyDeclaration(transaction, declared, { ...options, newSecret: () => createSecret(randomBytes), newId: randomId }),
    );
    const { creates, updates, deletes, unchanged } = done.plan;
    return {
      plan: {
        creates,
        updates: updates.map(({ before, after }) => ({ before: withoutDigests(before), after: withoutDigests(after) })),
        deletes: deletes.map(withoutDigests),
        unchanged,
      },
      created: done.created.map(({ secret, key }) => ({ secret: secret.text, key: withoutDigests(key) })),
      undo: () => this.#write(OPERATOR, (transaction) => undoApply(transaction, done)),
    };
  }

  /** Finds out whose secret this is, which counts as a use of the key. @throws KeysError STORE_… */
  authenticate(secret: string): Promise<Authentication> {
    return this.authenticator.authenticate(secret);
  }

  /** Finds the key that a secret belongs to, which counts as no use. @throws KeysError STORE_… */
  lookUp(secret: string): Promise<Lookup> {
    return lookUp(secret, this.#options.repository, this.#options.clock());
  }

  /** Finds out whose secret this is, whatever the key's status, which counts as no use. @throws KeysError STORE_… */
  identify(secret: string, actor: Actor): Promise<Identification> {
    return identify(secret, this.#options.repository, actor, this.#options.clock());
  }

  /** See `listKeys`. */
  list(query: PageQuery, actor: Actor): Promise<Page> {
    return listKeys(this.#options.repository, query, actor, { catalog: this.catalog, now: this.#options.clock() });
  }

  /** A key's status now. */
  statusOf(key: ApiKey): Status {
    return statusOf(key, this.#options.clock());
  }

  /** The rotation of a key while its secret before still works. */
  rotationOf({ rotation }: ApiKey): Rotation | null {
    return isUnderWay(rotation, this.#options.clock()) ? rotation : null;
  }

  /** How much keys were used, by their ids; those that never were are left out. */
  usageOf(ids: readonly string[]): Promise<Map<string, UsageTotals>> {
    return this.#options.repository.findUsage(ids);
  }

  /** The grants that a key has used, with the time of the last use of each, in milliseconds since 1970. */
  usedGrantsOf(id: string): Promise<Map<Grant, number>> {
    return this.#options.repository.findUsedGrants(id);
  }

  /** Entries of the audit log, the newest first. @throws KeysError INPUT_INVALID; ForbiddenError; a STORE_ error */
  async auditLog(request: AuditRequest, actor: Actor, place: { before?: number; after?: number } = {}): Promise<AuditEntry[]> {
    if (actor !== OPERATOR) requirePermission(actor, 'LOGS', 'READ_ANY');
    const query = readAuditRequest(request, this.#options.clock());
    const order = place.after === undefined ? 'newest' : 'oldest';
    return this.#options.repository.auditLog.find({ ...query, ...place, order });
  }

  /** Goes through the whole audit log, and tells whether it is as it was written. @throws KeysError STORE_… */
  verifyAuditLog(): Promise<AuditVerification> {
    return verifyAuditLog(this.#options.repository.auditLog);
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  check(): Promise<void> {
    return this.#options.repository.check();
  }

  /** Writes what was seen of the use of keys and is not written yet, at the end of the program. @throws KeysError STORE_… */
  finishActivity(): Promise<void> {
    return this.#activity.finish();
  }

  /** A key by its id, if there is one that the actor may read. */
  async findById(id: string, actor: Actor): Promise<ApiKey | undefined> {
    return readable(await this.#options.repository.findById(id), actor);
  }

  /** A key by its name, if there is one that the actor may read. */
  async findByName(name: string, actor: Actor): Promise<ApiKey | undefined> {
    return readable(await this.#options.repository.findByName(normalizeName(name)), actor);
  }

  /** Runs a transaction with the caller as it stands inside it: its grants may have changed since it was let in. */
  #write<Result>(actor: Actor, work: (transaction: Transaction) => Promise<Result>, now = this.#options.clock()): Promise<Result> {
    const { repository, operator } = this.#options;
    return repository.write(async (writer) => {
      let caller: Actor = OPERATOR;
      if (actor !== OPERATOR) {
        const key = await writer.findById(actor.key.id);
        if (!key || statusOf(key, now) !== 'ACTIVE') throw new KeysError('FORBIDDEN', 'The key that asks for this is no longer valid.');
        caller = principalOf(key, this.catalog, actor.observer);
      }
      const transaction = new Transaction(writer, { caller, catalog: this.catalog, now, operator });
      const result = await work(transaction);
      await transaction.finish();
      return result;
    });
  }
}

function readable(key: ApiKey | undefined, actor: Actor): ApiKey | undefined {
  return key && mayFor(actor, 'READ', key) ? key : undefined;
}
