import { withKeys } from '../../src/cli/with-keys.ts';
import { jsonLines } from './keys.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

/** Fills a store with many keys and their audit entries, so that reading it takes a while. */
export async function fillStore(database: string, keys: number): Promise<void> {
  const line = (_: unknown, index: number) => ({
    name: `Imported ${index}`,
    sha256: index.toString(16).padStart(64, '0'),
    roles: ['VIEWER'],
    description: 'x'.repeat(500),
  });
  await withKeys({ database }, (open) => importKeys(open, jsonLines(...Array.from({ length: keys }, line))));
}
