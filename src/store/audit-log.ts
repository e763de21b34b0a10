import { createSecretKey, type KeyObject } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { type Expression, type ExpressionBuilder, type Kysely, sql, type SqlBool } from 'kysely';
import {
  type AuditAction,
  type AuditDraft,
  type AuditEntry,
  type AuditPosition,
  type AuditQuery,
  type AuditReader,
  CHAIN_START,
  chainHash,
  requireAuditKey,
} from '../keys/audit/index.ts';
import { formatTime, KeysError, mapYielding, printable, UNIT_MS } from '../keys/basics/index.ts';
import { HISTORY_MS } from '../keys/notices/index.ts';
import type { Connection } from './connection.ts';
import { readAuditEntry, toAuditRow, chunksOf } from './rows.ts';
import type { Search } from './search-keys.ts';
import type { NoticeStateTable, Tables } from './tables.ts';

/** How much later a time is than the one that is remembered, at least: most writes then leave this row alone. */
const MIN_STEP_MS = 1000;

/** The latest time that was remembered, in milliseconds since 1970; 0 if there is none. */
export async function latestTime(db: Kysely<Tables>): Promise<number> {
  return Number((await db.selectFrom('clock').select('latest').executeTakeFirst())?.latest ?? 0);
}

/** How long a store may rest, at least, before the clock is taken to be wrong. */
const REST_MS = 90 * UNIT_MS.d;
/** So much longer than ever among its newest entries may it rest. */
const REST_FACTOR = 2;
const REST_ENTRIES = 100;

/** Until when a time is plausible, given the latest that the store remembers. All in milliseconds since 1970. */
export async function plausibleUntil(db: Kysely<Tables>, latest: number): Promise<number> {
  const entries = await db.selectFrom('audit_log').select('at').orderBy('number', 'desc').limit(REST_ENTRIES).execute();
  const rests = entries.slice(1).map(({ at }, index) => Number(entries[index]!.at) - Number(at));
  return latest + Math.max(REST_MS, ...rests.map((rest) => rest * REST_FACTOR));
}

/**
 * Remembers a time, unless it is less than a second later than the latest one.
 * @param now in milliseconds since 1970, as the next one is
 * @param latest what is remembered
 * @param ifTooLate what to do about a time that is not plausible: see `RepositoryWriteOptions`
 * @throws KeysError STORE_CLOCK
 */
export async function rememberTime(
  db: Kysely<Tables>,
  { now, latest, ifTooLate }: { now: number; latest: number; ifTooLate: 'refuse' | 'ignore' | 'remember' },
): Promise<void> {
  if (now < latest + MIN_STEP_MS) return;
  const isFar = latest > 0 && now > latest + REST_MS && ifTooLate !== 'remember';
  if (isFar && now > (await plausibleUntil(db, latest))) {
    if (ifTooLate === 'ignore') return;
    throw new KeysError(
      'STORE_CLOCK',
      `${clockTooLate(now, latest)} Nothing was changed, as keys would expire too early. Set the clock. If it is ` +
        'right, run "svc-api doctor --repair clock".',
    );
  }
  await setLatestTime(db, now);
}

/** What is wrong with a time that is not plausible. */
export function clockTooLate(now: number, latest: number): string {
  const days = Math.floor((now - latest) / UNIT_MS.d);
  const last = `${formatTime(latest)}, ${days} days before`;
  return `The clock says ${formatTime(now)}, and the store was last written at ${last}.`;
}

/** Remembers a time as the latest, also an earlier one. */
export async function setLatestTime(db: Kysely<Tables>, now: number): Promise<void> {
  await db
    .insertInto('clock')
    .values({ one: 1, latest: now })
    .onConflict((conflict) => conflict.column('one').doUpdateSet({ latest: now }))
    .execute();
}

const KEY_BYTES = 32;
/** Enough for the key in hex and white space around it. */
const MAX_FILE_BYTES = 256;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[0-9A-Za-z+/]{43}=?$/;

/**
 * Reads the key of the audit log from the file that SVC_API_AUDIT_KEY names: 32 bytes, raw, in hex or in base64.
 * @returns undefined if the variable is not set
 * @throws KeysError STORE_AUDIT_KEY for a file that is missing, has another content, or that other users can access
 */
export function readAuditKey(env: NodeJS.ProcessEnv): KeyObject | undefined {
  const path = env['SVC_API_AUDIT_KEY'];
  if (!path) return undefined;
  const key = decode(readPrivateFile(path));
  if (key) return createSecretKey(key);
  throw unusable(path, 'does not hold 32 bytes, raw, in hex or in base64. Make a new one: openssl rand -hex 32');
}

function readPrivateFile(path: string): Buffer {
  let file;
  try {
    // A pipe would wait for its other end.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    if (!stat.isFile()) throw unusable(path, 'is not a file');
    const own = process.geteuid?.();
    // Who owns a file reads it, and root reads all.
    if (own !== 0 && stat.uid !== own && stat.uid !== 0)
      throw unusable(path, 'belongs to another user. Let it belong to root, or to the user who runs this');
    // One that belongs to root can be given to another user by its group alone; root reads those of the service's user.
    const forbidden = stat.uid === own ? 0o077 : 0o037;
    if ((stat.mode & forbidden) !== 0) throw unusable(path, 'can be accessed by other users. Run chmod 600 on it');
    const bytes = Buffer.alloc(MAX_FILE_BYTES);
    return bytes.subarray(0, readSync(file, bytes));
  } catch (error) {
    if (error instanceof KeysError) throw error;
    throw unusable(path, `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function decode(bytes: Buffer): Buffer | undefined {
  if (bytes.length === KEY_BYTES) return bytes;
  const text = bytes.toString('latin1').trim();
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  return BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

function unusable(path: string, reason: string, cause?: unknown): KeysError {
  const message = `The key of the audit log, ${printable(path)} as SVC_API_AUDIT_KEY says, ${reason}.`;
  return new KeysError('STORE_AUDIT_KEY', message, { cause });
}

/** How far the store was looked through for notices; undefined if it never was. */
export function findNoticeState(db: Kysely<Tables>): Promise<NoticeStateTable | undefined> {
  return db.selectFrom('notice_state').selectAll().executeTakeFirst();
}

/**
 * The last entry of the audit log of which notices were made; undefined if nobody makes any. Whoever was not there for
 * so long, in milliseconds, does not count.
 */
async function lastNoticed(db: Kysely<Tables>, forgottenMs: number): Promise<number | undefined> {
  const row = await findNoticeState(db);
  return row && Number(row.seen_at) > (await latestTime(db)) - forgottenMs ? Number(row.log_number) : undefined;
}

/** Reads the audit log of a database, to which `run` gives access. */
export function auditReaderOf(
  run: <Result>(work: (db: Kysely<Tables>) => Promise<Result>) => Promise<Result>,
  key: KeyObject | undefined,
): AuditReader {
  return {
    key,
    find: (query) => run((db) => findAuditEntries(db, query)),
    head: () => run((db) => findPosition(db, 'audit_head')),
    start: () => run((db) => findPosition(db, 'audit_start')),
    lastBefore: (time) => run((db) => findLastBefore(db, time)),
    findLost: (after, upTo) => run((db) => findLost(db, after, upTo)),
  };
}

/** The entries that match a query, in its order: all of them, or those with these numbers. */
export async function findAuditEntries(
  db: Kysely<Tables>,
  query: AuditQuery,
  numbers?: readonly number[],
): Promise<AuditEntry[]> {
  const { limit, order } = query;
  const rows = await db
    .selectFrom('audit_log')
    .selectAll()
    .where((row) => row.and(matching(row, query)))
    .$if(numbers !== undefined, (select) => select.where('number', 'in', numbers!))
    .orderBy('number', order === 'newest' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(readAuditEntry);
}

/** What has the name of a key, and is no change of it. */
const NO_CHANGES = ['REFUSE', 'CONTAIN'] as const satisfies readonly AuditAction[];

type Row = ExpressionBuilder<Tables, 'audit_log'>;

function matching(row: Row, query: AuditQuery): Expression<SqlBool>[] {
  const { owner, apiKey: key, actor, action, since, until, before, after, changesOf } = query;
  return [
    // What was pruned may still be there.
    row('number', '>', (query) =>
      query.selectFrom('audit_start').select((start) => start.fn.coalesce(start.fn.max('number'), sql`0`).as('number')),
    ),
    ...(owner === undefined ? [] : [visibleTo(row, owner, { apiKey: key, actor })]),
    ...(key === undefined ? [] : [row.or([row('key_id', '=', key), row('key_name', '=', key)])]),
    ...(actor === undefined ? [] : [row.or([row('actor_id', '=', actor), row('actor_name', '=', actor)])]),
    ...(action === undefined ? [] : [row('action', '=', action)]),
    ...(since === undefined ? [] : [row('at', '>=', since)]),
    ...(until === undefined ? [] : [row('at', '<', until)]),
    ...(before === undefined ? [] : [row('number', '<', before)]),
    ...(after === undefined ? [] : [row('number', '>', after)]),
    ...(changesOf === undefined ? [] : [row('key_id', 'in', changesOf), row('action', 'not in', NO_CHANGES)]),
  ];
}

/** Whether the owner may read an entry, and the values that are filtered by. */
function visibleTo(
  row: Row,
  owner: string | null,
  { apiKey: key, actor }: Pick<AuditQuery, 'apiKey' | 'actor'>,
): Expression<SqlBool> {
  const isOwn = (column: 'key_id' | 'actor_id') =>
    owner === null
      ? row.lit(false)
      : row(column, 'in', (query) =>
          query
            .selectFrom('api_keys')
            .select('id')
            .where((own) => own.or([own('id', '=', owner), own('created_by', '=', owner)])),
        );
  const concernsNoKey = row.and([row('key_id', 'is', null), row('actor_id', 'is', null)]);
  return row.and([
    row.or([isOwn('key_id'), isOwn('actor_id'), concernsNoKey]),
    ...(key === undefined ? [] : [isOwn('key_id')]),
    ...(actor === undefined ? [] : [row.or([isOwn('actor_id'), row('actor_kind', 'in', ['REQUEST', 'POLICY'])])]),
  ]);
}

/** The newest entry, kept separately so that a truncated log is detected, or the last one that was pruned. */
export async function findPosition(
  db: Kysely<Tables>,
  table: 'audit_head' | 'audit_start',
): Promise<AuditPosition | undefined> {
  const row = await db.selectFrom(table).select(['number', 'hash']).executeTakeFirst();
  return row && { number: Number(row.number), hash: row.hash };
}

async function findLastBefore(db: Kysely<Tables>, time: number): Promise<AuditPosition | undefined> {
  const log = db.selectFrom('audit_log');
  // What a webhook is still to be told of stays.
  const noticed = await lastNoticed(db, HISTORY_MS);
  const [start, head] = [await findPosition(db, 'audit_start'), await findPosition(db, 'audit_head')];
  let [next, after] = [undefined as number | undefined, start?.number ?? 0];
  // In slices: a statement takes long to read through a long log.
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
    // What is written meanwhile is not that old.
    .where('number', next === undefined ? '<=' : '<', next ?? head?.number ?? 0)
    .$if(noticed !== undefined, (query) => query.where('number', '<=', noticed!))
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return last && { number: Number(last.number), hash: last.hash };
}

async function findLost(db: Kysely<Tables>, after: number, upTo: number): Promise<AuditEntry[]> {
  const rows = await db
    .selectFrom('audit_log as last')
    .selectAll()
    .where('number', '>', after)
    .where('number', '<=', upTo)
    .where('key_id', 'is not', null)
    .where('action', 'not in', ['DELETE', ...NO_CHANGES])
    .where((last) => last.not(last.exists(last.selectFrom('api_keys').select('id').whereRef('id', '=', 'last.key_id'))))
    .where((last) => {
      const later = last
        .selectFrom('audit_log as later')
        .select('later.number')
        .whereRef('later.key_id', '=', 'last.key_id')
        .whereRef('later.number', '>', 'last.number')
        .where('later.action', 'not in', NO_CHANGES);
      return last.not(last.exists(later));
    })
    .orderBy('number')
    .execute();
  return rows.map(readAuditEntry);
}

/** Appends entries to the chain, inside a write transaction. @throws KeysError STORE_AUDIT_KEY */
export async function appendToAuditLog(
  db: Kysely<Tables>,
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
      return toAuditRow({ ...draft, number, hash });
    });
    await db.insertInto('audit_log').values(rows).execute();
  }
  await setHead(db, { number, hash }, head);
}

/** Remembers the newest entry, in the place of an earlier one if there is one. */
export async function setHead(
  db: Kysely<Tables>,
  { number, hash }: AuditPosition,
  earlier: AuditPosition | undefined,
): Promise<void> {
  if (earlier) await db.updateTable('audit_head').set({ number, hash }).execute();
  else await db.insertInto('audit_head').values({ one: 1, number, hash }).execute();
}

/** See `AuditWriter.startAuditLogAfter`. */
export async function startAuditLogAfter(db: Kysely<Tables>, { number, hash }: AuditPosition): Promise<void> {
  await db
    .insertInto('audit_start')
    .values({ one: 1, number, hash })
    .onConflict((conflict) => conflict.column('one').doUpdateSet({ number, hash }))
    .execute();
}

/** See `AuditWriter.removePruned`. The triggers allow that before the start alone. */
export async function removePruned(db: Kysely<Tables>, limit: number): Promise<number> {
  const start = await findPosition(db, 'audit_start');
  if (!start) return 0;
  const oldest = db
    .selectFrom('audit_log')
    .select('number')
    .where('number', '<=', start.number)
    .orderBy('number')
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom('audit_log').where('number', 'in', oldest).executeTakeFirst();
  return Number(numDeletedRows);
}

/** A search through all entries reads so many at a time; one through an index, so many of those there. */
const SLICE_ENTRIES = 5000;
const PIECE_ENTRIES = 500;

/** The filters that have an index, and the columns that may have their value. */
const INDEXED = {
  apiKey: ['key_id', 'key_name'],
  actor: ['actor_id', 'actor_name'],
  action: ['action'],
} as const satisfies Partial<Record<keyof AuditQuery, readonly string[]>>;
const INDEXED_FILTERS = Object.keys(INDEXED) as (keyof typeof INDEXED)[];

/**
 * The ways to search for the entries that match a query, which all find the same: through the entries in the query's
 * order, which is fast where many match, and through the index of each filter, which is fast where few do.
 */
export function auditSearchesFor(connection: Connection, query: AuditQuery): Search<AuditEntry[]>[] {
  const isTimed = (query.since ?? query.until) !== undefined;
  return [
    searchSlices(connection, query),
    ...INDEXED_FILTERS.filter((filter) => query[filter] !== undefined).map((filter) =>
      searchFilter(connection, query, filter),
    ),
    ...(isTimed ? [searchTimes(connection, query)] : []),
  ];
}

async function* searchSlices(connection: Connection, query: AuditQuery): Search<AuditEntry[]> {
  const reader = auditReaderOf((work) => connection.run(work), undefined);
  const [head, start] = [await reader.head(), await reader.start()];
  let [after, before] = [
    Math.max(query.after ?? 0, start?.number ?? 0),
    Math.min(query.before ?? Infinity, (head?.number ?? 0) + 1),
  ];
  const found: AuditEntry[] = [];
  while (found.length < query.limit && after < before - 1) {
    const slice =
      query.order === 'newest'
        ? { after: Math.max(after, before - 1 - SLICE_ENTRIES), before }
        : { after, before: Math.min(before, after + 1 + SLICE_ENTRIES) };
    found.push(...(await reader.find({ ...query, ...slice, limit: query.limit - found.length })));
    if (query.order === 'newest') before = slice.after + 1;
    else after = slice.before - 1;
    yield;
  }
  return found;
}

/** In the query's order, as the index has it. */
async function* searchFilter(
  connection: Connection,
  query: AuditQuery,
  filter: keyof typeof INDEXED,
): Search<AuditEntry[]> {
  const found: AuditEntry[] = [];
  let { after = 0, before = Number.MAX_SAFE_INTEGER } = query;
  for (;;) {
    const rest = { ...query, after, before, limit: query.limit - found.length };
    const numbers = await connection.run((db) => findNumbers(db, rest, filter));
    if (numbers.length > 0) found.push(...(await connection.run((db) => findAuditEntries(db, rest, numbers))));
    if (numbers.length < PIECE_ENTRIES || found.length >= query.limit) return found;
    if (query.order === 'newest') before = numbers.at(-1)!;
    else after = numbers.at(-1)!;
    yield;
  }
}

/** The numbers of the next entries that match a filter, in the order of a query. */
async function findNumbers(
  db: Kysely<Tables>,
  { order, after, before, ...query }: AuditQuery,
  filter: keyof typeof INDEXED,
): Promise<number[]> {
  const inOrder = sql`order by number ${sql.raw(order === 'newest' ? 'desc' : 'asc')} limit ${PIECE_ENTRIES}`;
  // Each column by itself: its index is in the order of the numbers.
  const selections = INDEXED[filter].map(
    (column) => sql`select * from (select number from audit_log
      where ${sql.ref(column)} = ${query[filter]} and number > ${after} and number < ${before} ${inOrder})`,
  );
  const { rows } = await sql<{ number: number }>`${sql.join(selections, sql` union `)} ${inOrder}`.execute(db);
  return rows.map(({ number }) => number);
}

/** In the order of times, which may differ from that of the numbers: clocks are set back. */
async function* searchTimes(connection: Connection, query: AuditQuery): Search<AuditEntry[]> {
  let found: AuditEntry[] = [];
  const sign = query.order === 'newest' ? -1 : 1;
  let last = { at: query.since ?? 0, number: 0 };
  for (;;) {
    const rows = await connection.run((db) => findTimes(db, last, query.until ?? Number.MAX_SAFE_INTEGER));
    const worst = found.length < query.limit ? undefined : found.at(-1)!.number;
    const numbers = rows
      .map(({ number }) => number)
      .filter((number) => worst === undefined || sign * (number - worst) < 0);
    if (numbers.length > 0) {
      const entries = await connection.run((db) => findAuditEntries(db, query, numbers));
      found = [...found, ...entries].toSorted((one, other) => sign * (one.number - other.number)).slice(0, query.limit);
    }
    if (rows.length < PIECE_ENTRIES) return found;
    last = rows.at(-1)!;
    yield;
  }
}

async function findTimes(
  db: Kysely<Tables>,
  last: { at: number; number: number },
  until: number,
): Promise<{ at: number; number: number }[]> {
  return db
    .selectFrom('audit_log')
    .select(['at', 'number'])
    .where((row) => row(row.refTuple('at', 'number'), '>', row.tuple(last.at, last.number)))
    .where('at', '<', until)
    .orderBy('at')
    .orderBy('number')
    .limit(PIECE_ENTRIES)
    .execute();
}
