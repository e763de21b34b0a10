import { randomBytes, randomUUID } from 'node:crypto';
import { type CatalogAdditions, createCatalog } from './keys/permissions/catalog.ts';
import type { NoticeStore } from './keys/notices/notice-store.ts';
import type { HearingReport } from './keys/repository.ts';
import { KeysService } from './keys/service.ts';
import { AttemptCounter } from './limits/attempt-counter.ts';
import { type Limited, Limiter } from './limits/limiter.ts';
import { SteadyClock } from './keys/steady-clock.ts';
import { operatorName } from './operator-name.ts';
import type { OpenStoreOptions, Store } from './store/open.ts';

/** Which key store to open, and how. */
export interface OpenKeysOptions extends OpenStoreOptions, CatalogAdditions {
  /** How many accepted secrets are remembered, so that the store need not be asked: 1 KB for each. Default: 100,000. */
  maxVerifiedKeys?: number | undefined;
}

/** The service of an open key store. */
export interface OpenKeys extends KeysService, Limited {
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** Whether opening it has created the store. */
  readonly created: boolean;
  /** Whether there is a store; otherwise this is an empty one that takes no changes. */
  readonly exists: boolean;
  /** By how many milliseconds the clock of this machine is behind the time that is used: see `SteadyClock`. */
  clockBehindMs(): number;
  /**
   * Calls back when the changes of other processes are no longer heard, so that every request asks the store, and when
   * they are heard again. Only PostgreSQL can fail to notify.
   */
  watchHearing(report: HearingReport): void;
  /** Whether searches of keys go by an index. Without it, PostgreSQL reads through the keys. */
  hasSearchIndex(): Promise<boolean>;
  /**
   * A service over the same open store with other resources, roles, limits and policy, such as those of a changed
   * configuration. This one keeps its own; closing either of them closes the store.
   * @throws Error as `createCatalog`
   */
  withAdditions(additions: CatalogAdditions): OpenKeys;
  /** Writes pending activity and closes the store. */
  close(): Promise<void>;
}

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError STORE_…
 * @example
 * const keys = await openKeys({ database: '/var/lib/my-service/keys.sqlite' });
 * const { secret } = await keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
 * await keys.close();
 */
export async function openKeys(options: OpenKeysOptions = {}): Promise<OpenKeys> {
  return (await openKeysWithNotices(options)).keys;
}

/** The same, with what a webhook is to be told. Closing the keys closes both. @throws KeysError STORE_… */
export async function openKeysWithNotices({
  resources,
  roles,
  defaultLimits,
  policy,
  consent,
  declaredIn,
  maxVerifiedKeys,
  ...options
}: OpenKeysOptions): Promise<{ keys: OpenKeys; notices: NoticeStore }> {
  const catalog = createCatalog({ resources, roles, defaultLimits, policy, consent, declaredIn });
  const { openStore } = await import('./store/open.ts');
  const store = await openStore(options);
  const clock = new SteadyClock(
    { read: Date.now, elapsed: () => performance.now() },
    await store.repository.latestTime(),
  );
  const limiter = new Limiter({
    store: store.limits,
    elapsed: () => performance.now(),
    schedule,
    id: randomUUID(),
  });
  const service = new KeysService({
    repository: store.repository,
    catalog,
    clock: () => clock.now(),
    clockBehindMs: () => clock.behind(),
    randomBytes,
    randomId: randomUUID,
    schedule,
    operator: operatorName(),
    maxVerifiedKeys,
    counterOf: (limit) => new AttemptCounter(limit),
  });
  return { keys: openedBy(service, { store, clock, limiter }), notices: store.notices };
}

/** Pending work must not keep the process alive. */
function schedule(work: () => void, delayMs: number): void {
  setTimeout(work, delayMs).unref();
}

/** What services over one store share. */
interface Shared extends Limited {
  store: Store;
  clock: SteadyClock;
}

function openedBy(service: KeysService, shared: Shared): OpenKeys {
  const { store, clock, limiter } = shared;
  return Object.assign(service, {
    limiter,
    location: store.location,
    created: store.created,
    exists: store.exists,
    clockBehindMs: () => clock.behind(),
    watchHearing: (report: HearingReport) => store.repository.watchHearing(report),
    hasSearchIndex: () => store.repository.hasSearchIndex(),
    withAdditions: (additions: CatalogAdditions) => openedBy(service.withCatalog(createCatalog(additions)), shared),
    close: async () => {
      try {
        // A store that cannot be written must not prevent closing.
        await service.finishActivity().catch(() => {});
        await limiter.finish();
      } finally {
        await store.close();
      }
    },
  });
}
