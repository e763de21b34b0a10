import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import { KeysError, type ProgressReport } from '../../keys/basics/index.ts';
import { API_KEY_COLUMNS, type Connection, type DialectName, type Tables } from '../../store/index.ts';
import {
  countRows,
  emptyTables,
  type FeatureRecord,
  type FeatureTables,
  goneFrom,
  indexEntries,
  insertRows,
  MAX_CHANGES,
  readRecords,
  type Row,
  TABLES,
} from '../../store/whole-store.ts';
import { withDeferredIndexes } from './deferred-indexes.ts';

/** The result of a copy. */
export interface StoreCopy {
  /** The number of keys copied. */
  keys: number;
  /** The number of audit entries copied. */
  auditEntries: number;
  /** True if the original changed after the copy began. These changes are not in the copy. */
  changedMeanwhile: boolean;
  /** The hash of the newest entry. */
  head: string | undefined;
  /** See `Connection.location`. */
  from: string;
  to: string;
}

/** Progress of a copy, in rows. */
export interface CopyReports {
  onCopied?: ProgressReport;
  onCompared?: ProgressReport;
}

/** How many rows are read at a time, and how many are digested. */
const [PAGE_ROWS, DIGESTED_ROWS] = [1000, 100];

/** A table, with columns that order its rows the same way in all databases. */
interface OrderedTable {
  table: string;
  order: readonly string[];
  /** A condition for its rows. Default: all rows. */
  only?: RawBuilder<SqlBool>;
}

/** A table of a feature that is not installed. The copy keeps its rows in `kept_rows`. */
interface GoneTable extends OrderedTable {
  of: FeatureRecord;
}

/** The number of a table's rows, and a digest over them. */
interface TableDigest {
  count: number;
  digest: string;
}

/**
 * Copies a whole store into an empty one, consistently: keys with the digests of their secrets, their usage, and the
 * audit log. The original can be changed during the copy. The copy is committed only if it is complete and verified to
 * be identical.
 * @throws KeysError STORE_NOT_EMPTY, STORE_…
 */
export async function copyStore(from: Connection, to: Connection, reports: CopyReports = {}): Promise<StoreCopy> {
  const { location } = to;
  const { digests, head } = await withSnapshot(from, (source) =>
    to.write(async (target, keysChanged) => {
      await requireEmpty(target, location);
      await emptyTables(target, Object.keys(tablesOf(to.features)));
      const copied = new Map<string, TableDigest>();
      const orders = await readOrders(source, to);
      const gone = goneTables(await readRecords(source), to.features);
      const total = await countAll(source, [...orders, ...gone]);
      const [noteCopied, noteCompared] = [sumOf(total, reports.onCopied), sumOf(total, reports.onCompared)];
      await withBulkInserts(target, to, async () => {
        const insert = (table: string) => async (rows: readonly Row[]) => {
          await insertRows(target, to.dialect, table, rows);
          await noteCopied(rows);
        };
        for (const ordered of orders)
          copied.set(ordered.table, await digestOf(pagesOf(source, ordered), insert(ordered.table)));
        for (const each of gone) copied.set(each.table, await digestOf(keptPages(source, each), insert('kept_rows')));
      });
      const compared = [...orders.map(withoutGone(gone)), ...gone.map(keptOf)];
      for (const { name, ...ordered } of compared) {
        if ((await digestOf(pagesOf(target, ordered), noteCompared)).digest !== copied.get(name)!.digest)
          throw new KeysError(
            'STORE_FAILED',
            `The copy of ${name} in ${location} differs from the original. Nothing was copied. Try again.`,
          );
      }
      keysChanged([]);
      return { digests: copied, head: await readHead(target) };
    }),
  );
  await to.vacuum?.();
  return {
    keys: digests.get('api_keys')!.count,
    auditEntries: digests.get('audit_log')!.count,
    changedMeanwhile: (await from.run(readHead)) !== head,
    head,
    from: from.location,
    to: location,
  };
}

async function requireEmpty(target: Kysely<Tables>, location: string): Promise<void> {
  for (const table of ['api_keys', 'audit_log'] as const) {
    const row = await target
      .selectFrom(table)
      .select(sql<number>`1`.as('one'))
      .limit(1)
      .executeTakeFirst();
    if (row) throw notEmpty(location, 'Copy');
  }
}

/** The error for a target store that is not empty. */
export function notEmpty(location: string, what: 'Copy' | 'Restore'): KeysError {
  return new KeysError('STORE_NOT_EMPTY', `The key store ${location} is not empty. ${what} into a new one.`);
}

/** The hash of the newest entry of the audit log, which changes with every change of a key. */
async function readHead(db: Kysely<Tables>): Promise<string | undefined> {
  return (await db.selectFrom('audit_head').select('hash').executeTakeFirst())?.hash;
}

/** The number of rows in a store. */
async function countAll(db: Kysely<Tables>, tables: readonly OrderedTable[]): Promise<number> {
  let total = 0;
  for (const { table } of tables) total += await countRows(db, table);
  return total;
}

/** Reports the sum of the rows so far. */
function sumOf(total: number, report: ProgressReport | undefined): (rows: readonly Row[]) => Promise<void> {
  let done = 0;
  return async (rows) => {
    done += rows.length;
    await report?.(done, total);
  };
}

/**
 * The orders in which rows are copied. SQLite stores rows in the order of insertion: keys are copied in list order,
 * which is mostly how the original stores them, so that its pages are read in sequence. PostgreSQL inserts fastest in
 * the order of primary keys.
 */
async function readOrders(source: Kysely<Tables>, { dialect, features }: Connection): Promise<readonly OrderedTable[]> {
  const isByTime = dialect === 'sqlite' && (await hasExactTimes(source));
  return Object.entries(copiedTables(features)).map(([table, key]) => ({
    table,
    order: table === 'api_keys' && isByTime ? ['created_at', 'id'] : key,
  }));
}

/** The tables that are copied, each before the tables that refer to it, with their primary keys. */
export function copiedTables(features: readonly Pick<FeatureTables, 'tables'>[]): Record<string, readonly string[]> {
  return { ...TABLES, ...tablesOf(features) };
}

function tablesOf(features: readonly Pick<FeatureTables, 'tables'>[]): Record<string, readonly string[]> {
  return Object.assign({}, ...features.map(({ tables }) => tables)) as Record<string, readonly string[]>;
}

function goneTables(records: readonly FeatureRecord[], features: readonly FeatureTables[]): GoneTable[] {
  return goneFrom(records, features).flatMap((of) =>
    Object.entries(of.tables).map(([table, order]) => ({ table, order, of })),
  );
}

/** The rows of a table in their kept form. */
async function* keptPages(source: Kysely<Tables>, gone: GoneTable): AsyncGenerator<Row[]> {
  const { feature, migrations } = gone.of;
  let number = 0;
  for await (const rows of pagesOf(source, gone))
    yield rows.map((row) => {
      number += 1;
      const kept = { feature, table_name: gone.table, number, migrations: JSON.stringify(migrations) };
      return { ...kept, row: JSON.stringify(row) };
    });
}

/** The kept rows of a table in the copy. */
function keptOf({ table, of: { feature } }: GoneTable): OrderedTable & { name: string } {
  const only = sql<SqlBool>`feature = ${feature} and table_name = ${table}`;
  return { name: table, table: 'kept_rows', order: ['number'], only };
}

/** Renames a table in the copy back to the name in the original. */
function withoutGone(gone: readonly GoneTable[]) {
  const features = gone.map(({ of }) => of.feature);
  return (ordered: OrderedTable): OrderedTable & { name: string } => {
    const named = { ...ordered, name: ordered.table };
    if (ordered.table !== 'kept_rows' || features.length === 0) return named;
    return { ...named, only: sql<SqlBool>`feature not in (${sql.join(features)})` };
  };
}

/**
 * True if this program reads the times of all keys exactly. SQLite sorts numbers before texts, so checking both ends is
 * enough.
 */
async function hasExactTimes(source: Kysely<Tables>): Promise<boolean> {
  for (const end of ['min', 'max']) {
    // One at a time: both in one query would read the whole index.
    const time = sql<number | string | null>`${sql.raw(end)}(created_at)`.as('time');
    const row = await source.selectFrom('api_keys').select(time).executeTakeFirstOrThrow();
    if (!Number.isSafeInteger(Number(row.time))) return false;
  }
  return true;
}

/** Reads the pages of a table into a digest, and passes them to a function, if given. */
async function digestOf(
  pages: AsyncIterable<Row[]>,
  work: (rows: readonly Row[]) => Promise<void> = async () => {},
): Promise<TableDigest> {
  const digest = createHash('sha256');
  let count = 0;
  let working = Promise.resolve();
  try {
    for await (const rows of pages) {
      const columns = Object.keys(rows[0]!).toSorted();
      digest.update(JSON.stringify(columns));
      // One database returns large numbers as text, the other as numbers. Small parts keep long texts from staying in
      // memory.
      for (let at = 0; at < rows.length; at += DIGESTED_ROWS) {
        const part = rows.slice(at, at + DIGESTED_ROWS);
        digest.update(JSON.stringify(part.map((row) => columns.map((column) => row[column]?.toString() ?? null))));
      }
      count += rows.length;
      await working;
      working = work(rows);
      working.catch(() => {}); // It is awaited below.
      // Starts the hash before the next page is read, as SQLite reads in this thread.
      await setImmediate();
    }
  } finally {
    await working;
  }
  return { count, digest: digest.digest('hex') };
}

/** The rows of a table, page by page. */
async function* pagesOf(db: Kysely<Tables>, { table, order, only }: OrderedTable): AsyncGenerator<Row[]> {
  const columns = order.map((column) => sql.ref(column));
  let last: Row | undefined;
  do {
    const after = last && sql<SqlBool>`(${sql.join(columns)}) > (${sql.join(order.map((column) => last![column]))})`;
    const rows: Row[] = await db
      .selectFrom(table as keyof Tables)
      .$if(only !== undefined, (query) => query.where(only!))
      .$if(table !== 'api_keys', (query) => query.selectAll())
      .$if(table === 'api_keys', (query) => query.select(API_KEY_COLUMNS as never))
      .$if(after !== undefined, (query) => query.where(after!))
      .orderBy(sql`${sql.join(columns)}`)
      .limit(PAGE_ROWS)
      .execute();
    if (rows.length > 0) yield rows;
    last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
  } while (last);
}

/** Runs `work` on a consistent state of a store, while others can change it. @throws KeysError STORE_… */
function withSnapshot<Result>(
  connection: Connection,
  work: (source: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const { dialect } = connection;
  return connection.run((db) =>
    db.connection().execute(async (source) => {
      await sql.raw(dialect === 'sqlite' ? 'begin' : 'begin isolation level repeatable read read only').execute(source);
      try {
        // Rows are read in order, each page once, so a small cache is enough.
        if (dialect === 'sqlite') await sql`pragma cache_size = -2048`.execute(source);
        await allowWaiting(source, dialect);
        // The first read fixes that state.
        await source.selectFrom('audit_head').select('number').execute();
        return await work(source);
      } finally {
        await sql`rollback`.execute(source);
      }
    }),
  );
}

/**
 * Runs `insert`, which fills all tables of an empty store in any order, in a transaction. Indexes are created
 * afterwards.
 */
async function withBulkInserts(
  target: Kysely<Tables>,
  { dialect, features }: Connection,
  insert: () => Promise<void>,
): Promise<void> {
  const tables = Object.keys(copiedTables(features));
  await allowWaiting(target, dialect);
  if (dialect === 'sqlite') {
    // A key can come before its creator.
    await sql`pragma defer_foreign_keys = on`.execute(target);
    await withDeferredIndexes(target, dialect, tables, insert);
    // So many that processes which serve the store drop all remembered keys.
    await sql`insert into key_changes (key_id) select id from api_keys
      order by rowid desc limit ${MAX_CHANGES + 2}`.execute(target);
    while (await indexEntries(target));
    return;
  }
  const creators = sql`alter table api_keys alter constraint api_keys_created_by_fkey`;
  await sql`${creators} deferrable initially deferred`.execute(target);
  await withDeferredIndexes(target, dialect, tables, async () => {
    await insert();
    await sql`set constraints all immediate`.execute(target);
  });
  await sql`${creators} not deferrable`.execute(target);
}

/** Each store idles while the other one is queried, and a server must not end the transaction for that. */
async function allowWaiting(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 0`.execute(db);
}
