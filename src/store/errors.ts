import { type ErrorCode, isKeysError, KeysError } from '../keys/basics/index.ts';

/** Maps a prefix of driver and file system codes to an error for users. */
export type Cause = readonly [prefix: string, code: ErrorCode, text: string];

/** Turns an error of the driver or file system into one for users. An error that already is one stays as it is. */
export function storeError(error: unknown, location: string, causes: readonly Cause[]): Error {
  if (isKeysError(error)) return error;
  const reason = driverCodeOf(error);
  const [, code = 'STORE_FAILED', text = `failed${reason ? ` (${reason})` : ''}`] =
    causes.find(([prefix]) => reason.startsWith(prefix)) ?? [];
  return new KeysError(code, `The key store ${location} ${text}.`, { cause: error });
}

/** The error for a store that does not exist. */
export function missingStore(location: string): KeysError {
  return new KeysError('STORE_UNAVAILABLE', `The key store ${location} does not exist. Check the path.`);
}

const TAKEN: Record<string, readonly [code: ErrorCode, what: string]> = {
  id: ['ID_TAKEN', 'id'],
  name: ['NAME_TAKEN', 'name'],
  public_id: ['PREFIX_TAKEN', 'prefix'],
  digest: ['SECRET_TAKEN', 'secret'],
  previous_digest: ['SECRET_TAKEN', 'secret'],
};

/** The error for a duplicate value in a unique column. */
export function takenError(column: string | undefined, cause: unknown): KeysError | undefined {
  const [code, what] = TAKEN[column ?? ''] ?? [];
  return code && new KeysError(code, `An API key with this ${what} already exists.`, { cause });
}

/** The code of a driver's error; empty if it has none. */
export function driverCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
