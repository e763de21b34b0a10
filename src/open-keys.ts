import { randomBytes, randomUUID } from 'node:crypto';
import { createCatalog } from './keys/catalog.ts';
import { KeysService } from './keys/service.ts';
import type { OpenStoreOptions } from './store/open.ts';

export interface OpenKeysOptions extends OpenStoreOptions {
  /** The host's own resource names. */
  resources?: readonly string[];
}

/** The rules over an open store. */
export interface OpenKeys extends KeysService {
  /** The absolute path of the store. */
  readonly location: string;
  /** Whether there was no store before. */
  readonly created: boolean;
  close(): Promise<void>;
}

/**
 * Opens the key store, and makes it where there is none yet.
 * @throws KeysError STORE_…
 * @example
 * const keys = await openKeys({ database: '/var/lib/my-service/keys.sqlite' });
 * const { secret } = await keys.create({ name: 'CI', roles: ['VIEWER'] }, 'operator');
 */
export async function openKeys({ resources, ...options }: OpenKeysOptions = {}): Promise<OpenKeys> {
  const catalog = createCatalog(resources);
  const { openStore } = await import('./store/open.ts');
  const store = await openStore(options);
  const service = new KeysService({ repository: store.repository, catalog, clock: Date.now, randomBytes, randomId: randomUUID });
  return Object.assign(service, { location: store.location, created: store.created, close: () => store.close() });
}
