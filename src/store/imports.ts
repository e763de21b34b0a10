import type { KeyObject } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { type AuditPosition, type AuditValues, CHAIN_START, chainHash, requireAuditKey } from '../keys/audit/index.ts';
import { type ImportEntry, IMPORTS, type ImportSpool, OUTDATED_IMPORT } from '../keys/transfer/index.ts';
import { findPosition, indexEntries, setHead } from './audit-log.ts';
import { portOfStore, type Writing } from './connection.ts';
import { missingStore } from './errors.ts';
import { insertLists, insertRows, type Row, withoutTriggers } from './insert-rows.ts';
import { storedHash } from './rows.ts';
import { API_KEY_COLUMNS, type Tables } from './tables.ts';
import type { ImportSpoolFile, SpooledEntry } from './sqlite/import-spool.ts';

async function openSpool(): Promise<ImportSpool> {
  const { ImportSpoolFile } = await import('./sqlite/import-spool.ts');
  return new ImportSpoolFile();
}

/** Keeps the lines of imports, and inserts their keys. */
export const imports = portOfStore({
  port: IMPORTS,
  read: ({ run, auditKey }) => ({
    open: openSpool,
    async hash(spool, entry) {
      const last = await run((db) => lastEntry(db, auditKey));
      const previous = last.hash;
      (spool as ImportSpoolFile).makeHashes((of) => nextHash(last, entry, of, auditKey));
      return previous;
    },
  }),
  write: (writing) => ({
    async prepare(spool, onProgress) {
      if (writing.dialect === 'sqlite') return;
      await insertKeys(writing, (spool as ImportSpoolFile).keys([0]), async (added) => {
        await onProgress(added);
        if (await isWaitedFor(writing.db)) throw OUTDATED_IMPORT;
      });
    },
    async insert(spool, entry, { hashedAfter, onProgress }) {
      const file = spool as ImportSpoolFile;
      // No key that is remembered changes, but a look at the file from before the change must not be trusted after it.
      writing.keysChanged([]);
      if (writing.dialect === 'postgres') await insertKeys(writing, file.keys([1]), onProgress);
      else await withoutTriggers(writing.db, () => insertKeys(writing, file.keys([0, 1]), onProgress));
      await insertEntries(writing, file, { entry, hashedAfter });
      if (writing.dialect === 'sqlite') while (await indexEntries(writing.db));
    },
  }),
  empty: (location) => ({ open: openSpool, hash: () => Promise.reject(missingStore(location)) }),
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
  pages: Iterable<unknown[][]>,
  onProgress: (added: number) => Promise<void>,
): Promise<void> {
  return forEachPage(pages, async (lists) => {
    await insertLists(db, dialect, 'api_keys', API_KEY_COLUMNS, lists);
    await onProgress(lists.length);
  });
}

async function lastEntry(db: Kysely<Tables>, auditKey: KeyObject | undefined): Promise<AuditPosition> {
  const head = await findPosition(db, 'audit_head');
  requireAuditKey(head, auditKey);
  return { ...(head ?? { number: 0, hash: CHAIN_START }) };
}

/** The hash of an entry that follows the last one, which becomes this one. */
function nextHash(
  last: AuditPosition,
  entry: ImportEntry,
  { id, name, hashed }: SpooledEntry,
  auditKey: KeyObject | undefined,
): string {
  const draft = { ...entry, apiKey: { id, name }, before: null, after: JSON.parse(hashed) as AuditValues };
  last.number += 1;
  last.hash = chainHash({ ...draft, number: last.number }, last.hash, auditKey);
  return last.hash;
}

async function insertEntries(
  { db, dialect, auditKey }: Writing,
  spool: ImportSpoolFile,
  { entry, hashedAfter }: { entry: ImportEntry; hashedAfter: string },
): Promise<void> {
  const last = await lastEntry(db, auditKey);
  const [first, isHashed] = [last.number + 1, last.hash === hashedAfter];
  const { at, actor, action } = entry;
  const same = { at, actor_kind: actor.kind, actor_id: actor.id, actor_name: actor.name, action };
  let { number } = last;
  await forEachPage(spool.entries(), async (entries) => {
    const rows = entries.map((of): Row => {
      number += 1;
      last.hash = isHashed ? of.hash! : nextHash(last, entry, of, auditKey);
      const about = { key_id: of.id, key_name: of.name, before: null, after: of.kept, address: null };
      return { number, ...same, ...about, hash: storedHash(last.hash) };
    });
    await insertRows(db, dialect, 'audit_log', rows);
  });
  await setHead(db, { number, hash: last.hash }, first > 1 ? last : undefined);
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
