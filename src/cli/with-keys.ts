import type { OpenKeys, OpenKeysOptions } from '../open-keys.ts';

/** Opens the store for the duration of `work`. @throws KeysError STORE_…; what `work` throws */
export async function withKeys<Result>(
  options: OpenKeysOptions,
  work: (keys: OpenKeys) => Promise<Result>,
): Promise<Result> {
  const { openKeys } = await import('../open-keys.ts');
  const keys = await openKeys(options);
  try {
    return await work(keys);
  } finally {
    await keys.close();
  }
}
