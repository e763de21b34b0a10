import { randomBytes } from 'node:crypto';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import {
  chunksOf,
  type Connection,
  type DialectName,
  FEED_COLUMNS,
  pagesOfKeys,
  portOfStore,
  type StoreOfFeature,
  type Tables,
} from '../../store/index.ts';
import { edgesAfter, FEED, type FeedChanges, type KnownEdge } from './feed.ts';

/** A change of a key. `key_id` is empty or null if no key was changed. */
interface Change {
  number: number;
  mark: string;
  key_id: string | null;
}

/**
 * The changes of keys, in the order of their commits. A file keeps the latest ones in `key_changes`, by any program; a
 * database server uses the entries of the audit log.
 */
const feed = portOfStore({
  port: FEED,
  read: ({ run, connection, connection: { dialect } }) => ({
    edges: async () => latestOf(await edgesNoted(connection)),
    head: () => run(async (db) => cursorOf(await headOf(db, dialect))),
    since: (cursor, limit, also = []) => run((db) => changesSince(db, dialect, { cursor, limit, also })),
    async *pages(limit) {
      const columns = [rowText(dialect).as('text')];
      for await (const page of pagesOfKeys<{ text: string }>(connection, limit, columns))
        yield page.map(({ text }) => text);
    },
  }),
});

/** The port of the feature. It has no tables. */
export const feedStore: StoreOfFeature = { ports: [feed] };

/** The edges of all followers, with up-to-date times. */
async function edgesNoted(connection: Pick<Connection, 'notes'>): Promise<KnownEdge[]> {
  const all = (await connection.notes?.()) ?? [];
  return all.flatMap(({ text, ageMs }) => edgesAfter(JSON.parse(text) as KnownEdge[], ageMs));
}

/** An edge that switched to another process is known to both; the more recent request wins. */
function latestOf(edges: readonly KnownEdge[]): KnownEdge[] {
  const oldestFirst = edges.toSorted((one, other) => other.seenMs - one.seenMs);
  const byId = new Map(oldestFirst.map((edge) => [`${edge.key.id} ${edge.id}`, edge]));
  const textOf = ({ name, id }: KnownEdge) => `${name}\n${id}`;
  return [...byId.values()].toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}

function rowText(dialect: DialectName): RawBuilder<string> {
  const columns = sql.join(FEED_COLUMNS.map((column) => sql.ref(column)));
  // A flipped bit in a file can turn a text into bytes.
  const readable = sql.join(
    FEED_COLUMNS.map((column) => sql`iif(typeof(${sql.ref(column)}) = 'blob', '', ${sql.ref(column)})`),
  );
  return dialect === 'sqlite' ? sql<string>`json_array(${readable})` : sql<string>`json_build_array(${columns})::text`;
}

function cursorOf({ number, mark }: Pick<Change, 'number' | 'mark'>): string {
  return `${number}.${mark}`;
}

/** The position after changes. It also covers changes that have no position of their own. */
function cursorAfter(cursor: string, last: Change | undefined, also: readonly string[]): string {
  if (!last && also.length === 0) return cursor;
  const base = last ? cursorOf(last) : cursor.replace(/~.*/, '');
  return also.length > 0 ? `${base}~${randomBytes(4).toString('hex')}` : base;
}

async function headOf(db: Kysely<Tables>, dialect: DialectName): Promise<Pick<Change, 'number' | 'mark'>> {
  const { rows } =
    dialect === 'sqlite'
      ? await sql<Change>`select number, mark from key_changes order by number desc limit 1`.execute(db)
      : await sql<Change>`select number, hash as mark from audit_head`.execute(db);
  const head = rows[0];
  return head ? { number: Number(head.number), mark: head.mark } : { number: 0, mark: '' };
}

async function changesSince(
  db: Kysely<Tables>,
  dialect: DialectName,
  { cursor, limit, also }: { cursor: string; limit: number; also: readonly string[] },
): Promise<FeedChanges | undefined> {
  const [, number, mark] = /^(\d{1,15})\.([^~]*)(?:~|$)/.exec(cursor) ?? [];
  if (number === undefined) return undefined;
  const changes = await readChanges(db, dialect, { number: Number(number), limit });
  const known = changes.shift();
  if (known?.mark !== mark) return undefined;
  const ids = [...new Set([...also, ...changes.flatMap(({ key_id: id }) => id || [])])];
  const found = new Map<string, string>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('api_keys')
      .select(['id', rowText(dialect).as('text')])
      .where('id', 'in', chunk)
      .execute();
    for (const { id, text } of rows) found.set(id, text);
  }
  return {
    cursor: cursorAfter(cursor, changes.at(-1), also),
    rows: [...found.values()],
    gone: ids.filter((id) => !found.has(id)),
    hasMore: changes.length === limit,
  };
}

/** The change with a number, and those after it. */
async function readChanges(
  db: Kysely<Tables>,
  dialect: DialectName,
  { number, limit }: { number: number; limit: number },
): Promise<Change[]> {
  if (dialect === 'sqlite') {
    const { rows } = await sql<Change>`select number, mark, key_id from key_changes
      where number >= ${number} order by number limit ${limit + 1}`.execute(db);
    return rows[0]?.number === number ? rows : [];
  }
  // Refused requests change no key.
  const { rows } = await sql<Change>`select number, hash as mark,
      case when action <> 'REFUSE' then key_id end as key_id from audit_log
    where number >= ${number} order by number limit ${limit + 1}`.execute(db);
  const changes = rows.map((row) => ({ ...row, number: Number(row.number) }));
  if (changes[0]?.number === number) return changes;
  const before = await sql<Change>`select number, hash as mark, null as key_id from audit_start
    where number = ${number}`.execute(db);
  const start = before.rows[0] ?? (number === 0 ? { mark: '', key_id: null } : undefined);
  const first = changes[0]?.number;
  return start && (first === undefined || first === number + 1) ? [{ ...start, number }, ...changes] : [];
}
