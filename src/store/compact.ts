import { sql } from 'kysely';
import { KeysError } from '../keys/basics/index.ts';
import type { Connection } from './connection.ts';

/** How many pages of a file one piece moves. Between two pieces, others can change keys. */
const PIECE_PAGES = 200;

interface Space {
  pageBytes: number;
  pages: number;
  free: number;
  /** 2 if free pages of the file can be returned one by one. */
  mode: number;
}

/**
 * Returns the free pages of an SQLite file to the file system, in pieces, between which others can change keys.
 * @param leastShare the share of free pages, from 0 to 1, below which nothing is done
 * @returns how many bytes smaller the file is
 * @throws KeysError STORE_…
 */
export async function* compactFile(connection: Connection, leastShare: number): AsyncGenerator<void, number> {
  const before = await spaceOf(connection);
  if (before.free === 0 || before.free < leastShare * before.pages) return 0;
  if (before.mode !== 2)
    throw new KeysError(
      'STORE_OLDER',
      `The key store ${connection.location} was made by a version that could not give space back. Copy it into a new ` +
        'one: "svc-api apikey export --to <path>.sqlite".',
    );
  // Each execution of this statement frees one page.
  const freeOne = sql`pragma incremental_vacuum(1)`;
  for (let { free } = before; free > 0; free = Math.min(free - 1, (await spaceOf(connection)).free)) {
    await connection.write(async (db) => {
      const times = Array.from({ length: PIECE_PAGES }, () => []);
      await db.executeQuery({ ...freeOne.compile(db), parameters: times });
      // Freeing pages changes no row, and only changes of rows are written through to the file itself.
      await sql`update last_change set ids = ids`.execute(db);
    });
    yield;
  }
  const after = await spaceOf(connection);
  return (before.pages - after.pages) * after.pageBytes;
}

async function spaceOf(connection: Connection): Promise<Space> {
  const { rows } = await connection.run((db) =>
    sql<Space>`select page_size as "pageBytes", page_count as pages, freelist_count as free, auto_vacuum as mode
      from pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum`.execute(db),
  );
  return rows[0]!;
}
