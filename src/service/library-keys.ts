import type { RequestCheck } from '../http/request-check.ts';
import { type Actor as KnownActor, type Caller, OPERATOR } from '../keys/authorization/index.ts';
import { checkOptions, having, invalidOption, kindOf, required } from '../keys/basics/index.ts';
import type { ChangedKey, UpdatedKey } from '../keys/changes/index.ts';
import type { ApiKey, KeyChange, NewKey, RotationRequest } from '../keys/key/index.ts';
import type { CatalogAdditions } from '../keys/permissions/index.ts';
import { type CreatedKey, type Page, type PageQuery, type RotatedKey, SERVICE } from '../keys/service/index.ts';
import { openKeys as openService, type OpenKeys as OpenService, type OpenKeysOptions } from './open-keys.ts';

/** Who asks for something: the key of a request, or `OPERATOR`, which is the program itself and may do everything. */
export type Actor = Caller | typeof OPERATOR;

/** Who asks. What is not the operator's is allowed as far as the key may do it, as over GraphQL. */
interface Asking {
  readonly actor: Actor;
}

/**
 * An open key store. Each method rejects with a `KeysError`: `OPTION_INVALID` for arguments that cannot be meant,
 * `FORBIDDEN` for what the actor may not do, one that names a rule, or one of the store.
 */
export interface OpenKeys {
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** Whether opening it has created the store. */
  readonly created: boolean;
  /**
   * Checks the API key of a request, wherever that came from: the status of the key, and of its parent keys, its
   * networks, limits and permissions, and how often its address was wrong. If it is accepted, it counts as a use of the
   * key. It never rejects for what a client sends, nor where the store does not answer.
   */
  readonly check: RequestCheck;
  /** Creates a key. Its secret is told once. */
  create(input: NewKey, by: Asking): Promise<CreatedKey>;
  /** A key by its id, if there is one that the actor may read. */
  findById(id: string, by: Asking): Promise<ApiKey | undefined>;
  /** A key by its name, if there is one that the actor may read. */
  findByName(name: string, by: Asking): Promise<ApiKey | undefined>;
  /** Lists the keys that the actor may read: all of them, or its own. */
  list(query: PageQuery, by: Asking): Promise<Page>;
  /** Changes a key. */
  update(id: string, change: KeyChange, by: Asking): Promise<UpdatedKey>;
  /** Enables or disables a key. */
  setEnabled(id: string, enabled: boolean, by: Asking): Promise<ChangedKey>;
  /** Gives a key a new secret; the previous one works until the grace ends. */
  rotate(id: string, request: RotationRequest, by: Asking): Promise<RotatedKey>;
  /** Revokes the previous secret at once. */
  finishRotation(id: string, by: Asking): Promise<ChangedKey>;
  /** Revokes the new secret at once. */
  rollBackRotation(id: string, by: Asking): Promise<ChangedKey>;
  /** Deletes keys, and all keys that they created. Unknown ids are ignored. Returns what was deleted. */
  delete(ids: readonly string[], by: Asking): Promise<ApiKey[]>;
  /**
   * The same open store with other resources, roles, limits and policy, such as those of a changed configuration.
   * Closing either of them closes the store.
   */
  withAdditions(additions: CatalogAdditions): OpenKeys;
  /** Writes pending activity and closes the store. */
  close(): Promise<void>;
  /** For the other functions of the library alone. */
  readonly [SERVICE]: OpenService;
}

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError OPTION_INVALID, STORE_…; Error where resources, roles or rules of the policy are invalid
 */
export async function openKeys(options: OpenKeysOptions = {}): Promise<OpenKeys> {
  return new LibraryKeys(await openService(options));
}

class LibraryKeys implements OpenKeys {
  readonly location: string;
  readonly created: boolean;
  readonly check: RequestCheck;
  readonly #service: OpenService;

  constructor(service: OpenService) {
    this.location = service.location;
    this.created = service.created;
    this.check = service.check;
    this.#service = service;
  }

  get [SERVICE](): OpenService {
    return this.#service;
  }

  async create(input: NewKey, by: Asking): Promise<CreatedKey> {
    return this.#service.create(input, actorOf('create', by));
  }

  async findById(id: string, by: Asking): Promise<ApiKey | undefined> {
    return this.#service.findById(id, actorOf('findById', by));
  }

  async findByName(name: string, by: Asking): Promise<ApiKey | undefined> {
    return this.#service.findByName(name, actorOf('findByName', by));
  }

  async list(query: PageQuery, by: Asking): Promise<Page> {
    return this.#service.list(query, actorOf('list', by));
  }

  async update(id: string, change: KeyChange, by: Asking): Promise<UpdatedKey> {
    return this.#service.update(id, change, actorOf('update', by));
  }

  async setEnabled(id: string, enabled: boolean, by: Asking): Promise<ChangedKey> {
    return this.#service.setEnabled(id, enabled, actorOf('setEnabled', by));
  }

  async rotate(id: string, request: RotationRequest, by: Asking): Promise<RotatedKey> {
    return this.#service.rotate(id, request, actorOf('rotate', by));
  }

  async finishRotation(id: string, by: Asking): Promise<ChangedKey> {
    return this.#service.finishRotation(id, actorOf('finishRotation', by));
  }

  async rollBackRotation(id: string, by: Asking): Promise<ChangedKey> {
    return this.#service.rollBackRotation(id, actorOf('rollBackRotation', by));
  }

  async delete(ids: readonly string[], by: Asking): Promise<ApiKey[]> {
    return this.#service.delete(ids, actorOf('delete', by));
  }

  withAdditions(additions: CatalogAdditions): OpenKeys {
    return new LibraryKeys(this.#service.withAdditions(additions));
  }

  close(): Promise<void> {
    return this.#service.close();
  }
}

const WHO =
  'Say who asks: { actor: OPERATOR } for this program itself, or { actor: principal } for the key of a request.';
const principal = having<KnownActor & object>('', 'apiKey', 'chain', 'access');

/** @throws KeysError OPTION_INVALID where nobody asks */
function actorOf(method: string, by: Asking | undefined): KnownActor {
  const caller = `keys.${method}`;
  if (typeof by !== 'object' || by === null) throw invalidOption(caller, `The last argument is ${kindOf(by)}. ${WHO}`);
  if (!('actor' in by)) throw invalidOption(caller, `The last argument is an object without "actor". ${WHO}`);
  checkOptions<Asking>(caller, by, {
    actor: required((value: unknown, name: string) =>
      value === OPERATOR || principal(value, name) === undefined ? undefined : `is ${kindOf(value)}. ${WHO}`,
    ),
  });
  return by.actor as KnownActor;
}
