import type { ApiKey, KeyChange, NewKey, StoredKey } from './api-key.ts';
import { type Authentication, authenticate } from './authenticate.ts';
import type { Catalog } from './catalog.ts';
import { normalizeDescription } from './description.ts';
import { KeysError, NameTakenError, refuseFaults } from './errors.ts';
import { type ExpiryRequest, readExpiry } from './expiry.ts';
import { listKeys, type Page, type PageQuery } from './list.ts';
import { normalizeName } from './name.ts';
import { PermissionSet } from './permission-set.ts';
import { type Actor, mayFor, OPERATOR, principalOf, requireFor, requirePermission, requireToHold, requireToOutlive } from './principal.ts';
import type { KeyRepository, KeyWriter } from './repository.ts';
import { createSecret, type RandomBytes } from './secret.ts';
import { type Status, statusOf } from './status.ts';
import { printable } from './text.ts';
import { faultsOfChange, faultsOfNewKey, grantsFault, readGrants } from './validation.ts';

/** What the rules need from outside. */
export interface KeysOptions {
  repository: KeyRepository;
  catalog: Catalog;
  /** Milliseconds since 1970. */
  clock: () => number;
  randomBytes: RandomBytes;
  randomId: () => string;
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

/** A key that was changed, as it was and as it is. */
export interface ChangedKey {
  before: ApiKey;
  after: ApiKey;
}

/** The rules for making, changing and deleting keys. The command line and GraphQL both come through here. */
export class KeysService {
  readonly catalog: Catalog;
  readonly #options: KeysOptions;

  constructor(options: KeysOptions) {
    this.catalog = options.catalog;
    this.#options = options;
  }

  /** @throws ValidationError with all faults; KeysError NAME_TAKEN; ForbiddenError; a STORE_ error */
  async create(input: NewKey, actor: Actor): Promise<CreatedKey> {
    const now = this.#options.clock();
    refuseFaults(faultsOfNewKey(input, this.catalog, now));
    const { roles, permissions } = readGrants(input, this.catalog);
    const { randomBytes, randomId } = this.#options;
    const secret = createSecret(randomBytes);
    const key: ApiKey = {
      id: randomId(),
      name: normalizeName(input.name),
      description: normalizeDescription(input.description),
      roles,
      permissions,
      publicId: secret.publicId,
      createdAt: now,
      createdBy: actor === OPERATOR ? null : actor.key.id,
      expiresAt: expiryOf(input, now) ?? null,
      disabledAt: null,
    };
    const replaced = await this.#write(actor, async (writer, caller) => {
      if (caller !== OPERATOR) requirePermission(caller, 'API_KEY', 'CREATE_OWN');
      requireToHold(caller, PermissionSet.of(this.catalog, key));
      // Where nothing else was asked for, a key ends with the one that creates it.
      if (caller !== OPERATOR && expiryOf(input, now) === undefined) key.expiresAt = caller.key.expiresAt;
      requireToOutlive(caller, key.expiresAt);
      const existing = await writer.findByName(key.name);
      const leaving = existing && input.overwrite ? await writer.findWithDescendants([existing.id]) : [];
      if (existing) {
        if (!input.overwrite) throw new NameTakenError(key.name, true);
        requireFor(caller, 'DELETE', [existing]);
        await writer.delete(childrenFirst(leaving));
      }
      // A key that replaces its own creator, or itself, takes that key's place among the others.
      if (existing && leaving.some(({ id }) => id === key.createdBy)) key.createdBy = existing.createdBy;
      await writer.insert([{ ...key, digest: secret.digest }]);
      return leaving;
    });
    return { secret: secret.text, key, replaced, undo: () => this.#undoCreate(key, replaced) };
  }

  /** @throws ValidationError; KeysError NOT_FOUND, NAME_TAKEN; ForbiddenError; a STORE_ error */
  async update(id: string, change: KeyChange, actor: Actor): Promise<ChangedKey> {
    const now = this.#options.clock();
    refuseFaults(faultsOfChange(change, this.catalog, now));
    return this.#write(actor, async (writer, caller) => {
      const before = await this.#findFor(writer, id, caller);
      const given = readGrants(change, this.catalog);
      const expiry = expiryOf(change, now);
      const after: ApiKey = {
        ...before,
        name: change.name === undefined ? before.name : normalizeName(change.name),
        description: change.description === undefined ? before.description : normalizeDescription(change.description),
        roles: change.roles ? given.roles : before.roles,
        permissions: change.permissions ? given.permissions : before.permissions,
        expiresAt: expiry === undefined ? before.expiresAt : expiry,
      };
      refuseFaults(grantsFault(after.roles, after.permissions));
      if (change.roles ?? change.permissions) requireToHold(caller, PermissionSet.of(this.catalog, after));
      if (expiry !== undefined) requireToOutlive(caller, expiry);
      const holder = await writer.findByName(after.name);
      if (holder && holder.id !== id) throw new NameTakenError(after.name, false);
      await writer.update(after);
      return { before, after };
    });
  }

  /** Switches a key on or off. @throws KeysError NOT_FOUND; ForbiddenError; a STORE_ error */
  async setEnabled(id: string, enabled: boolean, actor: Actor): Promise<ChangedKey> {
    return this.#write(actor, async (writer, caller) => {
      const before = await this.#findFor(writer, id, caller);
      if ((before.disabledAt === null) === enabled) return { before, after: before };
      const after = { ...before, disabledAt: enabled ? null : this.#options.clock() };
      await writer.update(after);
      return { before, after };
    });
  }

  /**
   * Deletes keys, and all keys that they created. Ids that no key has are passed over.
   * @returns what was deleted, the named ones first
   */
  async delete(ids: readonly string[], actor: Actor): Promise<ApiKey[]> {
    return this.#write(actor, async (writer, caller) => {
      const named = new Set(ids);
      const leaving = await writer.findWithDescendants(ids);
      const asked = leaving.filter(({ id }) => named.has(id));
      requireFor(caller, 'DELETE', asked);
      await writer.delete(childrenFirst(leaving));
      return [...asked, ...leaving.filter(({ id }) => !named.has(id))];
    });
  }

  /** See `authenticate`. */
  authenticate(secret: string): Promise<Authentication> {
    return authenticate(secret, this.#options.repository, this.catalog, this.#options.clock());
  }

  /** See `listKeys`. */
  list(query: PageQuery, actor: Actor): Promise<Page> {
    return listKeys(this.#options.repository, query, actor, { catalog: this.catalog, now: this.#options.clock() });
  }

  /** A key's status now. */
  statusOf(key: ApiKey): Status {
    return statusOf(key, this.#options.clock());
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  check(): Promise<void> {
    return this.#options.repository.check();
  }

  /** A key by its id, if there is one that the actor may read. */
  async findById(id: string, actor: Actor): Promise<ApiKey | undefined> {
    return readable(await this.#options.repository.findById(id), actor);
  }

  /** A key by its name, if there is one that the actor may read. */
  async findByName(name: string, actor: Actor): Promise<ApiKey | undefined> {
    return readable(await this.#options.repository.findByName(normalizeName(name)), actor);
  }

  /** The key that is to be updated. */
  async #findFor(writer: KeyWriter, id: string, caller: Actor): Promise<ApiKey> {
    const key = await writer.findById(id);
    if (!key) throw new KeysError('NOT_FOUND', `There is no API key with the id "${printable(id)}".`);
    requireFor(caller, 'UPDATE', [key]);
    return key;
  }

  /** Runs a transaction with the caller as it stands inside it: its grants may have changed since it was let in. */
  #write<Result>(actor: Actor, work: (writer: KeyWriter, caller: Actor) => Promise<Result>): Promise<Result> {
    return this.#options.repository.write(async (writer) => {
      if (actor === OPERATOR) return work(writer, OPERATOR);
      const key = await writer.findById(actor.key.id);
      if (!key || this.statusOf(key) !== 'ACTIVE') throw new KeysError('FORBIDDEN', 'The key that asks for this is no longer valid.');
      return work(writer, principalOf(key, this.catalog));
    });
  }

  async #undoCreate(key: ApiKey, replaced: readonly StoredKey[]): Promise<void> {
    await this.#options.repository.write(async (writer) => {
      // Where it was deleted or replaced meanwhile, somebody else has decided already.
      if (!(await writer.findById(key.id))) return;
      await writer.delete([key.id]);
      const creator = replaced[0]?.createdBy;
      if (!creator || (await writer.findById(creator))) await writer.insert(replaced);
    });
  }
}

/** When a key is to end, by a request that was checked; nothing where it does not say. */
function expiryOf(request: ExpiryRequest, now: number): number | null | undefined {
  if (request.expiresIn === undefined && request.expiresAt === undefined) return undefined;
  return readExpiry(request, now) as number | null;
}

function readable(key: ApiKey | undefined, actor: Actor): ApiKey | undefined {
  return key && mayFor(actor, 'READ', key) ? key : undefined;
}

/** The ids in the order in which keys can leave: none before those that it created. */
function childrenFirst(keys: readonly ApiKey[]): string[] {
  return keys.map(({ id }) => id).toReversed();
}
