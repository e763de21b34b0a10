import { randomBytes, randomUUID } from 'node:crypto';
import type { OwnFeature } from '../feature.ts';
import type { RequestCheck } from '../http/request-check.ts';
import { operatorName } from '../keys/authorization/index.ts';
import { listenersOf } from '../keys/changes/index.ts';
import {
  amount,
  anything,
  checkOptions,
  count,
  invalidOption,
  list,
  oneOf,
  options as optionsIn,
  orUndefined,
  recordOf,
  type Rule,
  type Rules,
  text,
  withoutUndefined,
  yesOrNo,
} from '../keys/basics/index.ts';
import {
  type Catalog,
  type CatalogAdditions,
  createCatalog,
  BUILTIN_RESOURCES,
  HOST_ACTIONS,
  HOST_RESOURCES,
  type Permission,
  type PolicyRules,
} from '../keys/permissions/index.ts';
import type { ChangeSource, NotificationReport, SchemaDifference } from '../keys/repository/index.ts';
import { type KeysOptions, KeysService } from '../keys/service/index.ts';
import { type Limited, Limiter } from '../limits/index.ts';
import type { OpenStoreOptions, Store } from '../store/open.ts';

/** The key store to open, and how. */
export interface OpenKeysOptions extends OpenStoreOptions, CatalogAdditions {
  /**
   * The number of accepted secrets to remember, so that the store is not asked again, at 1 KB each. Default: 100,000.
   */
  maxVerifiedKeys?: number;
}

/** Rules of the additions to the built-in catalog, without those of features. */
const ADDITIONS = {
  resources: HOST_RESOURCES,
  actions: HOST_ACTIONS,
  prefix: orUndefined(text),
  builtinResources: oneOf(...BUILTIN_RESOURCES),
  // The names are the installation's own. `createCatalog` checks the permissions together with the resources.
  roles: recordOf(list(text) as Rule<unknown> as Rule<readonly Permission[]>),
  defaultLimits: list(text),
  policy: optionsIn<PolicyRules>({
    maxLifetime: text,
    requireExpiry: yesOrNo,
    grantableByKeys: list(text),
    maxKeysPerCreator: count,
    disableUnused: text,
  }),
  declaredIn: text,
  added: recordOf(anything),
} satisfies Partial<Rules<CatalogAdditions>>;

/** Rules of the additions to the built-in catalog. */
export async function additionRules(): Promise<Rules<CatalogAdditions>> {
  const { keepingFeatures } = await import('../features/index.ts');
  const ofFeatures = keepingFeatures().map(({ config }) => config?.additions);
  return Object.assign({}, ADDITIONS, ...ofFeatures) as Rules<CatalogAdditions>;
}

const OPTIONS: Rules<Omit<OpenKeysOptions, keyof CatalogAdditions>> = {
  database: text,
  env: anything,
  lockWaitMs: amount,
  writeWaitMs: amount,
  busyTimeoutMs: amount,
  ifMissing: oneOf('create', 'fail', 'empty'),
  // Telemetry without metrics has no timer.
  timer: orUndefined(anything),
  maxVerifiedKeys: count,
};

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError OPTION_INVALID, STORE_…
 */
export async function openKeys(options: OpenKeysOptions = {}): Promise<OpenKeys> {
  checkOptions<OpenKeysOptions>('openKeys', options, { ...(await additionRules()), ...OPTIONS });
  return openValidKeys(options);
}

/**
 * Like `openKeys`, for commands, whose options are valid.
 * @param changes the source of changes of a PostgreSQL store. Default: it listens itself
 * @throws KeysError STORE_…
 */
export async function openValidKeys(
  {
    maxVerifiedKeys,
    database,
    env,
    lockWaitMs,
    writeWaitMs,
    busyTimeoutMs,
    ifMissing,
    timer,
    ...additions
  }: OpenKeysOptions,
  changes?: ChangeSource,
): Promise<OpenKeys> {
  const options = withoutUndefined({ database, env, lockWaitMs, writeWaitMs, busyTimeoutMs, ifMissing, timer });
  const [{ openStore }, { keepingFeatures, allStores }, rules] = await Promise.all([
    import('../store/open.ts'),
    import('../features/index.ts'),
    additionRules(),
  ]);
  // The list of features has some of the built-in resources.
  const catalog = catalogOf('openKeys', additions);
  const store = await openStore(options, { features: await allStores(), changes });
  return openKeysOver(store, catalog, { rules, maxVerifiedKeys, features: keepingFeatures() });
}

/** A store, or a substitute that can check keys. */
type OpenedStore = Store & Partial<Pick<KeysOptions, 'activityWriters'>>;

/** Options of a service over an open store. */
interface OverOptions {
  readonly maxVerifiedKeys?: number | undefined;
  /** Milliseconds since 1970. Default: the clock of the machine. */
  readonly clock?: () => number;
  /** Default: none, for a store that refuses changes. */
  readonly features?: readonly OwnFeature[];
  /** Rules for other additions to the catalog. Default: those of the core. */
  readonly rules?: Rules<CatalogAdditions>;
}

/** The service over an open store. Closing the keys closes the store. */
export function openKeysOver(
  store: OpenedStore,
  catalog: Catalog,
  { maxVerifiedKeys, clock = Date.now, features = [], rules = ADDITIONS as Rules<CatalogAdditions> }: OverOptions = {},
): OpenKeys {
  const limiter = new Limiter({
    store: store.limits,
    elapsed: () => performance.now(),
    schedule,
    id: randomUUID(),
  });
  return new OpenKeys(
    { store, limiter, rules },
    {
      repository: store.repository,
      activityWriters: store.activityWriters,
      catalog,
      clock,
      randomBytes,
      randomId: randomUUID,
      schedule,
      operator: operatorName(),
      listeners: listenersOf(features),
      maxVerifiedKeys,
    },
  );
}

/** @throws KeysError OPTION_INVALID for invalid declarations */
export function catalogOf(caller: string, additions: CatalogAdditions): Catalog {
  try {
    return createCatalog(additions);
  } catch (error) {
    throw invalidOption(caller, (error as Error).message);
  }
}

/** See `listenForChanges` of the store. @throws KeysError USAGE */
export async function listenForChanges(
  options: Pick<OpenStoreOptions, 'database' | 'lockWaitMs'>,
): Promise<ChangeSource | undefined> {
  return (await import('../store/open.ts')).listenForChanges(options);
}

/** Pending work must not keep the process alive. */
function schedule(work: () => void, delayMs: number): void {
  setTimeout(work, delayMs).unref();
}

/** Parts that services over one store share. */
interface Shared extends Limited {
  store: OpenedStore;
  /** Rules for other additions to the catalog. */
  rules: Rules<CatalogAdditions>;
}

/** The service of an open key store. */
export class OpenKeys extends KeysService implements Limited {
  readonly limiter: Limiter;
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** True if opening it created the store. */
  readonly created: boolean;
  /** False if there is no store: this one is empty and refuses changes. */
  readonly exists: boolean;
  readonly #over: Shared;
  #check: Promise<RequestCheck> | undefined;

  constructor(over: Shared, ...parts: ConstructorParameters<typeof KeysService>) {
    super(...parts);
    this.#over = over;
    this.limiter = over.limiter;
    this.location = over.store.location;
    this.created = over.store.created;
    this.exists = over.store.exists;
  }

  /**
   * Calls back when notifications of other processes' changes are lost, so that every request asks the store, and when
   * they arrive again. Only happens with PostgreSQL.
   */
  watchHearing(report: NotificationReport): void {
    this.#over.store.repository.watchHearing(report);
  }

  /**
   * Differences between the store's schema and that of this version; `unknown` if the user of a PostgreSQL database
   * cannot create a schema for the comparison.
   * @throws KeysError STORE_…
   */
  schemaDifferences(): Promise<SchemaDifference[] | 'unknown'> {
    return this.#over.store.schemaDifferences();
  }

  /**
   * Returns free space to the file system, for a file in pieces: it yields after each, so that others can change keys.
   * A PostgreSQL server reclaims space for its own use.
   * @param leastShare the share of a file that must be free, from 0 to 1. Default: 0
   * @returns how many bytes smaller the file is; null for PostgreSQL
   * @throws KeysError STORE_…
   */
  compact(leastShare = 0): AsyncGenerator<void, number | null> {
    return this.#over.store.compact(leastShare);
  }

  /**
   * Settings of the database server that break guarantees, or risks of a file's location, as sentences.
   * @throws KeysError STORE_…
   */
  settingProblems(): Promise<string[]> {
    return this.#over.store.settingProblems();
  }

  /**
   * A service over the same open store with other resources, roles, limits and policy, such as after a change of the
   * configuration. This one keeps its own; closing either one closes the store.
   * @throws KeysError OPTION_INVALID
   */
  withAdditions(additions: CatalogAdditions): OpenKeys {
    checkOptions('keys.withAdditions', additions, this.#over.rules);
    return new OpenKeys(this.#over, ...this.partsWith(catalogOf('keys.withAdditions', additions)));
  }

  /**
   * Checks the API key of a request from any protocol or framework, like `bearerAuth`: the status of the key and its
   * parent keys, its networks, limits and permissions, and the number of failures from its address. An accepted request
   * counts as a use of the key. It never rejects because of a client's input, or because the store does not answer. It
   * is bound to its object, so that it can be passed on alone.
   * @throws KeysError OPTION_INVALID
   */
  readonly check: RequestCheck = async (...checked) => {
    this.#check ??= import('../http/request-check.ts').then(({ requestCheck }) => requestCheck(this));
    return (await this.#check)(...checked);
  };

  /** Writes pending activity and closes the store. */
  async close(): Promise<void> {
    try {
      // A store that cannot be written must not prevent closing.
      await this.finishActivity().catch(() => {});
      await this.limiter.finish();
      await this.endFeatures();
    } finally {
      await this.#over.store.close();
    }
  }
}
