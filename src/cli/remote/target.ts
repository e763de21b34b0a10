import { KeysError } from '../../keys/errors.ts';
import { keyFor } from './credentials.ts';
import type { PlaceFlags } from './place-flags.ts';
import { isLoopback, readServerUrl } from './server-url.ts';

/** A running server, and the key that is sent to it. */
export interface ServerTarget {
  /** In the form of `readServerUrl`. */
  server: string;
  key: string;
}

/**
 * The address of the server that a command is to work on; undefined for a key store. Flags come before the environment.
 * @throws KeysError USAGE
 */
function namedServer({ server, database }: PlaceFlags, env: NodeJS.ProcessEnv): string | undefined {
  if (server !== undefined && database !== undefined) throw twoPlaces('--server and --database are both given');
  if (server !== undefined) return readServerUrl(server);
  if (database !== undefined || !env['SVC_API_SERVER']) return undefined;
  if (env['SVC_API_DATABASE']) throw twoPlaces('SVC_API_SERVER and SVC_API_DATABASE are both set');
  return readServerUrl(env['SVC_API_SERVER']);
}

/**
 * The server that a command is to work on, with the key for it; undefined for a key store.
 * @param login the command that gets a key, as it is typed
 * @throws KeysError USAGE, SERVER_INSECURE, UNAUTHENTICATED, CREDENTIALS_INVALID
 */
export function serverTarget(flags: PlaceFlags, env: NodeJS.ProcessEnv, login: string): ServerTarget | undefined {
  const server = namedServer(flags, env);
  if (server === undefined) return undefined;
  requireEncryption(server, flags);
  const key = keyFor(server, env);
  if (key !== undefined) return { server, key };
  throw new KeysError(
    'UNAUTHENTICATED',
    `There is no key for ${server}. Run "${login} --server ${server}", or set SVC_API_KEY.`,
  );
}

/** Refuses to let a key cross a network in clear text, unless that is wanted. @throws KeysError SERVER_INSECURE */
export function requireEncryption(server: string, { insecure }: Pick<PlaceFlags, 'insecure'>): void {
  if (!server.startsWith('http:') || isLoopback(server) || insecure) return;
  throw new KeysError(
    'SERVER_INSECURE',
    `The key would be sent to ${server} unencrypted. Use https:, or pass --insecure if the network is safe.`,
  );
}

/**
 * Refuses a server for a command that works on the key store itself.
 * @param command as it is typed
 * @throws KeysError STORE_REQUIRED, USAGE
 */
export function requireStore(flags: PlaceFlags, env: NodeJS.ProcessEnv, command: string): void {
  const server = namedServer(flags, env);
  if (server === undefined) return;
  const remedy =
    flags.server === undefined
      ? 'Unset SVC_API_SERVER, or pass --database <path>, where the store is'
      : 'Run it where the store is, without --server';
  throw new KeysError('STORE_REQUIRED', `"${command}" needs the key store itself, and not ${server}. ${remedy}.`);
}

function twoPlaces(what: string): KeysError {
  return new KeysError('USAGE', `${what}: it is not clear whose keys are meant. Leave one of them out.`);
}
