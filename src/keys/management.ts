import { type Actor, OPERATOR, type Principal } from './authorization/principal.ts';
import { adoptKey } from './changes/adopt.ts';
import { containKey, type Containment, findToContain, planContainment, shownContainment } from './changes/contain.ts';
import type { ConfusableName } from './changes/confusable-names.ts';
import { buildKey, createKey, type KeyPreview, planCreation, revertCreation } from './changes/create.ts';
import { deleteKeys } from './changes/delete.ts';
import { type Leak, noteLeak } from './changes/note-leak.ts';
import { DELIVERY_OPTIONS, type NewSecret, type SecretDelivery } from './changes/delivery.ts';
import { Foresight } from './changes/foresight.ts';
import type { Grantable } from './changes/grantable.ts';
import type { PossibleChange } from './changes/possible-changes.ts';
import {
  activateRotation,
  finishRotation,
  type KeyRotation,
  revertRotation,
  rollBackRotation,
  rotateKey,
  startGrace,
} from './changes/rotate.ts';
import type { ChangedKey } from './changes/transaction.ts';
import { refreshed, Transactions } from './changes/transactions.ts';
import { setKeyEnabled, type UpdatedKey, updateKey } from './changes/update.ts';
import { assertValid } from './errors.ts';
import { anyText, checkOptions, required, text } from './options.ts';
import { type ApiKey, type KeyChange, type NewKey, type StoredKey, withoutDigests } from './key/api-key.ts';
import { readRotation, ROTATION_OPTIONS, type RotationRequest } from './key/rotation.ts';
import { KEY_CHANGE_OPTIONS, NEW_KEY_OPTIONS, validateChange, validateNewKey } from './key/validation.ts';
import { PermissionSet } from './permissions/permission-set.ts';
import { requirePastTime } from './time.ts';
import { KeyQueries, type QueriesOptions } from './queries.ts';
import { createSecret, type RandomBytes, type Secret } from './secret/secret.ts';

/** What changing keys needs from outside. */
export interface ManagementOptions extends QueriesOptions {
  randomBytes: RandomBytes;
  randomId: () => string;
  /** The user of the command line, for the audit log. */
  operator: string;
}

/** A key that was just created: the only time its secret is known. */
export interface CreatedKey extends NewSecret {
  /** What was deleted for it: the key of the same name first, then the keys that this one had created. */
  replaced: ApiKey[];
  /** The name, if it is new and looks like others. */
  confusable: ConfusableName[];
}

/** A key with a new secret: the only time that secret is known. */
export interface RotatedKey extends KeyRotation {
  /** The secret. */
  key: string;
}

/** The rules for creating, changing and deleting keys one by one. */
export class KeyManagement extends KeyQueries {
  readonly #options: ManagementOptions;
  readonly #transactions: Transactions;
  readonly #foresight: Foresight;

  constructor(options: ManagementOptions) {
    super(options);
    this.#options = options;
    this.#transactions = new Transactions(options);
    this.#foresight = new Foresight(options);
  }

  /**
   * Creates a key. With a `delivery`, a secret that cannot be delivered leaves everything as it was.
   * @throws ValidationError with all issues; KeysError OPTION_INVALID, NAME_TAKEN, NAME_CONFUSABLE; ForbiddenError;
   * a STORE_ error; what `delivery` throws
   */
  async create(input: NewKey, actor: Actor, delivery?: SecretDelivery<CreatedKey>): Promise<CreatedKey> {
    const { now, secret, key } = this.#build('keys.create', input);
    if (delivery !== undefined) checkOptions('keys.create', delivery, DELIVERY_OPTIONS);
    return this.#transactions.runWithSecrets(
      actor,
      {
        run: (transaction) => createKey(transaction, input, key),
        present: (creation) => ({
          key: secret.text,
          apiKey: withoutDigests(creation.key),
          replaced: creation.replaced.map(withoutDigests),
          confusable: creation.confusable,
        }),
        revert: revertCreation,
      },
      { delivery, now },
    );
  }

  /** Tells what `create` would make, by the same rules; nothing is written. @throws what `create` throws */
  async preview(input: NewKey, actor: Actor): Promise<KeyPreview> {
    const { catalog } = this;
    const { now, key: built } = this.#build('keys.preview', input);
    const place = { caller: actor, find: this.#options.repository, catalog, now };
    const { key, replaced, confusable } = await planCreation(place, input, built);
    const { name, description, roles, permissions, limits, allowFrom, expiresAt } = key;
    const effectivePermissions = PermissionSet.of(catalog, key).permissions();
    const fields = { name, description, roles, permissions, limits, allowFrom, expiresAt };
    return { ...fields, effectivePermissions, replaced, confusable };
  }

  /**
   * Tells of each of these keys which changes an actor would be let make now, by the rules of those changes; nothing is
   * written, and nothing counts as used.
   * @throws KeysError STORE_…
   */
  possibleChanges(keys: readonly ApiKey[], actor: Principal): Promise<PossibleChange[][]> {
    return this.#foresight.possibleChanges(keys, actor);
  }

  /** What an actor may give to a key that it creates. @throws KeysError STORE_… */
  grantable(actor: Principal): Promise<Grantable> {
    return this.#foresight.grantable(actor);
  }

  /** What an actor may give to a key beside what that has. @throws KeysError STORE_… */
  grantableTo(key: ApiKey, actor: Principal): Promise<Grantable> {
    return this.#foresight.grantable(actor, key);
  }

  /**
   * Changes a key.
   * @throws ValidationError; KeysError OPTION_INVALID, NOT_FOUND, NAME_TAKEN, NAME_CONFUSABLE; ForbiddenError; a STORE_
   * error
   */
  async update(id: string, change: KeyChange, actor: Actor): Promise<UpdatedKey> {
    checkOptions('keys.update', change, KEY_CHANGE_OPTIONS);
    const now = this.#options.clock();
    assertValid(validateChange(change, this.catalog, now));
    return this.#transactions.run(actor, (transaction) => updateKey(transaction, id, change), { now });
  }

  /** Enables or disables a key. @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error */
  async setEnabled(id: string, enabled: boolean, actor: Actor): Promise<ChangedKey> {
    return this.#transactions.run(actor, (transaction) => setKeyEnabled(transaction, id, enabled), {
      revokes: !enabled,
    });
  }

  /**
   * Notes, for the operator, that a secret was found where it should not be: once a day.
   * @returns whether it was noted
   * @throws KeysError STORE_…
   */
  async noteLeak(leak: Leak): Promise<boolean> {
    checkOptions<Leak>('keys.noteLeak', leak, {
      id: required(text),
      publicId: required(text),
      place: required(anyText),
    });
    return this.#transactions.run(OPERATOR, (transaction) => noteLeak(transaction, leak));
  }

  /**
   * Gives a key a new secret; the previous one keeps working until the grace ends. With a `delivery`, the grace starts
   * after the new secret was delivered at the earliest, so that a working secret is known to somebody at any moment.
   * @throws ValidationError; KeysError OPTION_INVALID, NOT_FOUND, ROTATION_IN_PROGRESS; ForbiddenError; a STORE_
   * error; what `delivery` throws
   */
  async rotate(
    id: string,
    request: RotationRequest,
    actor: Actor,
    delivery?: SecretDelivery<RotatedKey>,
  ): Promise<RotatedKey> {
    checkOptions('keys.rotate', request, ROTATION_OPTIONS);
    if (delivery !== undefined) checkOptions('keys.rotate', delivery, DELIVERY_OPTIONS);
    const now = this.#options.clock();
    const { issues, activate, ...rotation } = readRotation(request, now);
    assertValid(issues);
    const secret = createSecret(this.#options.randomBytes);
    const rotated = await this.#transactions.runWithSecrets(
      actor,
      {
        run: (transaction) =>
          rotateKey(transaction, id, secret, { ...rotation, activate: delivery ? 'ON_FIRST_USE' : activate }),
        present: (changed) => ({ ...changed, key: secret.text }),
        revert: revertRotation,
      },
      { delivery, now },
    );
    if (!delivery || activate !== 'NOW') return rotated;
    const activated = await this.#transactions.run(actor, (transaction) =>
      activateRotation(transaction, id, secret.publicId),
    );
    return activated ? { ...rotated, after: activated.after } : rotated;
  }

  /**
   * Starts the grace of the previous secret where it waits for the first use of the new one: the new one has arrived.
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  startGrace(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#transactions.run(actor, (transaction) => startGrace(transaction, id));
  }

  /** Revokes the previous secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  finishRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#transactions.run(actor, (transaction) => finishRotation(transaction, id), { revokes: true });
  }

  /** Revokes the new secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  rollBackRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#transactions.run(actor, (transaction) => rollBackRotation(transaction, id), { revokes: true });
  }

  /**
   * Makes a key one without a creator, for the operator.
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  adopt(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#transactions.run(actor, (transaction) => adoptKey(transaction, id));
  }

  /**
   * Deletes keys, and all keys that they created. Unknown ids are ignored.
   * @returns what was deleted, the named keys first
   * @throws ForbiddenError; a STORE_ error
   */
  async delete(ids: readonly string[], actor: Actor): Promise<ApiKey[]> {
    return this.#transactions.run(actor, (transaction) => deleteKeys(transaction, ids), { revokes: true });
  }

  /**
   * Tells what `contain` would do now; nothing is written.
   * @param nameOrId of a key that is there, or was
   * @param since as in `AuditRequest`; undefined for all that it ever did to others
   * @throws KeysError NOT_FOUND, INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async planContainment(nameOrId: string, since: string | undefined, actor: Actor): Promise<Containment> {
    const { repository, clock } = this.#options;
    const now = clock();
    const { catalog } = this;
    const caller: Actor = actor === OPERATOR ? OPERATOR : await refreshed(actor, repository, { catalog, now });
    const place = { caller, catalog, now, find: repository };
    const from = since === undefined ? 0 : requirePastTime(since, now);
    const plan = await planContainment(place, { id: await findToContain(place, nameOrId), since: from });
    return shownContainment(plan, caller);
  }

  /**
   * Undoes what a key did, in one transaction: it and all beneath it are disabled, the secrets end that it issued, what
   * it widened is narrowed again, and what it enabled is disabled. Whatever is in force at this moment is undone.
   * @param nameOrId of a key that is there, or was
   * @param since as in `AuditRequest`; undefined for all that it ever did to others
   * @throws KeysError NOT_FOUND, INPUT_INVALID; ForbiddenError; a STORE_ error
   */
  async contain(nameOrId: string, since: string | undefined, actor: Actor): Promise<Containment> {
    const now = this.#options.clock();
    const from = since === undefined ? 0 : requirePastTime(since, now);
    const newSecret = () => createSecret(this.#options.randomBytes);
    return this.#transactions.run(
      actor,
      async (transaction) => {
        const id = await findToContain(transaction, nameOrId);
        return containKey(transaction, { id, since: from }, newSecret);
      },
      { now, revokes: true },
    );
  }

  /** Validates a request for a key, and builds the key. @throws ValidationError; KeysError OPTION_INVALID */
  #build(caller: string, input: NewKey): { now: number; secret: Secret; key: StoredKey } {
    checkOptions(caller, input, NEW_KEY_OPTIONS);
    const { catalog } = this;
    const { clock, randomBytes, randomId } = this.#options;
    const now = clock();
    assertValid(validateNewKey(input, catalog, now));
    const secret = createSecret(randomBytes);
    return { now, secret, key: buildKey(input, { catalog, now, id: randomId(), secret }) };
  }
}
