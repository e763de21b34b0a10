import type { OpenKeys, OpenKeysOptions } from '../open-keys.ts';

/** How long SQLite waits for the lock before a command tries again: a command has nothing else to do meanwhile. */
export const BUSY_TIMEOUT_MS = 100;

/** Opens the store for a command. @throws KeysError STORE_… */
export async function openForCommand(options: OpenKeysOptions): Promise<OpenKeys> {
  const { openKeys } = await import('../open-keys.ts');
  return openKeys({ busyTimeoutMs: BUSY_TIMEOUT_MS, ...options });
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
