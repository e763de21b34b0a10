import type { CheckedRequest, CheckRequestOptions, RequestCheck } from '../http/request-check.ts';
import { type Actor as KnownActor, type Caller, OPERATOR } from '../keys/authorization/index.ts';
import {
  anyText,
  anything,
  checkOptions,
  formatList,
  having,
  invalidOption,
  KeysError,
  kindOf,
  list,
  printable,
  required,
  type Rule,
  textOr,
  UUID,
  suggestion,
} from '../keys/basics/index.ts';
import { isAdded } from '../keys/added/index.ts';
import { isOnKeys, type KeysOperation, OPERATIONS, type Operations, perform } from '../keys/operations/index.ts';
import type { ChangedKey, UpdatedKey } from '../keys/changes/index.ts';
import type { ApiKey, KeyChange, NewKey, RotationRequest } from '../keys/key/index.ts';
import type { CatalogAdditions } from '../keys/permissions/index.ts';
import { type CreatedKey, type Page, type PageQuery, type RotatedKey, SERVICE } from '../keys/service/index.ts';
import { openKeys as openService, type OpenKeys as OpenService, type OpenKeysOptions } from './open-keys.ts';

/** The actor of a call: the key of a request, or `OPERATOR`, which is the program itself and is allowed everything. */
export type Actor = Caller | typeof OPERATOR;

/** Names the actor. Except for the operator, the call is limited by the key's permissions, as over GraphQL. */
interface Asking {
  readonly actor: Actor;
}

/**
 * An open key store. Each method rejects with a `KeysError`: `OPTION_INVALID` for invalid arguments, `FORBIDDEN` if the
 * actor lacks a permission, the code of another rule, or one of the store.
 */
export interface OpenKeys {
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** True if opening it created the store. */
  readonly created: boolean;
  /**
   * Checks the API key of a request from any protocol or framework: the status of the key and its parent keys, its
   * networks, limits and permissions, and the number of failures from its address. An accepted request counts as a use
   * of the key. It never rejects because of a client's input, or because the store does not answer.
   */
  readonly check: RequestCheck;
  /** Checks a secret like `check`. A missing secret is refused as well. */
  verify(secret: string | null | undefined, options?: CheckRequestOptions): Promise<CheckedRequest>;
  /** Creates a key. Its secret is only returned here. */
  create(input: NewKey, by: Asking): Promise<CreatedKey>;
  /** The key with this id or name; undefined if there is none that the actor can read. */
  get(idOrName: string, by: Asking): Promise<ApiKey | undefined>;
  /** Lists the keys that the actor can read: all of them, or its own. */
  list(query: PageQuery, by: Asking): Promise<Page>;
  /** Changes a key. */
  update(id: string, change: KeyChange, by: Asking): Promise<UpdatedKey>;
  /** Disables a key: it is refused until it is enabled. */
  disable(id: string, by: Asking): Promise<ChangedKey>;
  /** Enables a key that was disabled. */
  enable(id: string, by: Asking): Promise<ChangedKey>;
  /** Gives a key a new secret; the previous one keeps working until the grace period ends. */
  rotate(id: string, request: RotationRequest, by: Asking): Promise<RotatedKey>;
  /** Revokes the previous secret at once. */
  finishRotation(id: string, by: Asking): Promise<ChangedKey>;
  /** Revokes the new secret at once. */
  rollBackRotation(id: string, by: Asking): Promise<ChangedKey>;
  /** Deletes one or several keys, and all keys that they created. Unknown ids are ignored. Returns the deleted keys. */
  delete(ids: string | readonly string[], by: Asking): Promise<ApiKey[]>;
  /**
   * Performs an operation of a plugin, by its name.
   * @returns the result of its `run`
   */
  run(operation: string, input: object, by: Asking): Promise<unknown>;
  /**
   * The same open store with other resources, roles, limits and policy, such as after a change of the configuration.
   * Closing either one closes the store.
   */
  withAdditions(additions: CatalogAdditions): OpenKeys;
  /** Writes pending activity and closes the store. */
  close(): Promise<void>;
  /** For other functions of the library only. */
  readonly [SERVICE]: OpenService;
}

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError OPTION_INVALID, STORE_…
 */
export async function openKeys(options: OpenKeysOptions = {}): Promise<OpenKeys> {
  return libraryKeys(await openService({ declaredIn: 'the options of openKeys', ...options }));
}

/** A method of an open key store: its operation, the rules of its arguments in order, and its input. */
interface Method {
  readonly operation: keyof typeof OPERATIONS;
  readonly takes: Readonly<Record<string, Rule<unknown>>>;
  /** Default: the arguments by their names. */
  readonly input?: (given: never) => object;
}

/** The methods of an open key store. */
const METHODS = {
  create: { operation: 'createApiKey', takes: { input: anything } },
  get: {
    operation: 'apiKey',
    takes: { idOrName: anyText },
    // A name never has the hyphens of an id.
    input: ({ idOrName }: { idOrName: string }) => (UUID.test(idOrName) ? { id: idOrName } : { name: idOrName }),
  },
  list: { operation: 'apiKeys', takes: { query: anything } },
  update: { operation: 'updateApiKey', takes: { id: anyText, change: anything } },
  disable: {
    operation: 'setApiKeyEnabled',
    takes: { id: anyText },
    input: ({ id }: { id: string }) => ({ id, enabled: false }),
  },
  enable: {
    operation: 'setApiKeyEnabled',
    takes: { id: anyText },
    input: ({ id }: { id: string }) => ({ id, enabled: true }),
  },
  rotate: { operation: 'rotateApiKey', takes: { id: anyText, request: anything } },
  finishRotation: { operation: 'finishApiKeyRotation', takes: { id: anyText } },
  rollBackRotation: { operation: 'rollBackApiKeyRotation', takes: { id: anyText } },
  delete: {
    operation: 'deleteApiKeys',
    takes: { ids: textOr(list(anyText)) },
    input: ({ ids }: { ids: string | readonly string[] }) => ({ ids: [ids].flat() }),
  },
} as const satisfies Record<string, Method>;

/** The library's methods over a service. @param state shared by all over the same store */
export function libraryKeys(service: OpenService, state = { isClosed: false }): OpenKeys {
  const { location, created, check } = service;
  const methods = Object.entries<Method>(METHODS).map(([method, { operation: name, takes, input }]) => {
    const operation = OPERATIONS[name] as KeysOperation<object, unknown>;
    const rules = Object.entries<Rule<unknown>>(takes);
    const called = async (...values: unknown[]) => {
      const given = rules.map(([argument, rule], index) => {
        const problem = rule(values[index], argument);
        if (problem !== undefined) throw invalidOption(`keys.${method}`, `The argument "${argument}" ${problem}`);
        return [argument, values[index]];
      });
      const actor = actorOf(`keys.${method}`, values[rules.length] as Asking | undefined);
      const named = Object.fromEntries(given) as never;
      requireOpen();
      return perform(operation, service, input?.(named) ?? named, actor);
    };
    return [method, called];
  });
  let added: Operations | undefined;
  const requireOpen = () => {
    if (!state.isClosed) return;
    const message = `The key store ${location} is closed. Open it again, or close it once nothing uses it.`;
    throw new KeysError('STORE_UNAVAILABLE', message);
  };
  return {
    ...(Object.fromEntries(methods) as Pick<OpenKeys, keyof typeof METHODS>),
    location,
    created,
    check,
    async run(name, input, by) {
      const actor = actorOf('keys.run', by);
      const operations = (added ??= await operationsOfPlugins());
      const operation = Object.hasOwn(operations, name) ? operations[name]! : undefined;
      if (!operation || !isOnKeys(operation)) {
        const names = Object.keys(operations);
        const close = suggestion(String(name), names);
        throw invalidOption(
          'keys.run',
          `No plugin has the operation "${printable(String(name))}". ${close && `${close.trim()} `}` +
            `There are: ${formatList(names) || 'none'}.`,
        );
      }
      if (typeof input !== 'object' || input === null)
        throw invalidOption('keys.run', `The input is ${kindOf(input)}. It must be an object.`);
      requireOpen();
      return perform(operation, service, input, actor);
    },
    verify: (secret, ...more) => check({ secret: secret ?? undefined }, ...more),
    get [SERVICE]() {
      return service;
    },
    withAdditions: (additions) => libraryKeys(service.withAdditions(additions), state),
    close: () => {
      state.isClosed = true;
      return service.close();
    },
  };
}

const WHO =
  'Say who asks: { actor: OPERATOR } for this program itself, or { actor: principal } for the key of a request.';
const principal = having<KnownActor & object>('', 'apiKey', 'chain', 'access');

/** @throws KeysError OPTION_INVALID without an actor */
function actorOf(caller: string, by: Asking | undefined): KnownActor {
  if (typeof by !== 'object' || by === null) throw invalidOption(caller, `The last argument is ${kindOf(by)}. ${WHO}`);
  if (!('actor' in by)) throw invalidOption(caller, `The last argument is an object without "actor". ${WHO}`);
  if (by.actor === undefined) throw invalidOption(caller, `The option "actor" is undefined. ${WHO}`);
  checkOptions<Asking>(caller, by, {
    actor: required((value: unknown, name: string) =>
      value === OPERATOR || principal(value, name) === undefined ? undefined : `is ${kindOf(value)}. ${WHO}`,
    ),
  });
  return by.actor as KnownActor;
}

/** The operations of plugins, by name, which are fixed once features are in use. */
async function operationsOfPlugins(): Promise<Operations> {
  const { allFeatures } = await import('../features/index.ts');
  const tables = allFeatures().filter(isAdded);
  return Object.assign({}, ...tables.map(({ operations }) => operations)) as Operations;
}
