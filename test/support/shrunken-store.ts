import { openStore } from '../../src/store/open.ts';
import { storedKey } from './keys.ts';
import { migratedStore } from './temp.ts';

const KEYS = 3000;

/** A store from which most keys were deleted. */
export async function shrunkenStore(): Promise<string> {
  const database = await migratedStore();
  const store = await openStore({ database });
  const keys = Array.from({ length: KEYS }, (_, index) => storedKey(`key ${index}`, { description: 'x'.repeat(500) }));
  await store.repository.write((writer) => writer.insert(keys));
  const ids = keys.slice(10).map(({ id }) => id);
  await store.repository.write((writer) => writer.delete(ids));
  await store.close();
  return database;
}
