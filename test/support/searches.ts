import type { ListQuery } from '../../src/keys/repository/repository.ts';
import { openConnection } from '../../src/store/open.ts';
import { type Search, searchesFor } from '../../src/store/search-keys.ts';
import type { ApiKeyTable } from '../../src/store/tables.ts';

/** The ids of the keys that each way of searching finds by itself. */
export async function foundInEveryWay(database: string, query: ListQuery): Promise<string[][]> {
  const connection = await openConnection({ database });
  const found = [];
  for (const way of await searchesFor(connection, query)) found.push(await foundBy(way));
  await connection.close();
  return found;
}

async function foundBy(search: Search<ApiKeyTable[]>): Promise<string[]> {
  for (;;) {
    const step = await search.next();
    if (step.done) return step.value!.map(({ id }) => id);
  }
}
