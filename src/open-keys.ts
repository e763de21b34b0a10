import { randomBytes, randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { createCatalog, type HostResource } from './keys/permissions/catalog.ts';
import type { HearingReport } from './keys/repository.ts';
import { KeysService } from './keys/service.ts';
import { SteadyClock } from './keys/steady-clock.ts';
import type { OpenStoreOptions } from './store/open.ts';

/** Which key store to open, and how. */
export interface OpenKeysOptions extends OpenStoreOptions {
  /** Names of the host's own resources: capital letters, digits and underscores, at most 64. */
  resources?: readonly HostResource[];
  /** How many accepted secrets are remembered, so that the store need not be asked: 1 KB for each. Default: 100,000. */
  maxVerifiedKeys?: number | undefined;
}

/** The service of an open key store. */
export interface OpenKeys extends KeysService {
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
export async function openKeys({ resources, maxVerifiedKeys, ...options }: OpenKeysOptions = {}): Promise<OpenKeys> {
  const catalog = createCatalog(resources);
  const { openStore } = await import('./store/open.ts');
  const store = await openStore(options);
  const clock = new SteadyClock(
    { read: Date.now, elapsed: () => performance.now() },
    await store.repository.latestTime(),
  );
  const service = new KeysService({
    repository: store.repository,
    catalog,
    clock: () => clock.now(),
    randomBytes,
    randomId: randomUUID,
    // Pending activity must not keep the process alive.
    schedule: (work, delay) => void setTimeout(work, delay).unref(),
    operator: userName(),
    maxVerifiedKeys,
  });
  const close = async () => {
    try {
      // A store that cannot be written must not prevent closing.
      await service.finishActivity().catch(() => {});
    } finally {
      await store.close();
    }
  };
  return Object.assign(service, {
    location: store.location,
    created: store.created,
    exists: store.exists,
    clockBehindMs: () => clock.behind(),
    watchHearing: (report: HearingReport) => store.repository.watchHearing(report),
    hasSearchIndex: () => store.hasSearchIndex(),
    close,
  });
}

/** The user who runs the process; in a container it may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
