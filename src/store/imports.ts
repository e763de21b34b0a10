import { randomInt } from 'node:crypto';
import { type ExpressionBuilder, type Kysely, sql } from 'kysely';
import { requireAuditKey } from '../keys/audit/index.ts';
import { IMPORTS, type ImportSpool, OTHER_IMPORT, OUTDATED_IMPORT } from '../keys/transfer/index.ts';
import { appendToAuditLog, findPosition } from './audit-log.ts';
import { portOfStore, type Writing } from './connection.ts';
import { draftOf, draftsOf, dueHash, findDueRows } from './due-entries.ts';
import { insertLabelRows, insertLists, NOTED_CHANGES } from './insert-rows.ts';
import { INDEXED_COLUMNS, indexedValues } from './migrations.ts';
import { chunksOf } from './rows.ts';
import type { ImportSpoolFile, SpooledKey } from './sqlite/import-spool.ts';
import { API_KEY_COLUMNS, type Tables } from './tables.ts';

/** With fewer new keys, PostgreSQL finds them fast anyway. */
const MANY_KEYS = 10_000;
/** How many keys PostgreSQL is given at a time. */
const PAGE_KEYS = 1000;
/** How long a transaction that inserts keys into a file is to take, about, and how many keys it has. */
const PIECE_MS = 15;
const PIECE_KEYS = { first: 100, least: 20, most: 2000 };
/** What SQLite's documentation of FTS5 says of `automerge`: it merges much at once, and not each time. */
const AUTOMERGE = 4;
/** By merging a page for so many keys, an import leaves no more for that. */
const KEYS_PER_MERGED_PAGE = 4;
/** How many rows of an import that ended are removed from a file in a transaction. */
const REMOVED_ROWS = 200;
/** An import into a file that has done nothing for so long has ended, in milliseconds. */
const ABANDONED_MS = 10_000;
/** How many entries of the audit log are written in a transaction that others wait for. */
const PIECE_ENTRIES = 250;

async function openSpool(): Promise<ImportSpool> {
  const { ImportSpoolFile } = await import('./sqlite/import-spool.ts');
  return new ImportSpoolFile();
}

/**
 * Keeps the lines of imports, and inserts their keys. Nobody sees one until all are there, and nobody waits long.
 * PostgreSQL is given them in one transaction, which takes the lock that writers wait for at its end. A file takes them
 * in short transactions, in rows that are hidden until the last one: see `VISIBLE_KEYS`. Their entries in the audit
 * log are written after that, in short transactions, that of a key always before the key is changed: by the import or,
 * where that was killed, by the next one or a server, which also remove what one has left that was killed before.
 */
export const imports = portOfStore({
  port: IMPORTS,
  read: ({ connection, run, auditKey }) => ({
    open: openSpool,
    async prepare(spool, entry) {
      const file = spool as ImportSpoolFile;
      requireAuditKey(await run((db) => findPosition(db, 'audit_head')), auditKey);
      file.number = randomInt(2 ** 47);
      file.hasBegun = false;
      file.lastLine = file.makeHashes((key, number) =>
        dueHash(draftOf(entry, key), { import: file.number, number }, auditKey),
      );
    },
    isFinished: () =>
      run(async (db) => {
        const due = await db.selectFrom('imports').select('number').limit(1).executeTakeFirst();
        return !due && (connection.dialect === 'postgres' || !(await hasAbandonedRows(db)));
      }),
    async settle(keys) {
      if (keys >= MANY_KEYS) await connection.vacuum?.();
    },
  }),
  write: (writing) => ({
    async insertAll(spool, onProgress) {
      if (writing.dialect === 'postgres') await insertIntoPostgres(writing, spool as ImportSpoolFile, onProgress);
    },
    async giveWay() {
      if (writing.dialect === 'postgres') await requireUnwaited(writing.db);
    },
    async insertSome(spool) {
      return writing.dialect === 'sqlite' ? insertIntoFile(writing, spool as ImportSpoolFile) : 0;
    },
    async publish(spool, { at, actor }) {
      const { db, dialect, keysChanged } = writing;
      const { number, lastLine } = spool as ImportSpoolFile;
      // No key that is remembered changes, but a look at the file from before the change must not be trusted after it.
      keysChanged([]);
      if (dialect === 'sqlite') await showRows(db, number);
      await db.insertInto('imports').values({ number, at, actor_name: actor.name, done: 0, last: lastLine }).execute();
    },
    async abandon(spool) {
      const { number } = spool as ImportSpoolFile;
      if (writing.dialect === 'sqlite')
        await writing.db.deleteFrom('pending_import').where('import', '=', number).execute();
    },
    async finishSome() {
      if (writing.dialect === 'sqlite' && (await hasAbandonedRows(writing.db))) return removePendingRows(writing.db);
      return appendSomeDue(writing);
    },
  }),
});

async function insertIntoPostgres(
  writing: Writing,
  file: ImportSpoolFile,
  onProgress: (added: number) => Promise<void>,
): Promise<void> {
  const { db } = writing;
  const alone = sql<{ isAlone: boolean }>`select pg_try_advisory_xact_lock(
    hashtextextended('svc-api import ' || current_schema(), 0)) as "isAlone"`;
  if (!(await alone.execute(db)).rows[0]!.isAlone) throw OTHER_IMPORT;
  for (let page = file.keys(0, PAGE_KEYS); page.length > 0; page = file.keys(page.at(-1)!.line, PAGE_KEYS)) {
    await insertKeys(writing, file.number, page);
    await onProgress(page.length);
    await requireUnwaited(db);
  }
}

/**
 * Gives way to somebody who waits for this transaction of a PostgreSQL store to end, and has the lock of writers.
 * @throws OUTDATED_IMPORT
 */
async function requireUnwaited(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql`select from pg_locks as waiting join pg_locks as held using (pid)
    where not waiting.granted and waiting.transactionid = pg_current_xact_id()::xid
      and held.granted and held.locktype = 'advisory'`.execute(db);
  if (rows.length > 0) throw OUTDATED_IMPORT;
}

/** @param rowid of the first key, in a file: the others follow */
async function insertKeys(
  { db, dialect }: Pick<Writing, 'db' | 'dialect'>,
  number: number,
  keys: readonly SpooledKey[],
  rowid?: number,
): Promise<void> {
  const columns = rowid === undefined ? API_KEY_COLUMNS : ['rowid', ...API_KEY_COLUMNS];
  const lists = keys.map(({ values }, index) => (rowid === undefined ? values : [rowid + index, ...values]));
  await insertLists(db, dialect, 'api_keys', columns, lists);
  await insertLabelRows(
    db,
    dialect,
    keys.flatMap(({ labels }) => labels),
  );
  const entries = keys.map(({ line, id, hash }) => [number, line, id, hash]);
  await insertLists(db, dialect, 'import_entries', ['import', 'number', 'key_id', 'hash'], entries);
}

/** Inserts some keys into rows that are hidden. @returns how many; 0 once all are there */
async function insertIntoFile(writing: Writing, file: ImportSpoolFile): Promise<number> {
  const { db } = writing;
  const began = performance.now();
  const size = (file.pieceKeys ??= PIECE_KEYS.first);
  const page = file.keys(await lineToGoOnFrom(db, file), size);
  if (page.length === 0) return 0;
  const { rows } = await sql<{ last: number }>`select coalesce(max(rowid), 0) as last from main.api_keys`.execute(db);
  const first = rows[0]!.last + 1;
  const last = rows[0]!.last + page.length;
  const { numUpdatedRows } = await db
    .updateTable('pending_rows')
    .set({ last })
    .where('last', '=', first - 1)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) await db.insertInto('pending_rows').values({ first, last }).execute();
  await db.updateTable('pending_import').set({ inserts: 1 }).execute();
  await insertKeys(writing, file.number, page, first);
  await configureSearch(db, 'automerge', 0);
  await sql`insert into api_keys_search ${sql.raw(INDEXED_COLUMNS)}
    select ${sql.raw(indexedValues('stored'))} from main.api_keys as stored
    where rowid >= cast(${first} as integer)`.execute(db);
  await configureSearch(db, 'automerge', AUTOMERGE);
  await configureSearch(db, 'merge', Math.ceil(page.length / KEYS_PER_MERGED_PAGE));
  await db
    .updateTable('pending_import')
    .set({ inserts: 0, line: page.at(-1)!.line, seen_at: Date.now() })
    .execute();
  const wanted = (size * PIECE_MS) / (performance.now() - began);
  file.pieceKeys = Math.round(Math.min(Math.max(wanted, PIECE_KEYS.least), 2 * size, PIECE_KEYS.most));
  return page.length;
}

function configureSearch(db: Kysely<Tables>, command: string, value: number): Promise<unknown> {
  return sql`insert into api_keys_search (api_keys_search, rank) values (${command}, ${sql.lit(value)})`.execute(db);
}

/** The line up to which an import has inserted its keys into a file; it begins with its first question. */
async function lineToGoOnFrom(db: Kysely<Tables>, file: ImportSpoolFile): Promise<number> {
  const pending = await db.selectFrom('pending_import').select(['import', 'line']).executeTakeFirst();
  if (pending?.import === file.number) {
    file.hasBegun = true;
    return pending.line;
  }
  if (file.hasBegun) throw OUTDATED_IMPORT;
  if (pending || (await hasRows(db))) throw OTHER_IMPORT;
  const began = { import: file.number, line: 0, seen_at: Date.now(), inserts: 0 };
  await db
    .insertInto('pending_import')
    .values({ one: 1, ...began })
    .execute();
  return 0;
}

async function hasRows(db: Kysely<Tables>): Promise<boolean> {
  return (await db.selectFrom('pending_rows').select('first').limit(1).executeTakeFirst()) !== undefined;
}

/** Lets everybody see the keys of an import. @throws OUTDATED_IMPORT where others have written what some of them had */
async function showRows(db: Kysely<Tables>, number: number): Promise<void> {
  const { numDeletedRows } = await db.deleteFrom('pending_import').where('import', '=', number).executeTakeFirst();
  if (numDeletedRows === 0n) throw OUTDATED_IMPORT;
  await sql`insert into key_changes (key_id) select id from main.api_keys, pending_rows
    where api_keys.rowid between first and last order by api_keys.rowid desc limit ${sql.lit(NOTED_CHANGES)}`.execute(
    db,
  );
  await db.deleteFrom('pending_rows').execute();
}

/** Whether a file has rows of an import that has ended before anybody saw them. */
async function hasAbandonedRows(db: Kysely<Tables>): Promise<boolean> {
  const pending = await db.selectFrom('pending_import').select('seen_at').executeTakeFirst();
  // A clock may have been set back.
  if (pending && Math.abs(Date.now() - pending.seen_at) < ABANDONED_MS) return false;
  return pending !== undefined || hasRows(db);
}

/** Removes some rows of keys that nobody has seen, whose import has then ended. @returns whether there were any */
export async function removePendingRows(db: Kysely<Tables>): Promise<boolean> {
  await db.deleteFrom('pending_import').execute();
  if (!(await hasRows(db))) return false;
  // The last ones first: keys go with those that created them.
  const some = sql`select api_keys.rowid from main.api_keys, pending_rows where api_keys.rowid between first and last
    order by api_keys.rowid desc limit ${sql.lit(REMOVED_ROWS)}`;
  const { rows } = await sql<{ first: number | null }>`select min(rowid) as first from (${some})`.execute(db);
  const first = rows[0]!.first ?? 0;
  await sql`delete from import_entries where key_id in (select id from main.api_keys where rowid in (${some}))`.execute(
    db,
  );
  await sql`delete from api_keys_search where rowid in (${some})`.execute(db);
  await sql`delete from main.api_keys where rowid in (${some})`.execute(db);
  await db.deleteFrom('pending_rows').where('first', '>=', first).execute();
  await db
    .updateTable('pending_rows')
    .set({ last: first - 1 })
    .where('last', '>=', first)
    .execute();
  return true;
}

/** Writes the entries of those of these keys that were imported: they are about to be changed. */
export async function appendDueOf({ db, dialect, auditKey }: Writing, ids: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(ids)) {
    const rows = await findDueRows(db, chunk);
    if (rows.length === 0) continue;
    await appendToAuditLog(db, dialect, await draftsOf(db, rows, auditKey), auditKey);
    await db.deleteFrom('import_entries').where('key_id', 'in', chunk).execute();
  }
}

/**
 * Writes some of the entries that are still to be written: those of the next lines, which are found without looking at
 * the others. @returns whether there were any
 */
async function appendSomeDue({ db, dialect, auditKey }: Writing): Promise<boolean> {
  const next = await db.selectFrom('imports').selectAll().orderBy('number').limit(1).executeTakeFirst();
  if (!next) return false;
  const done = next.done + PIECE_ENTRIES;
  const isNext = (row: ExpressionBuilder<Tables, 'import_entries'>) =>
    row.and([row('import', '=', next.number), row('number', '>', next.done), row('number', '<=', done)]);
  const rows = await db.selectFrom('import_entries').selectAll().where(isNext).orderBy('number').execute();
  await appendToAuditLog(db, dialect, await draftsOf(db, rows, auditKey), auditKey);
  await db.deleteFrom('import_entries').where(isNext).execute();
  if (done < next.last) await db.updateTable('imports').set({ done }).where('number', '=', next.number).execute();
  else await db.deleteFrom('imports').where('number', '=', next.number).execute();
  return true;
}
