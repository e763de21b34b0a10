import type { KeyObject } from 'node:crypto';
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
import { HISTORY_MS } from '../keys/notices/notice.ts';
import { mapInTurns } from '../keys/turns.ts';
import { chunksOf } from './chunks.ts';
import { lastNoticed } from './notice-cursor.ts';
import { auditEntryOf, auditRowOf } from './rows.ts';
import type { Tables } from './tables.ts';

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
  return rows.map(auditEntryOf);
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
  return rows.map(auditEntryOf);
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
    const rows = await mapInTurns(chunk, (draft) => {
      number += 1;
      hash = chainHash({ ...draft, number }, hash, key);
      return auditRowOf({ ...draft, number, hash });
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
