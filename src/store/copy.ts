import { hash } from 'node:crypto';
import { type Kysely, type SqlBool, sql } from 'kysely';
import { KeysError } from '../keys/errors.ts';
import type { Connection, DialectName } from './connection.ts';
import { type ApiKeyTable, TABLE_NAMES, TABLES, type Tables } from './tables.ts';

/** The result of a copy. */
export interface StoreCopy {
  /** The number of keys copied. */
  keys: number;
  /** The number of audit entries copied. */
  auditEntries: number;
  /** See `Connection.location`. */
  from: string;
  to: string;
}

const PAGE_ROWS = 500;

type Row = Record<string, string | number | null>;

/**
 * Copies a whole store into an empty one: keys with the digests of their secrets, their usage, and the audit log. Both
 * stores are locked for writing meanwhile. The copy is committed only if it is complete and verified to be identical.
 * @throws KeysError STORE_NOT_EMPTY, STORE_…
 */
export function copyStore(from: Connection, to: Connection): Promise<StoreCopy> {
  return from.write((source) =>
    to.write(async (target) => {
      await allowWaiting(target, to.dialect);
      await allowWaiting(source, from.dialect);
      await requireEmpty(target, to.location);
      const counts = new Map<string, number>();
      for (const table of TABLE_NAMES) counts.set(table, await copyTable(source, target, table));
      // A key may come before its creator, so creators are filled in once all keys exist.
      for await (const rows of pagesOf(source, 'api_keys')) await setCreators(target, rows);
      for (const table of TABLE_NAMES) {
        if ((await checksumOf(source, table)) !== (await checksumOf(target, table)))
          throw new KeysError(
            'STORE_FAILED',
            `The copy of ${table} in ${to.location} differs from the original. Nothing was copied.`,
          );
      }
      return {
        keys: counts.get('api_keys')!,
        auditEntries: counts.get('audit_log')!,
        from: from.location,
        to: to.location,
      };
    }),
  );
}

/** Each store idles while the other one is queried: a server must not end the transaction for that. */
async function allowWaiting(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 0`.execute(db);
}

async function requireEmpty(target: Kysely<Tables>, location: string): Promise<void> {
  for (const table of ['api_keys', 'audit_log'] as const) {
    const row = await target
      .selectFrom(table)
      .select(sql<number>`1`.as('one'))
      .limit(1)
      .executeTakeFirst();
    if (row) throw new KeysError('STORE_NOT_EMPTY', `The key store ${location} is not empty. Copy into a new one.`);
  }
}

async function copyTable(source: Kysely<Tables>, target: Kysely<Tables>, table: keyof Tables): Promise<number> {
  let count = 0;
  for await (const rows of pagesOf(source, table)) {
    const values = table === 'api_keys' ? rows.map(withoutCreator) : rows;
    await target.insertInto(table).values(values).execute();
    count += rows.length;
  }
  return count;
}

/** A row as it is until its creator is there, with the checksum, which covers the creator. */
function withoutCreator(row: Row): Row {
  return row['created_by'] === null ? row : { ...row, created_by: null, checksum: null };
}

async function setCreators(target: Kysely<Tables>, rows: readonly Row[]): Promise<void> {
  for (const { id, created_by, checksum } of rows as readonly (Row & ApiKeyTable)[]) {
    if (created_by !== null)
      await target.updateTable('api_keys').set({ created_by, checksum }).where('id', '=', id).execute();
  }
}

/** The rows of a table, page by page in the order of their primary key. */
async function* pagesOf(db: Kysely<Tables>, table: keyof Tables): AsyncGenerator<Row[]> {
  const key: readonly string[] = TABLES[table];
  const columns = key.map((column) => sql.ref(column));
  let last: Row | undefined;
  do {
    const after = last && sql<SqlBool>`(${sql.join(columns)}) > (${sql.join(key.map((column) => last![column]))})`;
    const rows: Row[] = await db
      .selectFrom(table)
      .selectAll()
      .$if(after !== undefined, (query) => query.where(after!))
      .orderBy(sql`${sql.join(columns)}`)
      .limit(PAGE_ROWS)
      .execute();
    if (rows.length > 0) yield rows;
    last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
  } while (last);
}

/** A checksum of a table that does not depend on the order of its rows: databases sort text differently. */
async function checksumOf(db: Kysely<Tables>, table: keyof Tables): Promise<bigint> {
  let sum = 0n;
  for await (const rows of pagesOf(db, table)) {
    for (const row of rows) {
      // One database returns large numbers as text, the other as numbers.
      const fields = Object.keys(row)
        .toSorted()
        .map((column) => [column, row[column] === null ? null : String(row[column])]);
      sum ^= BigInt(`0x${hash('sha256', JSON.stringify(fields), 'hex')}`);
    }
  }
  return sum;
}
