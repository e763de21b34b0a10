import { randomBytes, randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { createCatalog } from './keys/permissions/catalog.ts';
import { KeysService } from './keys/service.ts';
import type { OpenStoreOptions } from './store/open.ts';

export interface OpenKeysOptions extends OpenStoreOptions {
  /** The host's own resource names. */
  resources?: readonly string[];
}

/** The rules over an open store. */
export interface OpenKeys extends KeysService {
  /** The absolute path of the store, or its URL without the password. */
  readonly location: string;
  /** Whether there was no store before. */
  readonly created: boolean;
  /** Writes what is not written yet of the use of keys, and closes the store. */
  close(): Promise<void>;
}

/**
 * Opens the key store, and creates it if it is missing.
 * @throws KeysError STORE_…
 * @example
 * const keys = await openKeys({ database: '/var/lib/my-service/keys.sqlite' });
 * const { secret } = await keys.create({ name: 'CI', roles: ['VIEWER'] }, 'operator');
 */
export async function openKeys({ resources, ...options }: OpenKeysOptions = {}): Promise<OpenKeys> {
  const catalog = createCatalog(resources);
  const { openStore } = await import('./store/open.ts');
  const store = await openStore(options);
  const service = new KeysService({
    repository: store.repository,
    catalog,
    clock: Date.now,
    randomBytes,
    randomId: randomUUID,
    // What is not written yet must not keep the program from ending.
    schedule: (work, delay) => void setTimeout(work, delay).unref(),
    operator: userName(),
  });
  const close = async () => {
    try {
      // A store that can't take the last counts must not keep the program from ending either.
      await service.finishActivity().catch(() => {});
    } finally {
      await store.close();
    }
  };
  return Object.assign(service, { location: store.location, created: store.created, close });
}

/** The user whose process this is; a container's user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
