import { createSecretKey, type KeyObject } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { Expression, ExpressionBuilder, Kysely, SqlBool } from 'kysely';
import {
  type AuditAction,
  type AuditDraft,
  type AuditEntry,
  type AuditPosition,
  type AuditQuery,
  type AuditReader,
  CHAIN_START,
  chainHash,
} from '../keys/audit/audit-entry.ts';
import { requireAuditKey } from '../keys/audit/audit-key.ts';
import { KeysError } from '../keys/errors.ts';
import { HISTORY_MS } from '../keys/notices/notice.ts';
import { mapYielding } from '../keys/yielding.ts';
import { printable } from '../keys/text.ts';
import { chunksOf } from './chunks.ts';
import { latestTime } from './clock.ts';
import { readAuditEntry, toAuditRow } from './rows.ts';
import type { NoticeStateTable, Tables } from './tables.ts';

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
  const next = await log.select('number').where('at', '>=', time).orderBy('number').limit(1).executeTakeFirst();
  const last = await log
    .select(['number', 'hash'])
    .$if(next !== undefined, (query) => query.where('number', '<', next!.number))
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

/** Deletes all entries up to this one, inside a write transaction. The triggers allow that from the new start on. */
export async function pruneAuditLog(db: Kysely<Tables>, { number, hash }: AuditPosition): Promise<void> {
  await db
    .insertInto('audit_start')
    .values({ one: 1, number, hash })
    .onConflict((conflict) => conflict.column('one').doUpdateSet({ number, hash }))
    .execute();
  await db.deleteFrom('audit_log').where('number', '<=', number).execute();
}
