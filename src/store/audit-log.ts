import type { Kysely } from 'kysely';
import {
  type AuditDraft,
  type AuditEntry,
  type AuditQuery,
  CHAIN_START,
  chainHash,
} from '../keys/audit/audit-entry.ts';
import { chunksOf } from './chunks.ts';
import { auditEntryOf, auditRowOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** The entries that match a query, in its order. */
export async function findAuditEntries(db: Kysely<Tables>, query: AuditQuery): Promise<AuditEntry[]> {
  const { key, actor, action, since, until, before, after, limit, order } = query;
  const rows = await db
    .selectFrom('audit_log')
    .selectAll()
    .where((row) =>
      row.and([
        ...(key === undefined ? [] : [row.or([row('key_id', '=', key), row('key_name', '=', key)])]),
        ...(actor === undefined ? [] : [row.or([row('actor_id', '=', actor), row('actor_name', '=', actor)])]),
        ...(action === undefined ? [] : [row('action', '=', action)]),
        ...(since === undefined ? [] : [row('at', '>=', since)]),
        ...(until === undefined ? [] : [row('at', '<', until)]),
        ...(before === undefined ? [] : [row('number', '<', before)]),
        ...(after === undefined ? [] : [row('number', '>', after)]),
      ]),
    )
    .orderBy('number', order === 'newest' ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(auditEntryOf);
}

/** The number and hash of the newest entry, kept separately so that a truncated log is detected. */
export async function findAuditHead(db: Kysely<Tables>): Promise<{ number: number; hash: string } | undefined> {
  const head = await db.selectFrom('audit_head').select(['number', 'hash']).executeTakeFirst();
  return head && { number: Number(head.number), hash: head.hash };
}

/** Appends entries to the chain, inside a write transaction. */
export async function appendToAuditLog(db: Kysely<Tables>, drafts: readonly AuditDraft[]): Promise<void> {
  if (drafts.length === 0) return;
  const head = await findAuditHead(db);
  let { number, hash } = head ?? { number: 0, hash: CHAIN_START };
  const rows = drafts.map((draft) => {
    number += 1;
    hash = chainHash({ ...draft, number }, hash);
    return auditRowOf({ ...draft, number, hash });
  });
  for (const chunk of chunksOf(rows)) await db.insertInto('audit_log').values(chunk).execute();
  if (head) await db.updateTable('audit_head').set({ number, hash }).execute();
  else await db.insertInto('audit_head').values({ one: 1, number, hash }).execute();
}
