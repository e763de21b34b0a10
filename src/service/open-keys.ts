import { randomBytes, randomUUID } from 'node:crypto';
import type { OwnFeature } from '../feature.ts';
import type { RequestCheck } from '../http/request-check.ts';
import { operatorName } from '../keys/authorization/index.ts';
import { listenersOf } from '../keys/changes/index.ts';
import type { NoticeStore } from '../keys/feed/index.ts';
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
  yesOrNo,
} from '../keys/basics/index.ts';
import {
  type Catalog,
  type CatalogAdditions,
  CONSENT_MODES,
  createCatalog,
  BUILTIN_RESOURCES,
  HOST_RESOURCES,
  type Permission,
  type PolicyRules,
} from '../keys/permissions/index.ts';
import type { ChangeSource, NotificationReport, SchemaDifference } from '../keys/repository/index.ts';
import { type KeysOptions, KeysService } from '../keys/service/index.ts';
import { type Limited, Limiter } from '../limits/index.ts';
import type { OpenStoreOptions, Store } from '../store/open.ts';

/** Which key store to open, and how. */
export interface OpenKeysOptions extends OpenStoreOptions, CatalogAdditions {
  /** How many accepted secrets are remembered, so that the store need not be asked: 1 KB for each. Default: 100,000. */
  maxVerifiedKeys?: number;
}

/** How what is beside what is built in is checked. */
export const ADDITIONS: Rules<CatalogAdditions> = {
  resources: HOST_RESOURCES,
  builtinResources: oneOf(...BUILTIN_RESOURCES),
  // The names are the installation's own. Its permissions are judged together with its resources.
  roles: recordOf(list(text) as Rule<unknown> as Rule<readonly Permission[]>),
  defaultLimits: list(text),
  policy: optionsIn<PolicyRules>({
    maxLifetime: text,
    requireExpiry: yesOrNo,
    grantableByKeys: list(text),
    maxKeysPerCreator: count,
    disableUnused: text,
  }),
  // What is read from svc-api.yaml has none where the file says nothing, which allows the least.
  consent: orUndefined(oneOf(...CONSENT_MODES)),
  declaredIn: text,
};
const OPTIONS: Rules<OpenKeysOptions> = {
  ...ADDITIONS,
  database: text,
  env: anything,
  lockWaitMs: amount,
  writeWaitMs: amount,
  busyTimeoutMs: amount,
  ifMissing: oneOf('create', 'fail', 'empty'),
  // Telemetry has none without metrics.
  timer: orUndefined(anything),
  maxVerifiedKeys: count,
};

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError OPTION_INVALID, STORE_…
 */
export async function openKeys(options: OpenKeysOptions = {}): Promise<OpenKeys> {
  checkOptions('openKeys', options, OPTIONS);
  return (await openKeysWithNotices(options)).keys;
}

/**
 * The same for commands, whose options are their own, with what a webhook is to be told. Closing the keys closes both.
 * @param changes where a PostgreSQL store hears of changes. Default: it listens itself
 * @throws KeysError STORE_…
 */
export async function openKeysWithNotices(
  { maxVerifiedKeys, ...others }: OpenKeysOptions,
  changes?: ChangeSource,
): Promise<{ keys: OpenKeys; notices: NoticeStore }> {
  const { resources, builtinResources, roles, defaultLimits, policy, consent, declaredIn, ...options } = others;
  const catalog = catalogOf('openKeys', {
    resources,
    builtinResources,
    roles,
    defaultLimits,
    policy,
    consent,
    declaredIn,
  });
  const [{ openStore }, { keepingFeatures, allStores }] = await Promise.all([
    import('../store/open.ts'),
    import('../features/index.ts'),
  ]);
  const store = await openStore(options, { features: await allStores(), changes });
  return {
    keys: openKeysOver(store, catalog, { maxVerifiedKeys, features: keepingFeatures() }),
    notices: store.notices,
  };
}

/** A store, or what checks keys as one does. */
type OpenedStore = Omit<Store, 'notices'> & Partial<Pick<KeysOptions, 'activityWriters'>>;

/** Options of the service of a store that is open already. */
interface OverOptions {
  readonly maxVerifiedKeys?: number | undefined;
  /** Milliseconds since 1970. Default: the clock of the machine. */
  readonly clock?: () => number;
  /** Default: none, for a store that takes no changes. */
  readonly features?: readonly OwnFeature[];
}

/** The service of a store that is open already. Closing the keys closes it. */
export function openKeysOver(
  store: OpenedStore,
  catalog: Catalog,
  { maxVerifiedKeys, clock = Date.now, features = [] }: OverOptions = {},
): OpenKeys {
  const limiter = new Limiter({
    store: store.limits,
    elapsed: () => performance.now(),
    schedule,
    id: randomUUID(),
  });
  return new OpenKeys(
    { store, limiter },
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

/** @throws KeysError OPTION_INVALID for what cannot be declared */
export function catalogOf(caller: string, additions: CatalogAdditions): Catalog {
  try {
    return createCatalog(additions);
  } catch (error) {
    throw invalidOption(caller, (error as Error).message);
  }
}

/** What listens for changes of a store, for other processes: see there. @throws KeysError USAGE */
export async function listenForChanges(
  options: Pick<OpenStoreOptions, 'database' | 'lockWaitMs'>,
): Promise<ChangeSource | undefined> {
  return (await import('../store/open.ts')).listenForChanges(options);
}

/** Pending work must not keep the process alive. */
function schedule(work: () => void, delayMs: number): void {
  setTimeout(work, delayMs).unref();
}

/** What services over one store share. */
interface Shared extends Limited {
  store: OpenedStore;
}

/** The service of an open key store. */
export class OpenKeys extends KeysService implements Limited {
  readonly limiter: Limiter;
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** Whether opening it has created the store. */
  readonly created: boolean;
  /** Whether there is a store; otherwise this is an empty one that takes no changes. */
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
   * Calls back when the changes of other processes are no longer notified, so that every request asks the store, and
   * when they are again. Only PostgreSQL can fail to notify.
   */
  watchHearing(report: NotificationReport): void {
    this.#over.store.repository.watchHearing(report);
  }

  /** Whether searches of keys go by an index. Without it, PostgreSQL reads through the keys. */
  hasSearchIndex(): Promise<boolean> {
    return this.#over.store.repository.hasSearchIndex();
  }

  /**
   * In what the schema of the store is not as this version makes it; `unknown` where the user of a PostgreSQL database
   * may create no schema to compare it with.
   * @throws KeysError STORE_…
   */
  schemaDifferences(): Promise<SchemaDifference[] | 'unknown'> {
    return this.#over.store.schemaDifferences();
  }

  /**
   * Gives free space back to the file system: that of a file in pieces, after each of which it yields, and others
   * change keys; a PostgreSQL server finds what it can use again.
   * @param leastShare how much of a file must be free for that, from 0 to 1. Default: 0
   * @returns by how many bytes a file is smaller; null for PostgreSQL
   * @throws KeysError STORE_…
   */
  compact(leastShare = 0): AsyncGenerator<void, number | null> {
    return this.#over.store.compact(leastShare);
  }

  /**
   * Settings of the database server that break a promise, or risks of a file, as sentences.
   * @throws KeysError STORE_…
   */
  settingProblems(): Promise<string[]> {
    return this.#over.store.settingProblems();
  }

  /**
   * A service over the same open store with other resources, roles, limits and policy, such as those of a changed
   * configuration. This one keeps its own; closing either of them closes the store.
   * @throws KeysError OPTION_INVALID
   */
  withAdditions(additions: CatalogAdditions): OpenKeys {
    checkOptions('keys.withAdditions', additions, ADDITIONS);
    return new OpenKeys(this.#over, ...this.partsWith(catalogOf('keys.withAdditions', additions)));
  }

  /**
   * Checks the API key of a request, wherever that came from, by all that `bearerAuth` checks: the status of the key,
   * and of its parent keys, its networks, limits and permissions, and how often its address was wrong. If it is
   * accepted, it counts as a use of the key. It never rejects for what a client sends, nor where the store does not
   * answer. A function of its own: it may be handed on without the keys.
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
      await this.edges.close();
    } finally {
      await this.#over.store.close();
    }
  }
}
