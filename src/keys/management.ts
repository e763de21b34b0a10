import { type Identification, identify } from './authentication/authenticator.ts';
import {
  type AncestorLimit,
  type Chain,
  chainAccess,
  chainStatus,
  findChains,
  limitsOf,
} from './authorization/chain.ts';
import { type Descendants, findDescendants } from './authorization/descendants.ts';
import { type AccessDecision, decideAccess } from './authorization/explain.ts';
import { type Actor, mayFor, OPERATOR } from './authorization/principal.ts';
import { type ConfusableName, findConfusableNames } from './changes/confusable-names.ts';
import { buildKey, createKey, type KeyPreview, planCreation, revertCreation } from './changes/create.ts';
import { DELIVERY_OPTIONS, type NewSecret, type SecretDelivery } from './changes/delivery.ts';
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
import type { Parts, TransactionsOptions } from './changes/transactions.ts';
import { adoptKey, deleteKeys, setKeyEnabled, type UpdatedKey, updateKey } from './changes/update.ts';
import { assertValid } from './errors.ts';
import {
  type ApiKey,
  type KeyChange,
  type NewKey,
  type StoredKey,
  givenFieldsOf,
  withoutDigests,
} from './key/api-key.ts';
import { normalizeName } from './key/name.ts';
import { isInProgress, readRotation, type Rotation, ROTATION_OPTIONS, type RotationRequest } from './key/rotation.ts';
import type { Status } from './key/status.ts';
import { KEY_CHANGE_OPTIONS, NEW_KEY_OPTIONS, validateChange, validateNewKey } from './key/validation.ts';
import { listKeys, type Page, type PageQuery } from './list.ts';
import { checkOptions } from './options.ts';
import type { Catalog, Permission } from './permissions/catalog.ts';
import { PermissionSet } from './permissions/permission-set.ts';
import { createSecret, type Secret } from './secret/secret.ts';
import { checkSearchText } from './text.ts';

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

/** The rules for reading keys, and what is known of them. */
export class KeyQueries {
  readonly catalog: Catalog;
  readonly #options: TransactionsOptions;

  constructor(options: TransactionsOptions) {
    this.catalog = options.catalog;
    this.#options = options;
  }

  /** Finds out whose secret this is, whatever the key's status, which counts as no use. @throws KeysError STORE_… */
  identify(secret: string, actor: Actor): Promise<Identification> {
    return identify(secret, this.#options.repository, actor, this.#options.clock());
  }

  /** See `listKeys`. */
  list(query: PageQuery, actor: Actor): Promise<Page> {
    return listKeys(this.#options.repository, query, actor, { catalog: this.catalog, now: this.#options.clock() });
  }

  /** The chains of keys, in their order: each key with its ancestors. @throws KeysError STORE_… */
  chainsOf(keys: readonly ApiKey[]): Promise<Chain[]> {
    return findChains(this.#options.repository, keys);
  }

  /** The keys that a key created, and so on: at most 500. @throws KeysError INPUT_INVALID, STORE_… */
  descendantsOf(id: string, first: number): Promise<Descendants> {
    return findDescendants(this.#options.repository, id, first);
  }

  /** The status of a key now, which counts its ancestors. */
  statusOf(chain: Chain): Status {
    return chainStatus(chain, this.#options.clock());
  }

  /** What a key may do: what its grants say, met with what its ancestors may do. */
  accessOf(chain: Chain): PermissionSet {
    return chainAccess(chain, this.catalog);
  }

  /** Whether a key may do something now, and why. */
  decide(chain: Chain, permission: Permission): AccessDecision {
    return decideAccess(chain, permission, this.catalog, this.#options.clock());
  }

  /** What the ancestors of a key take away from it now. */
  limitsOf(chain: Chain): AncestorLimit[] {
    return limitsOf(chain, this.catalog, this.#options.clock());
  }

  /** The rotation of a key while its previous secret still works. */
  rotationOf({ rotation }: ApiKey): Rotation | null {
    return isInProgress(rotation, this.#options.clock()) ? rotation : null;
  }

  /** A key by its id, if there is one that the actor may read. */
  async findById(id: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(id);
    return readable(await this.#options.repository.findById(id), actor);
  }

  /** The same name with those that it looks like, if a key of that name would be new; for the operator. */
  findConfusableNames(name: string): Promise<ConfusableName[]> {
    return findConfusableNames(OPERATOR, this.#options.repository, [normalizeName(name)]);
  }

  /** A key by its name, if there is one that the actor may read. */
  async findByName(name: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(name);
    return readable(await this.#options.repository.findByName(normalizeName(name)), actor);
  }
}

/** The rules for creating, changing and deleting keys one by one. */
export class KeyManagement extends KeyQueries {
  readonly #options: Parts;

  constructor(options: Parts) {
    super(options);
    this.#options = options;
  }

  /**
   * Creates a key. With a `delivery`, a secret that cannot be delivered leaves everything as it was.
   * @throws ValidationError with all issues; KeysError OPTION_INVALID, NAME_TAKEN, NAME_CONFUSABLE; ForbiddenError;
   * a STORE_ error; what `delivery` throws
   */
  async create(input: NewKey, actor: Actor, delivery?: SecretDelivery<CreatedKey>): Promise<CreatedKey> {
    const { now, secret, key } = this.#build('keys.create', input);
    if (delivery !== undefined) checkOptions('keys.create', delivery, DELIVERY_OPTIONS);
    return this.#options.transactions.runWithSecrets(
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
    const effectivePermissions = PermissionSet.of(catalog, key).permissions();
    return { ...givenFieldsOf(key), effectivePermissions, replaced, confusable };
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
    return this.#options.transactions.run(actor, (transaction) => updateKey(transaction, id, change), { now });
  }

  /** Enables or disables a key. @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error */
  async setEnabled(id: string, enabled: boolean, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => setKeyEnabled(transaction, id, enabled), {
      revokes: !enabled,
    });
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
    const rotated = await this.#options.transactions.runWithSecrets(
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
    const activated = await this.#options.transactions.run(actor, (transaction) =>
      activateRotation(transaction, id, secret.publicId),
    );
    return activated ? { ...rotated, after: activated.after } : rotated;
  }

  /**
   * Starts the grace of the previous secret where it waits for the first use of the new one: the new one has arrived.
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  startGrace(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => startGrace(transaction, id));
  }

  /** Revokes the previous secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  finishRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => finishRotation(transaction, id), { revokes: true });
  }

  /** Revokes the new secret at once. @throws KeysError NOT_FOUND, ROTATION_NONE; ForbiddenError; a STORE_ error */
  rollBackRotation(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => rollBackRotation(transaction, id), { revokes: true });
  }

  /**
   * Makes a key one without a creator, for the operator.
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  adopt(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => adoptKey(transaction, id));
  }

  /**
   * Deletes keys, and all keys that they created. Unknown ids are ignored.
   * @returns what was deleted, the named keys first
   * @throws ForbiddenError; a STORE_ error
   */
  async delete(ids: readonly string[], actor: Actor): Promise<ApiKey[]> {
    return this.#options.transactions.run(actor, (transaction) => deleteKeys(transaction, ids), { revokes: true });
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

function readable(key: ApiKey | undefined, actor: Actor): ApiKey | undefined {
  return key && mayFor(actor, 'READ', key) ? key : undefined;
}
