import { createSecretKey, type KeyObject } from 'node:crypto';
import { type Expression, type ExpressionBuilder, type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import {
  type AuditAction,
  type AuditedChange,
  type AuditCount,
  type AuditDraft,
  type AuditEntry,
  type AuditPosition,
  type AuditQuery,
  type AuditReader,
  type AuditOwner,
  type AuditSelection,
  CHAIN_START,
  chainHash,
  requireAuditKey,
} from '../keys/audit/index.ts';
import {
  insecureRightsOf,
  isOwnFile,
  KeysError,
  mapYielding,
  printable,
  processUser,
  readGuardedFile,
  yieldToEventLoop,
} from '../keys/basics/index.ts';
import type { Connection, DialectName } from './connection.ts';
import { insertRows } from './insert-rows.ts';
import { BLOCK_ENTRIES } from './migrations.ts';
import {
  CHANGE_COLUMNS,
  chunksOf,
  hasHashed,
  idStart,
  isId,
  isAbout,
  readAuditEntry,
  readChange,
  readHash,
  storedHash,
  toAuditRow,
} from './rows.ts';
import type { AuditLogTable, Tables } from './tables.ts';

const KEY_BYTES = 32;
/** Enough for the key in hex and white space around it. */
const MAX_FILE_BYTES = 256;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[0-9A-Za-z+/]{43}=?$/;

/**
 * Reads the key of the audit log from the file named by SVC_API_AUDIT_KEY: 32 bytes, raw, in hex or in base64.
 * @returns undefined if the variable is not set
 * @throws KeysError STORE_AUDIT_KEY if the file is missing, has other contents, or can be accessed by other users
 */
export function readAuditKey(env: NodeJS.ProcessEnv): KeyObject | undefined {
  const path = env['SVC_API_AUDIT_KEY'];
  if (!path) return undefined;
  const { bytes } = readGuardedFile(path, MAX_FILE_BYTES, {
    check: (stat) => {
      // The owner can always read the file, and root can read any file.
      if (processUser() !== 0 && stat.uid !== 0n && !isOwnFile(stat))
        throw unusable(path, 'belongs to another user. Change its owner to root, or to the user that runs svc-api');
      const insecure = insecureRightsOf(stat);
      if (insecure !== undefined) throw unusable(path, insecure);
    },
    failed: (reason, cause) => unusable(path, reason, cause),
  });
  const key = decode(bytes);
  if (key) return createSecretKey(key);
  throw unusable(path, 'does not hold 32 bytes, raw, in hex or in base64. Make a new one: openssl rand -hex 32');
}

function decode(bytes: Buffer): Buffer | undefined {
  if (bytes.length === KEY_BYTES) return bytes;
  const text = bytes.toString('latin1').trim();
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  return BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

function unusable(path: string, reason: string, cause?: unknown): KeysError {
  const message = `The key of the audit log, the file ${printable(path)} of SVC_API_AUDIT_KEY, ${reason}.`;
  return new KeysError('STORE_AUDIT_KEY', message, { cause });
}

/** Reads the audit log of the database that `run` gives access to. */
export function auditReaderOf(
  run: <Result>(work: (db: Kysely<Tables>) => Promise<Result>) => Promise<Result>,
  dialect: DialectName,
  key: KeyObject | undefined,
): AuditReader {
  return {
    key,
    find: (query) => run((db) => findAuditEntries(db, dialect, query)),
    findChanges: (ids, page) => run((db) => findChanges(db, dialect, ids, page)),
    findChanged: (after, upTo) => run((db) => findChanged(db, after, upTo)),
    count: (selection, periodMs) => run((db) => countAuditEntries(db, dialect, selection, periodMs)),
    timeFrom: (number) => run((db) => findTimeFrom(db, number)),
    head: () => run((db) => findPosition(db, 'audit_head')),
    start: () => run((db) => findPosition(db, 'audit_start')),
    lastBefore: (time, upTo) => run((db) => findLastBefore(db, time, upTo)),
    findLost: (after, upTo) => run((db) => findLost(db, dialect, after, upTo)),
  };
}

/** The entries that match a query, in its order, optionally only those in certain blocks of an SQLite store. */
async function findAuditEntries(
  db: Kysely<Tables>,
  dialect: DialectName,
  query: AuditQuery,
  blocks?: readonly number[],
): Promise<AuditEntry[]> {
  const { limit, order } = query;
  const rows = await db
    .selectFrom('audit_log')
    .selectAll()
    .where((row) => row.and(matching(row, dialect, query)))
    .$if(blocks !== undefined, (select) => select.where(sql<SqlBool>`number in (${numbersIn(blocks!)})`))
    .orderBy('number', order === 'newest' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(readAuditEntry);
}

/** See `AuditReader.findChanges`. */
async function findChanges(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  { limit, order, ...place }: Parameters<AuditReader['findChanges']>[1],
): Promise<AuditedChange[]> {
  const rows = await db
    .selectFrom('audit_log')
    .select(CHANGE_COLUMNS)
    .where((row) => row.and([...matching(row, dialect, place), isAbout(dialect, ids)]))
    .where('action', 'not in', NO_CHANGES)
    .orderBy('number', order === 'newest' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(readChange);
}

/** See `AuditReader.findChanged`. */
async function findChanged(db: Kysely<Tables>, after: number, upTo: number): Promise<string[]> {
  const rows = await db
    .selectFrom('audit_log')
    .select('key_id')
    .where('number', '>', after)
    .where('number', '<=', upTo)
    .where('key_id', 'is not', null)
    .where('action', 'not in', ['CREATE', 'IMPORT', ...NO_CHANGES])
    .execute();
  return rows.map(({ key_id: id }) => id!);
}

/** The number of entries that match, by periods. Periods without a match are left out. */
async function countAuditEntries(
  db: Kysely<Tables>,
  dialect: DialectName,
  selection: AuditSelection,
  periodMs: number,
): Promise<AuditCount[]> {
  const period = sql<number>`at / cast(${sql.lit(periodMs)} as bigint)`;
  const rows = await db
    .selectFrom('audit_log')
    .select([period.as('period'), sql<number>`count(*)`.as('entries')])
    .select(sql<number>`sum(case when action = 'REFUSE' then 1 else 0 end)`.as('refused'))
    .where((row) => row.and(matching(row, dialect, selection)))
    .groupBy(period)
    .execute();
  return rows.map(({ period: of, entries, refused }) => ({
    start: Number(of) * periodMs,
    entries: Number(entries),
    refused: Number(refused),
  }));
}

async function findTimeFrom(db: Kysely<Tables>, number: number): Promise<{ number: number; at: number } | undefined> {
  const row = await db
    .selectFrom('audit_log')
    .select(['number', 'at'])
    .where('number', '>=', number)
    .orderBy('number')
    .limit(1)
    .executeTakeFirst();
  return row && { number: Number(row.number), at: Number(row.at) };
}

function numbersIn(blocks: readonly number[]): RawBuilder<unknown> {
  return sql`select number from json_each(${JSON.stringify(blocks)}) cross join audit_log
    where number >= value * ${BLOCK} and number < (value + 1) * ${BLOCK}`;
}

/** Actions that name a key without changing it. */
const NO_CHANGES = ['REFUSE', 'CONTAIN'] as const satisfies readonly AuditAction[];

type Row = ExpressionBuilder<Tables, 'audit_log'>;

function matching(
  row: Row,
  dialect: DialectName,
  { owner, apiKey: key, actor, action, outcome, since, until, before, after }: AuditSelection,
): Expression<SqlBool>[] {
  return [
    // Pruned entries may still be in the table. Both bounds are one expression: with two, SQLite would read all entries
    // below the start.
    row(
      'number',
      '>',
      sql<number>`(select max(number) from (
        select number from audit_start union all select cast(${after ?? 0} as bigint)) as starts)`,
    ),
    ...(owner === undefined ? [] : [visibleTo(row, owner, { apiKey: key, actor })]),
    ...(key === undefined ? [] : [row.or([isAbout(dialect, [key]), hasHashed(dialect, 'key_name', [key])])]),
    ...(actor === undefined
      ? []
      : [row.or([...(isId(dialect, actor) ? [row('actor_id', '=', actor)] : []), row('actor_name', '=', actor)])]),
    ...(action === undefined ? [] : [row('action', '=', action)]),
    ...(outcome === undefined ? [] : [row('action', outcome === 'REFUSED' ? '=' : '!=', 'REFUSE')]),
    ...(since === undefined ? [] : [row('at', '>=', since)]),
    ...(until === undefined ? [] : [row('at', '<', until)]),
    ...(before === undefined ? [] : [row('number', '<', before)]),
  ];
}

/** Limits entries, and the values that they are filtered by, to those that the owner is allowed to read. */
function visibleTo(
  row: Row,
  owner: AuditOwner | null,
  { apiKey: key, actor }: Pick<AuditQuery, 'apiKey' | 'actor'>,
): Expression<SqlBool> {
  const isOwn = (column: 'key_id' | 'actor_id') =>
    owner === null
      ? row.lit(false)
      : row(column, 'in', (query) =>
          query
            .selectFrom('api_keys')
            .select('id')
            .where((own) =>
              own.or([own('id', '=', owner.id), ...(owner.withCreated ? [own('created_by', '=', owner.id)] : [])]),
            ),
        );
  const concernsNoKey = row.and([row('key_id', 'is', null), row('actor_id', 'is', null)]);
  return row.and([
    row.or([isOwn('key_id'), isOwn('actor_id'), concernsNoKey]),
    ...(key === undefined ? [] : [isOwn('key_id')]),
    ...(actor === undefined ? [] : [row.or([isOwn('actor_id'), row('actor_kind', 'in', ['REQUEST', 'POLICY'])])]),
  ]);
}

/** The newest entry, stored separately to detect a truncated log, or the last pruned one. */
async function findPosition(
  db: Kysely<Tables>,
  table: 'audit_head' | 'audit_start',
): Promise<AuditPosition | undefined> {
  const row = await db.selectFrom(table).select(['number', 'hash']).executeTakeFirst();
  return row && { number: Number(row.number), hash: readHash(row.hash) };
}

async function findLastBefore(db: Kysely<Tables>, time: number, upTo: number): Promise<AuditPosition | undefined> {
  const log = db.selectFrom('audit_log');
  const [start, head] = [await findPosition(db, 'audit_start'), await findPosition(db, 'audit_head')];
  let [next, after] = [undefined as number | undefined, start?.number ?? 0];
  // In slices, since one statement over a long log takes long.
  for (; next === undefined && after < (head?.number ?? 0); after += SLICE_ENTRIES) {
    const found = await log
      .select('number')
      .where('at', '>=', time)
      .where('number', '>', after)
      .where('number', '<=', after + SLICE_ENTRIES)
      .orderBy('number')
      .limit(1)
      .executeTakeFirst();
    next = found && Number(found.number);
  }
  const last = await log
    .select(['number', 'hash'])
    // Entries written during the search are too new to match.
    .where('number', next === undefined ? '<=' : '<', next ?? head?.number ?? 0)
    .$if(upTo < Number.POSITIVE_INFINITY, (query) => query.where('number', '<=', upTo))
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last && { number: Number(last.number), hash: readHash(last.hash) };
}

async function findLost(db: Kysely<Tables>, dialect: DialectName, after: number, upTo: number): Promise<AuditEntry[]> {
  const rows = await db
    .selectFrom('audit_log as last')
    .selectAll()
    .where('number', '>', after)
    .where('number', '<=', upTo)
    .where('key_id', 'is not', null)
    .where('action', 'not in', ['DELETE', ...NO_CHANGES])
    // Looks up each entry by the index: PostgreSQL would otherwise read all keys for each id that does not exist.
    .where((last) => last(last.selectFrom('api_keys').select('id').whereRef('id', '=', 'last.key_id'), 'is', null))
    .where((last) => {
      const later = last
        .selectFrom('audit_log as later')
        .select('later.number')
        .where(sql<SqlBool>`${idStart(dialect, 'later.key_id')} = ${idStart(dialect, 'last.key_id')}`)
        .whereRef('later.key_id', '=', 'last.key_id')
        .whereRef('later.number', '>', 'last.number')
        .where('later.action', 'not in', NO_CHANGES)
        .limit(1);
      return last(later, 'is', null);
    })
    .orderBy('number')
    .execute();
  return rows.map(readAuditEntry);
}

/** Appends entries to the chain, inside a write transaction. @throws KeysError STORE_AUDIT_KEY */
export async function appendToAuditLog(
  db: Kysely<Tables>,
  dialect: DialectName,
  drafts: readonly AuditDraft[],
  key: KeyObject | undefined,
): Promise<void> {
  if (drafts.length === 0) return;
  const head = await findPosition(db, 'audit_head');
  requireAuditKey(head, key);
  let { number, hash } = head ?? { number: 0, hash: CHAIN_START };
  for (const chunk of chunksOf(drafts)) {
    const rows = await mapYielding(chunk, (draft) => {
      number += 1;
      hash = chainHash({ ...draft, number }, hash, key);
      return { ...toAuditRow({ ...draft, number, hash }) };
    });
    await insertRows(db, dialect, 'audit_log', rows);
  }
  await setHead(db, { number, hash }, head);
}

/** Records the newest entry, replacing an earlier one. */
async function setHead(
  db: Kysely<Tables>,
  { number, hash }: AuditPosition,
  earlier: AuditPosition | undefined,
): Promise<void> {
  const position = { number, hash: storedHash(hash) };
  if (earlier) await db.updateTable('audit_head').set(position).execute();
  else
    await db
      .insertInto('audit_head')
      .values({ one: 1, ...position })
      .execute();
}

/** See `AuditWriter.startAuditLogAfter`. */
export async function startAuditLogAfter(db: Kysely<Tables>, { number, hash }: AuditPosition): Promise<void> {
  const position = { number, hash: storedHash(hash) };
  await db
    .insertInto('audit_start')
    .values({ one: 1, ...position })
    .onConflict((conflict) => conflict.column('one').doUpdateSet(position))
    .execute();
}

/** See `AuditWriter.removePruned`. The triggers allow deletions before the start only. */
export async function removePruned(db: Kysely<Tables>, dialect: DialectName, limit: number): Promise<number> {
  const start = await findPosition(db, 'audit_start');
  if (!start) return 0;
  const oldest = await db
    .selectFrom('audit_log')
    .select('number')
    .where('number', '<=', start.number)
    .orderBy('number')
    .limit(limit)
    .execute();
  const last = Number(oldest.at(-1)?.number ?? 0);
  if (dialect === 'sqlite') {
    // Keeps a block that still has entries of the log.
    const end = Math.min(last + 1, blockStart(start.number + 1));
    await sql`delete from audit_terms where (term, block) in (${termsOf(sql`number < ${end}`)})`.execute(db);
    await sql`delete from audit_blocks where (block + 1) * ${BLOCK} <= ${end}`.execute(db);
  }
  await db.deleteFrom('audit_log').where('number', '<=', last).execute();
  return oldest.length;
}

const BLOCK = sql.lit(BLOCK_ENTRIES);

/** The number of the first entry in the block of an entry. */
function blockStart(number: number): number {
  return number - (number % BLOCK_ENTRIES);
}

/** The search terms of entries, each with its block. */
function termsOf(entries: RawBuilder<unknown>): RawBuilder<unknown> {
  const selections = TERM_COLUMNS.map(
    (column) => sql`select ${sql.ref(column)} as term, number / ${BLOCK} as block from audit_log
      where ${entries} and ${sql.ref(column)} is not null`,
  );
  return sql.join(selections, sql` union `);
}

/** The most entries that one change indexes. */
const INDEXED_ENTRIES = 512;

/**
 * Indexes entries of an SQLite store that are not in the search index yet: only whole blocks, and a few per change. See
 * `audit_terms`.
 * @returns true if more are left
 */
export async function indexEntries(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ start: number; head: number }>`select
    ${firstUnindexed} as start, (select coalesce(max(number), 0) from audit_head) as head`.execute(db);
  const { start, head } = rows[0]!;
  const end = blockStart(head + 1);
  if (start >= end) return false;
  const next = await db
    .selectFrom('audit_log')
    .select('number')
    .where('number', '>=', start)
    .where('number', '<', end)
    .orderBy('number')
    .offset(INDEXED_ENTRIES)
    .limit(1)
    .executeTakeFirst();
  const upTo = next ? blockStart(next.number) : end;
  const entries = sql`number >= ${start} and number < ${upTo}`;
  await sql`insert into audit_terms ${termsOf(entries)}`.execute(db);
  await sql`insert into audit_blocks select number / ${BLOCK}, min(at), max(at) from audit_log where ${entries}
    group by 1`.execute(db);
  return next !== undefined;
}

const firstUnindexed = sql<number>`(select coalesce(max(block) + 1, 0) * ${BLOCK} from audit_blocks)`;

/** How many entries, and how many blocks, are read at a time. */
const [SLICE_ENTRIES, PIECE_BLOCKS] = [5000, 128];

/** The columns that are indexed. */
const TERM_COLUMNS = [
  'key_name',
  'actor_id',
  'actor_name',
  'action',
] as const satisfies readonly (keyof AuditLogTable)[];

/**
 * The entries of an SQLite store that match a query, in its order: through the index, and one by one if they are not
 * indexed yet. They are read a few at a time, so that others get their turns.
 */
export async function searchEntries(connection: Connection, query: AuditQuery): Promise<AuditEntry[]> {
  const { limit, order, after = 0, before = Infinity } = query;
  const isNewestFirst = order === 'newest';
  const { rows } = await connection.run((db) =>
    sql<{ start: number; end: number }>`select ${firstUnindexed} as start,
      (select coalesce(max(number), 0) + 1 from audit_head) as end`.execute(db),
  );
  const { start, end } = rows[0]!;
  const found: AuditEntry[] = [];
  const read = async (part: Partial<AuditQuery>, blocks?: readonly number[]) => {
    const rest = { ...query, ...part, limit: limit - found.length };
    found.push(...(await connection.run((db) => findAuditEntries(db, 'sqlite', rest, blocks))));
    await yieldToEventLoop();
  };
  const readUnindexed = async () => {
    let [low, high] = [Math.max(after, start - 1), Math.min(before, end)];
    while (found.length < limit && low < high - 1) {
      const slice = isNewestFirst
        ? { after: Math.max(low, high - 1 - SLICE_ENTRIES), before: high }
        : { after: low, before: Math.min(high, low + 1 + SLICE_ENTRIES) };
      await read(slice);
      if (isNewestFirst) high = slice.after + 1;
      else low = slice.before - 1;
    }
  };
  if (isNewestFirst) await readUnindexed();
  for (let last: number | undefined; found.length < limit;) {
    // Entries that are indexed during the search are read as unindexed.
    const next = selectBlocks({ ...query, before: Math.min(before, start) }, last);
    const blocks = await connection.run(async (db) => (await next.execute(db)).rows.map(({ block }) => block));
    if (blocks.length > 0) await read({}, blocks);
    last = blocks.at(-1);
    if (blocks.length < PIECE_BLOCKS) break;
  }
  if (!isNewestFirst) await readUnindexed();
  return found;
}

/** The next blocks after one, in the order of a query, that can match all its filters. */
function selectBlocks(
  { apiKey: key, actor, action, outcome, since, until, order, after, before }: AuditQuery,
  last?: number,
): RawBuilder<{ block: number }> {
  const [isNext, direction] = order === 'newest' ? [sql`<`, sql`desc`] : [sql`>`, sql`asc`];
  const hasTerm = (term: string) =>
    sql`exists (select 1 from audit_terms where term = ${term} and audit_terms.block = audit_blocks.block)`;
  const isAboutKey = (id: string) => sql`exists (select 1 from audit_log where ${isAbout('sqlite', [id])}
    and number >= audit_blocks.block * ${BLOCK} and number < (audit_blocks.block + 1) * ${BLOCK})`;
  const terms = [actor, action, outcome === 'REFUSED' ? 'REFUSE' : undefined].filter((term) => term !== undefined);
  const conditions = [
    ...(last === undefined ? [] : [sql`block ${isNext} ${last}`]),
    ...(after === undefined ? [] : [sql`block >= ${Math.floor((after + 1) / BLOCK_ENTRIES)}`]),
    ...(before === undefined ? [] : [sql`block <= ${Math.floor((before - 1) / BLOCK_ENTRIES)}`]),
    ...(since === undefined ? [] : [sql`last_at >= ${since}`]),
    ...(until === undefined ? [] : [sql`first_at < ${until}`]),
    ...terms.map(hasTerm),
    ...(key === undefined ? [] : [sql`(${hasTerm(key)} or ${isAboutKey(key)})`]),
    sql`true`,
  ];
  return sql`select block from audit_blocks where ${sql.join(conditions, sql` and `)}
    order by block ${direction} limit ${PIECE_BLOCKS}`;
}
