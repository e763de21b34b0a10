import type { KeyAdministration } from '../keys/administration.ts';
import { type Catalog, type CatalogAdditions, createCatalog } from '../keys/permissions/catalog.ts';
import type { OpenKeys, OpenKeysOptions } from '../service/open-keys.ts';
import { type PlaceFlags, type ServerTarget, serverTarget } from './server-target.ts';

/** How long SQLite waits for the lock before a command tries again: a command has nothing else to do meanwhile. */
export const BUSY_TIMEOUT_MS = 100;

/** Opens the store for a command. @throws KeysError STORE_… */
async function openForCommand(options: OpenKeysOptions): Promise<OpenKeys> {
  const { openKeysWithNotices } = await import('../service/open-keys.ts');
  return (await openKeysWithNotices({ busyTimeoutMs: BUSY_TIMEOUT_MS, ...options })).keys;
}

/** Opens the store while `work` runs. @throws KeysError STORE_…; what `work` throws */
export async function withKeys<Result>(
  options: OpenKeysOptions,
  work: (keys: OpenKeys) => Promise<Result>,
): Promise<Result> {
  const keys = await openForCommand(options);
  try {
    return await work(keys);
  } finally {
    await keys.close();
  }
}

/** What can be granted beside what is built in: all of it, or enough for these permissions. */
export type FindAdditions = (permissions?: readonly string[]) => Promise<CatalogAdditions>;

/** How keys are opened. */
export interface OpenPlaceOptions {
  /** See `OpenStoreOptions`. */
  ifMissing: OpenKeysOptions['ifMissing'];
  /** The permissions that are concerned, if that is known; `none` where nothing is granted. */
  grants?: readonly string[] | 'none' | undefined;
}

/** Whose keys a command works on: those of a store, or of a server. */
export interface KeysPlace {
  /** What can be granted there: all of it, or enough for these permissions. */
  catalog(permissions?: readonly string[]): Promise<Catalog>;
  /** @throws KeysError STORE_… */
  open(options: OpenPlaceOptions): Promise<KeyAdministration>;
}

/**
 * Finds out whose keys a command works on. Nothing is opened.
 * @throws KeysError USAGE, UNAUTHENTICATED, CREDENTIALS_INVALID, SERVER_INSECURE
 */
export async function keysPlace({
  flags,
  env,
  login,
  additions,
}: {
  flags: PlaceFlags;
  env: NodeJS.ProcessEnv;
  /** The command that gets a key of a server, as it is typed. */
  login: string;
  additions: FindAdditions;
}): Promise<KeysPlace> {
  const target = serverTarget(flags, env, login);
  return target ? remotePlace(target) : storePlace(flags.database, additions);
}

/** Works on keys, and closes what was opened for it. @throws KeysError STORE_…; what `work` throws */
export async function withAdministration<Result>(
  place: KeysPlace,
  options: OpenPlaceOptions,
  work: (keys: KeyAdministration) => Promise<Result>,
): Promise<Result> {
  const keys = await place.open(options);
  try {
    return await work(keys);
  } finally {
    await keys.close();
  }
}

function storePlace(database: string | undefined, find: FindAdditions): KeysPlace {
  // A host is asked once for the same.
  const found = new Map<string, Promise<CatalogAdditions>>();
  const additions = (permissions?: readonly string[]) => {
    const asked = JSON.stringify(permissions ?? null);
    const known = found.get(asked) ?? find(permissions);
    found.set(asked, known);
    return known;
  };
  return {
    catalog: async (permissions) => createCatalog(await additions(permissions)),
    open: async ({ ifMissing, grants }) => {
      const added = grants === 'none' ? {} : await additions(grants);
      const keys = await openForCommand({ database, ...added, ifMissing });
      const { OperatorKeys } = await import('../keys/operator-keys.ts');
      return new OperatorKeys(keys);
    },
  };
}

async function remotePlace(target: ServerTarget): Promise<KeysPlace> {
  const { RemoteKeys } = await import('../remote/remote-keys.ts');
  const keys = new RemoteKeys(target);
  return { catalog: () => keys.catalog(), open: async () => keys };
}
