import { type Identification, identify } from '../authentication/index.ts';
import {
  type AccessDecision,
  type Actor,
  type AncestorLimit,
  ancestorsOf,
  type Chain,
  chainAccess,
  chainStatus,
  decideAccess,
  type Descendants,
  findChains,
  findDescendants,
  limitsOf,
  mayFor,
  OPERATOR,
} from '../authorization/index.ts';
import {
  anyText,
  anything,
  assertValid,
  checkOptions,
  checkSearchText,
  DEFAULT_PAGE_SIZE,
  KeysError,
  MAX_PAGE_SIZE,
  orNull,
  type Rules,
  type Budget,
  budgetsOf,
  isBudget,
  USED_LIMITS,
  UUID,
} from '../basics/index.ts';
import {
  activateRotation,
  adoptKey,
  buildKey,
  type ChangedKey,
  changeKeys,
  type ConfusableName,
  createKey,
  deleteKeys,
  DELIVERY_OPTIONS,
  findIssued,
  type Issued,
  findConfusableNames,
  finishRotation,
  type KeyPreview,
  type KeyRotation,
  type NewSecret,
  type Parts,
  planCreation,
  readManyChange,
  revertCreation,
  revertRotation,
  rollBackRotation,
  rotateKey,
  type SecretDelivery,
  setKeyEnabled,
  startGrace,
  type UndeletingChange,
  type UpdatedKey,
  updateKey,
} from '../changes/index.ts';
import {
  type ApiKey,
  givenFieldsOf,
  isInProgress,
  KEY_CHANGE_OPTIONS,
  type KeyChange,
  NEW_KEY_OPTIONS,
  type NewKey,
  normalizeName,
  readRotation,
  type Rotation,
  ROTATION_OPTIONS,
  type RotationRequest,
  type Status,
  type StoredKey,
  validateChange,
  validateNewKey,
  withoutDigests,
} from '../key/index.ts';
import { KEY_FILTERS, type KeyFilters, readFilters } from '../lists/index.ts';
import { type Catalog, type Permission, PermissionSet } from '../permissions/index.ts';
import type { ListPosition } from '../repository/index.ts';
import { createSecret, type Secret } from '../secret/index.ts';

/** Which keys to list. */
export interface PageQuery extends KeyFilters {
  /** The maximum number of keys, up to 500. Default: 50. */
  first?: number | null;
  /** The `endCursor` of the page before. */
  after?: string | null;
}

const PAGE_OPTIONS: Rules<PageQuery> = {
  first: anything,
  after: orNull(anyText),
  ...KEY_FILTERS,
};

/** A page of keys, oldest first. */
export interface Page {
  /** The keys. */
  keys: ApiKey[];
  /** True if more keys follow. */
  hasNextPage: boolean;
  /** The cursor of the last key, as `after` of the next page; null if there are no keys. */
  endCursor: string | null;
}

/** The cursor of a key: opaque to clients, and still valid after the key is deleted. */
export function formatCursor(key: Pick<ApiKey, 'id' | 'createdAt'>): string {
  return Buffer.from(`${key.createdAt}:${key.id}`).toString('base64url');
}

export function isCursor(text: string): boolean {
  return positionOf(text) !== undefined;
}

function positionOf(cursor: string): ListPosition | undefined {
  const [, time, id] = /^(\d{1,15}):(.+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  return id !== undefined && UUID.test(id) ? { createdAt: Number(time), id } : undefined;
}

function readCursor(cursor: string): ListPosition {
  const position = positionOf(cursor);
  if (position) return position;
  throw new KeysError('INPUT_INVALID', '"after" is not a cursor of this list. Use an endCursor that it returned.');
}

/** A new key: the only time that its secret is known. */
export interface CreatedKey extends NewSecret {
  /** The keys that it replaced: the one of the same name first, then the keys that it had created. */
  replaced: ApiKey[];
  /** The name, if it is new and looks like other names. */
  confusable: ConfusableName[];
}

/** A key with a new secret: the only time that the secret is known. */
export interface RotatedKey extends KeyRotation {
  /** The secret. */
  key: string;
}

/** The rules for reading, creating, changing and deleting keys. */
export class KeyManagement {
  readonly catalog: Catalog;
  readonly #options: Parts;

  constructor(options: Parts) {
    this.catalog = options.catalog;
    this.#options = options;
  }

  /** Finds the key of a secret, whatever its status. Does not count as a use. @throws KeysError STORE_… */
  identify(secret: string, actor: Actor): Promise<Identification> {
    return identify(secret, this.#options.repository, actor, this.#options.clock());
  }

  /**
   * Lists the keys that the actor can read: all of them, or its own.
   * @throws ValidationError; KeysError OPTION_INVALID, INPUT_INVALID, STORE_…
   */
  async list(query: PageQuery, actor: Actor): Promise<Page> {
    checkOptions('keys.list', query, PAGE_OPTIONS);
    const { repository, catalog, clock } = this.#options;
    const first = query.first ?? DEFAULT_PAGE_SIZE;
    if (!Number.isInteger(first) || first < 0 || first > MAX_PAGE_SIZE) {
      throw new KeysError('INPUT_INVALID', `"first" is ${first}; a page has 0 to ${MAX_PAGE_SIZE} keys.`);
    }
    const found = await repository.list({
      limit: first + 1,
      after: query.after ? readCursor(query.after) : undefined,
      ...readFilters(query, actor, { catalog, now: clock() }),
    });
    const keys = found.slice(0, first);
    const last = keys.at(-1);
    return { keys, hasNextPage: found.length > first, endCursor: last ? formatCursor(last) : null };
  }

  /** The chains of keys, in their order: each key with its ancestors. @throws KeysError STORE_… */
  chainsOf(keys: readonly ApiKey[]): Promise<Chain[]> {
    return findChains(this.#options.repository, keys);
  }

  /** The child keys of a key, generation by generation: at most 500. @throws KeysError INPUT_INVALID, STORE_… */
  descendantsOf(id: string, first: number): Promise<Descendants> {
    return findDescendants(this.#options.repository, id, first);
  }

  /** The status of a key now, which counts its ancestors. */
  statusOf(chain: Chain): Status {
    return chainStatus(chain, this.#options.clock());
  }

  /** The permissions of a key: those that its grants and all its ancestors have in common. */
  accessOf(chain: Chain): PermissionSet {
    return chainAccess(chain, this.catalog);
  }

  /** Decides whether a key is allowed something now, and why. */
  decide(chain: Chain, permission: Permission): AccessDecision {
    return decideAccess(chain, permission, this.catalog, this.#options.clock());
  }

  /** The limits that a key's ancestors put on it now. */
  limitsOf(chain: Chain): AncestorLimit[] {
    return limitsOf(chain, this.catalog, this.#options.clock());
  }

  /** The ancestors of a key, each with the limits that it puts on the key now, if any. */
  ancestorsOf(chain: Chain): AncestorLimit[] {
    return ancestorsOf(chain, this.catalog, this.#options.clock());
  }

  /** The budgets of keys, by key id, with the amounts left. @throws KeysError STORE_… */
  async budgetsOf(keys: readonly ApiKey[]): Promise<ReadonlyMap<string, readonly Budget[]>> {
    const ids = keys.filter(({ limits }) => limits.some(isBudget)).map(({ id }) => id);
    const used = ids.length > 0 ? await this.#options.repository.port(USED_LIMITS).find(ids) : [];
    return new Map(keys.map((key) => [key.id, budgetsOf(key, used)]));
  }

  /**
   * The effects of keys on others that are still in force, oldest first, if the actor can read the others. The keys may
   * have been deleted.
   * @throws KeysError STORE_…
   */
  issuedBy(ids: readonly string[], actor: Actor): Promise<Issued[]> {
    const { repository: find, catalog, clock, listeners } = this.#options;
    return findIssued({ caller: actor, catalog, now: clock(), find, listeners }, ids, 0);
  }

  /** The rotation of a key while its previous secret still works. */
  rotationOf({ rotation }: ApiKey): Rotation | null {
    return isInProgress(rotation, this.#options.clock()) ? rotation : null;
  }

  /** The key with an id, if there is one and the actor can read it. */
  async findById(id: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(id);
    return readable(await this.#options.repository.findById(id), actor);
  }

  /** The names that look like this one, if a key with this name would be new; for the operator. */
  findConfusableNames(name: string): Promise<ConfusableName[]> {
    return findConfusableNames(OPERATOR, this.#options.repository, [normalizeName(name)]);
  }

  /** The key with a name, if there is one and the actor can read it. */
  async findByName(name: string, actor: Actor): Promise<ApiKey | undefined> {
    checkSearchText(name);
    return readable(await this.#options.repository.findByName(normalizeName(name)), actor);
  }

  /**
   * Creates a key. With a `delivery`, a secret that cannot be delivered leaves everything as it was.
   * @throws ValidationError with all issues; KeysError OPTION_INVALID, NAME_TAKEN, NAME_CONFUSABLE; ForbiddenError; a
   * STORE_ error; errors of `delivery`
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

  /** Previews `create` by the same rules, without writing anything. @throws the errors of `create` */
  async preview(input: NewKey, actor: Actor): Promise<KeyPreview> {
    const { catalog } = this;
    const { now, key: built } = this.#build('keys.preview', input);
    const { repository: find, listeners } = this.#options;
    const place = { caller: actor, find, catalog, now, listeners };
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
   * Changes keys without deleting them: all of them, or none.
   * @returns the changed ones
   * @throws ValidationError; KeysError INPUT_INVALID, NOT_FOUND; ForbiddenError; a STORE_ error
   */
  async changeAll(ids: readonly string[], request: UndeletingChange, actor: Actor): Promise<ChangedKey[]> {
    const now = this.#options.clock();
    const change = readManyChange(request, { catalog: this.catalog, now, listeners: this.#options.listeners });
    return this.#options.transactions.run(actor, (transaction) => changeKeys(transaction, ids, change), {
      now,
      revokes: change.what === 'DISABLE',
    });
  }

  /**
   * Gives a key a new secret; the previous one keeps working until the grace period ends. With a `delivery`, the grace
   * period starts only after the new secret was delivered, so that its owner always has a secret that works.
   * @throws ValidationError; KeysError OPTION_INVALID, NOT_FOUND, ROTATION_IN_PROGRESS; ForbiddenError; a STORE_ error;
   * errors of `delivery`
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
    const secret = createSecret(this.#options.randomBytes, this.catalog.prefix);
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
   * Starts the grace period of the previous secret if it waits for the first use of the new one, which has arrived.
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
   * Removes the creator of a key, for the operator.
   * @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error
   */
  adopt(id: string, actor: Actor): Promise<ChangedKey> {
    return this.#options.transactions.run(actor, (transaction) => adoptKey(transaction, id));
  }

  /**
   * Deletes keys and all keys that they created. Unknown ids are ignored.
   * @returns the deleted keys, the named ones first
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
    const secret = createSecret(randomBytes, catalog.prefix);
    return { now, secret, key: buildKey(input, { catalog, now, id: randomId(), secret }) };
  }
}

function readable(key: ApiKey | undefined, actor: Actor): ApiKey | undefined {
  return key && mayFor(actor, 'READ', key) ? key : undefined;
}
