import { setImmediate } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { type AuditValues, CHAIN_START, chainHash, requireAuditKey } from '../keys/audit/index.ts';
import { type ImportEntry, IMPORTS, type ImportSpool, OUTDATED_IMPORT } from '../keys/transfer/index.ts';
import { findPosition, indexEntries, setHead } from './audit-log.ts';
import { portOfStore, type Writing } from './connection.ts';
import { insertRows, type Row, withoutTriggers } from './insert-rows.ts';
import { storedHash } from './rows.ts';
import { API_KEY_COLUMNS, type Tables } from './tables.ts';
import type { ImportSpoolFile } from './sqlite/import-spool.ts';

const spools = {
  async open(): Promise<ImportSpool> {
    const { ImportSpoolFile } = await import('./sqlite/import-spool.ts');
    return new ImportSpoolFile();
  },
};

/** Keeps the lines of imports, and inserts their keys. */
export const imports = portOfStore({
  port: IMPORTS,
  read: () => spools,
  write: (writing) => ({
    async prepare(spool, onProgress) {
      if (writing.dialect === 'sqlite') return;
      await insertKeys(writing, (spool as ImportSpoolFile).rows([0]), async (added) => {
        await onProgress(added);
        if (await isWaitedFor(writing.db)) throw OUTDATED_IMPORT;
      });
    },
    async insert(spool, entry, onProgress) {
      const file = spool as ImportSpoolFile;
      // No key that is remembered changes, but a look at the file from before the change must not be trusted after it.
      writing.keysChanged([]);
      if (writing.dialect === 'postgres') await insertKeys(writing, file.rows([1]), onProgress);
      else await withoutTriggers(writing.db, () => insertKeys(writing, file.rows([0, 1]), onProgress));
      await insertEntries(writing, file, entry);
      if (writing.dialect === 'sqlite') while (await indexEntries(writing.db));
    },
  }),
  empty: () => spools,
});

/** Whether somebody waits for this transaction of a PostgreSQL store to end, and has the lock that writers wait for. */
async function isWaitedFor(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql`select from pg_locks as waiting join pg_locks as held using (pid)
    where not waiting.granted and waiting.transactionid = pg_current_xact_id()::xid
      and held.granted and held.locktype = 'advisory'`.execute(db);
  return rows.length > 0;
}

function insertKeys(
  { db, dialect }: Writing,
  pages: Iterable<Row[]>,
  onProgress: (added: number) => Promise<void>,
): Promise<void> {
  return forEachPage(pages, async (rows) => {
    await insertRows(db, dialect, 'api_keys', rows, API_KEY_COLUMNS);
    await onProgress(rows.length);
  });
}

async function insertEntries(
  { db, dialect, auditKey }: Writing,
  spool: ImportSpoolFile,
  entry: ImportEntry,
): Promise<void> {
  const head = await findPosition(db, 'audit_head');
  requireAuditKey(head, auditKey);
  let { number, hash } = head ?? { number: 0, hash: CHAIN_START };
  const { at, actor, action } = entry;
  await forEachPage(spool.entries(), async (entries) => {
    const rows = entries.map(({ id, name, hashed, kept }): Row => {
      number += 1;
      const after = JSON.parse(hashed) as AuditValues;
      hash = chainHash({ ...entry, number, apiKey: { id, name }, before: null, after }, hash, auditKey);
      const about = { action, key_id: id, key_name: name, before: null, after: kept, address: null };
      return {
        number,
        at,
        actor_kind: actor.kind,
        actor_id: actor.id,
        actor_name: actor.name,
        ...about,
        hash: storedHash(hash),
      };
    });
    await insertRows(db, dialect, 'audit_log', rows);
  });
  await setHead(db, { number, hash }, head);
}

/** Does something with each page, while the next one is read. */
async function forEachPage<Page>(pages: Iterable<Page>, work: (page: Page) => Promise<void>): Promise<void> {
  let working = Promise.resolve();
  try {
    for (const page of pages) {
      await working;
      working = work(page);
      working.catch(() => {}); // It is awaited below.
      // It is under way before the next page is read.
      await setImmediate();
    }
  } finally {
    await working;
  }
}
