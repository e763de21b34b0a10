import * as Flags from '@oclif/core/flags';
import { KeysError, printable } from '../keys/basics/index.ts';
import { type Catalog, type CatalogAdditions, createCatalog } from '../keys/permissions/index.ts';
import type { Client } from '../keys/operations/index.ts';
import type { ServerOptions } from '../remote/connection.ts';
import type { OpenKeys, OpenKeysOptions } from '../service/open-keys.ts';
import { loadErrorCodes } from './load-error-codes.ts';

/** The flags for the key store or server that a command works on. */
export interface PlaceFlags {
  database?: string | undefined;
  server?: string | undefined;
  insecure?: boolean | undefined;
}

/** For commands that can work on a running server. */
export const serverFlags = {
  server: Flags.string({
    description:
      'Address of a running server to work on instead of a key store, with the key in SVC_API_KEY. ' +
      'Default: SVC_API_SERVER.',
    helpGroup: 'GLOBAL',
    helpValue: '<url>',
  }),
  insecure: Flags.boolean({
    description: 'Allow sending the key to another machine over plain HTTP, without encryption.',
    helpGroup: 'GLOBAL',
  }),
};

/** For commands that need the key store, and refuse a server. */
export const hiddenServerFlags = {
  server: Flags.string({ hidden: true, helpValue: '<url>' }),
  insecure: Flags.boolean({ hidden: true }),
};

const EXAMPLE = 'such as https://keys.example.org';

/**
 * The address of a server in the form for comparisons: scheme, host, port and path, without the path of GraphQL and
 * without a trailing slash.
 * @throws KeysError USAGE
 */
export function readServerUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    const shown = printable(text.replace(/\/\/.*@/s, '//…@'));
    throw invalid(`"${shown}" is not the address of a server. Write it with its scheme, ${EXAMPLE}.`);
  }
  // The text can contain a password, so it is not shown.
  if (url.username !== '' || url.password !== '')
    throw invalid(`The address of the server has a user or a password. Leave them out, and set SVC_API_KEY.`);
  if (url.search !== '' || url.hash !== '')
    throw invalid(`The address of the server has a query or a fragment. Leave them out: write ${url.origin}.`);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/graphql$/, '');
  return url.origin + path;
}

/** True if requests to a server stay on this machine. */
export function isLoopback(server: string): boolean {
  const { hostname } = new URL(server);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function invalid(message: string): KeysError {
  return new KeysError('USAGE', message);
}

/**
 * The address of the server that a command works on; undefined for a key store. Flags take precedence over the
 * environment.
 * @throws KeysError USAGE
 */
export function namedServer({ server, database }: PlaceFlags, env: NodeJS.ProcessEnv): string | undefined {
  if (server !== undefined && database !== undefined) throw twoPlaces('--server and --database are both given');
  if (server !== undefined) return readServerUrl(server);
  if (database !== undefined || !env['SVC_API_SERVER']) return undefined;
  if (env['SVC_API_DATABASE']) throw twoPlaces('SVC_API_SERVER and SVC_API_DATABASE are both set');
  return readServerUrl(env['SVC_API_SERVER']);
}

/** Reads the key that a user has stored for a server. The feature `login` provides it as `storedKey`. */
export type StoredKey = (server: string, env: NodeJS.ProcessEnv) => string | undefined;

/** The key to send to a server: `SVC_API_KEY`, or the stored one. @throws KeysError CREDENTIALS_INVALID */
async function keyFor(server: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const given = env['SVC_API_KEY']?.trim();
  // An imported key can have any form, but a header allows only these characters.
  if (given && !/^[\x21-\x7e]+$/.test(given))
    throw new KeysError(
      'CREDENTIALS_INVALID',
      'SVC_API_KEY is not an API key: it has spaces, or characters beyond ASCII. Set it to the secret, and nothing else.',
    );
  if (given) return given;
  const { allFeatures } = await import('../features/index.ts');
  const [stored] = allFeatures().flatMap(
    ({ provides }) => provides?.['storedKey'] ?? [],
  ) as (() => Promise<StoredKey>)[];
  return (await stored?.())?.(server, env);
}

/**
 * The server that a command works on, with the key for it; undefined for a key store.
 * @param login the command that gets a key, as typed
 * @throws KeysError USAGE, SERVER_INSECURE, UNAUTHENTICATED, CREDENTIALS_INVALID
 */
export async function serverTarget(
  flags: PlaceFlags,
  env: NodeJS.ProcessEnv,
  login: string,
): Promise<ServerOptions | undefined> {
  const server = namedServer(flags, env);
  if (server === undefined) return undefined;
  requireEncryption(server, flags);
  const key = await keyFor(server, env);
  if (key !== undefined) return { server, key };
  throw new KeysError(
    'UNAUTHENTICATED',
    `There is no key for ${server}. Run "${login} --server ${server}", or set SVC_API_KEY.`,
  );
}

/**
 * Refuses to send a key over a network without encryption, unless --insecure was given.
 * @throws KeysError SERVER_INSECURE
 */
export function requireEncryption(server: string, { insecure }: Pick<PlaceFlags, 'insecure'>): void {
  if (!server.startsWith('http:') || isLoopback(server) || insecure) return;
  throw new KeysError(
    'SERVER_INSECURE',
    `The key would be sent to ${server} without encryption. Use https:, or pass --insecure if the network is safe.`,
  );
}

/**
 * Refuses a server for a command that works on the key store itself.
 * @param command as typed; undefined for one of the host, which has none of our flags
 * @throws KeysError STORE_REQUIRED, USAGE
 */
export function requireStore(flags: PlaceFlags, env: NodeJS.ProcessEnv, command?: string): void {
  const server = namedServer(flags, env);
  if (server === undefined) return;
  if (command === undefined)
    throw new KeysError(
      'STORE_REQUIRED',
      `This needs the key store itself, but SVC_API_SERVER is ${server}. Run it on the machine with the store, without SVC_API_SERVER.`,
    );
  const remedy =
    flags.server === undefined
      ? 'On the machine with the store, unset SVC_API_SERVER, or pass --database <path>'
      : 'Run it on the machine with the store, without --server';
  throw new KeysError(
    'STORE_REQUIRED',
    `"${command}" needs the key store itself, not the server ${server}. ${remedy}.`,
  );
}

function twoPlaces(what: string): KeysError {
  return new KeysError('USAGE', `${what}, so it is not clear which keys to use. Leave one of them out.`);
}

/** How long SQLite waits for the lock between a command's own attempts, as a command has nothing else to do. */
export const BUSY_TIMEOUT_MS = 100;

/** Opens the store for a command. @throws KeysError STORE_… */
async function openForCommand(options: OpenKeysOptions): Promise<OpenKeys> {
  const { openValidKeys } = await import('../service/open-keys.ts');
  return openValidKeys({ busyTimeoutMs: BUSY_TIMEOUT_MS, ...options });
}

/** Opens the store while `work` runs. @throws KeysError STORE_…; errors of `work` */
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

/** Finds the additions to the built-in catalog: all of them, or enough for these permissions. */
type FindAdditions = (permissions?: readonly string[]) => Promise<CatalogAdditions>;

interface OpenPlaceOptions {
  /** See `OpenStoreOptions`. */
  ifMissing: OpenKeysOptions['ifMissing'];
  /** The permissions involved, if known; `none` if nothing is granted. */
  grants?: readonly string[] | 'none' | undefined;
}

/** The key store or server that a command works on. */
export interface KeysPlace {
  /** The catalog there: complete, or enough for these permissions. */
  catalog(permissions?: readonly string[]): Promise<Catalog>;
  /** @throws KeysError STORE_… */
  open(options: OpenPlaceOptions): Promise<Client>;
}

/** Works on keys, and closes everything that was opened. @throws KeysError STORE_…; errors of `work` */
export async function withAdministration<Result>(
  place: KeysPlace,
  options: OpenPlaceOptions,
  work: (keys: Client) => Promise<Result>,
): Promise<Result> {
  const keys = await place.open(options);
  try {
    return await work(keys);
  } finally {
    await keys.close();
  }
}

/** The keys of a store. Nothing is opened yet. */
export function storePlace(database: string | undefined, find: FindAdditions): KeysPlace {
  // Each question is put to a host only once.
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
      const { storeClient } = await import('../keys/operations/index.ts');
      return storeClient(keys);
    },
  };
}

/** The keys of a server. */
export async function remotePlace(target: ServerOptions): Promise<KeysPlace> {
  const { serverClient } = await import('../remote/server-client.ts');
  const keys = serverClient({ ...target, loadErrorCodes });
  return { catalog: () => keys.permissions({}), open: async () => keys };
}
