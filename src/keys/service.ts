import { Activity } from './authentication/activity.ts';
import { type ApiKey, type KeyChange, type NewKey, withoutDigests } from './key/api-key.ts';
import { type AppliedKeys, appliedKeysOf, applyDeclaration, type ApplyOptions, undoApply } from './apply/apply.ts';
import type { Authentication } from './authentication/authenticate.ts';
import { Authenticator } from './authentication/authenticator.ts';
import { createKey, buildKey, undoCreateKey } from './changes/create.ts';
import type { DeclaredKey } from './apply/declaration.ts';
import { deleteKeys } from './changes/delete.ts';
import { KeysError, assertValid } from './errors.ts';
import { importKeys, type ImportReport } from './transfer/import.ts';
import { hasChanges } from './apply/plan.ts';
import { type Actor, OPERATOR, principalOf } from './authorization/principal.ts';
import { readImport } from './transfer/read-import.ts';
import { activateRotation, finishRotation, rollBackRotation, rotateKey, undoRotation } from './changes/rotate.ts';
import { readRotation, type RotationRequest } from './key/rotation.ts';
import { createSecret, type RandomBytes } from './secret/secret.ts';
import { statusOf } from './key/status.ts';
import { type ChangedKey, Transaction } from './changes/transaction.ts';
import { setKeyEnabled, updateKey } from './changes/update.ts';
import { validateChange, validateNewKey } from './key/validation.ts';
import { writeActivity } from './authentication/write-activity.ts';
import { KeyQueries, type QueriesOptions } from './queries.ts';

/** What the rules need from outside. */
export interface KeysOptions extends QueriesOptions {
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

/** The rules for reading, making, changing and deleting keys. The command line and GraphQL both come through here. */
export class KeysService extends KeyQueries {
  readonly authenticator: Authenticator;
  readonly #options: KeysOptions;
  readonly #activity: Activity;

  constructor(options: KeysOptions) {
    super(options);
    const { clock, schedule } = options;
    this.#options = options;
    this.#activity = new Activity({
      clock,
      schedule,
      write: (batch) =>
        options.repository.write((writer) => writeActivity(writer, batch, { ...options, now: clock() })),
    });
    this.authenticator = new Authenticator({ ...options, activity: this.#activity });
  }

  /** @throws ValidationError with all issues; KeysError NAME_TAKEN; ForbiddenError; a STORE_ error */
  async create(input: NewKey, actor: Actor): Promise<CreatedKey> {
    const { clock, randomBytes, randomId } = this.#options;
    const now = clock();
    assertValid(validateNewKey(input, this.catalog, now));
    const secret = createSecret(randomBytes);
    const fresh = buildKey(input, { catalog: this.catalog, now, id: randomId(), secret });
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
    assertValid(validateChange(change, this.catalog, now));
    return this.#write(actor, (transaction) => updateKey(transaction, id, change), now);
  }

  /** Switches a key on or off. @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error */
  async setEnabled(id: string, enabled: boolean, actor: Actor): Promise<ChangedKey> {
    return this.#write(actor, (transaction) => setKeyEnabled(transaction, id, enabled));
  }

  /**
   * Gives a key a new secret; the one that it had works on until the grace ends.
   * @throws ValidationError; KeysError NOT_FOUND, ROTATION_IN_PROGRESS; ForbiddenError; a STORE_ error
   */
  async rotate(id: string, request: RotationRequest, actor: Actor): Promise<RotatedKey> {
    const { issues, ...rotation } = readRotation(request);
    assertValid(issues);
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

  /**
   * Brings the keys to what is declared, in one transaction. Where they are so already, nothing is written at all.
   * @throws DeclarationError; KeysError PRUNE_REFUSED; ForbiddenError; a STORE_ error; what `deliver` throws
   */
  async apply(declared: readonly DeclaredKey[], options: ApplyOptions, actor: Actor): Promise<AppliedKeys> {
    const { randomBytes, randomId } = this.#options;
    const plan = await this.plan(declared, options, actor);
    if (!hasChanges(plan)) return { plan, created: [], undo: async () => {} };
    const done = await this.#write(actor, (transaction) =>
      applyDeclaration(transaction, declared, {
        ...options,
        newSecret: () => createSecret(randomBytes),
        newId: randomId,
      }),
    );
    return appliedKeysOf(done, () => this.#write(OPERATOR, (transaction) => undoApply(transaction, done)));
  }

  /** Finds out whose secret this is, which counts as a use of the key. @throws KeysError STORE_… */
  authenticate(secret: string): Promise<Authentication> {
    return this.authenticator.authenticate(secret);
  }

  /** Writes what was seen of the use of keys and is not written yet, at the end of the program. @throws KeysError STORE_… */
  finishActivity(): Promise<void> {
    return this.#activity.finish();
  }

  /** Runs a transaction with the caller as it stands inside it: its grants may have changed since it was let in. */
  #write<Result>(
    actor: Actor,
    work: (transaction: Transaction) => Promise<Result>,
    now = this.#options.clock(),
  ): Promise<Result> {
    const { repository, operator } = this.#options;
    return repository.write(async (writer) => {
      let caller: Actor = OPERATOR;
      if (actor !== OPERATOR) {
        const key = await writer.findById(actor.key.id);
        if (!key || statusOf(key, now) !== 'ACTIVE')
          throw new KeysError('FORBIDDEN', 'The key that asks for this is no longer valid.');
        caller = principalOf(key, this.catalog, actor.observer);
      }
      const transaction = new Transaction(writer, { caller, catalog: this.catalog, now, operator });
      const result = await work(transaction);
      await transaction.finish();
      return result;
    });
  }
}
