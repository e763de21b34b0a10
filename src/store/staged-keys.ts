import { randomUUID, type KeyObject } from 'node:crypto';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type AuditPosition, auditValuesOf, CHAIN_START, chainHash, requireAuditKey } from '../keys/audit/index.ts';
import type { StoredKey } from '../keys/key/index.ts';
import type { ProgressReport } from '../keys/basics/index.ts';
import { type BatchEntry, STAGED_KEYS, type StagedKeys, STAGING } from '../keys/transfer/index.ts';
import { findPosition, indexEntries, setHead } from './audit-log.ts';
import { type Connection, type DialectName, portOfStore } from './connection.ts';
import { missingStore } from './errors.ts';
import { insertRows, withoutTriggers, withPendingList } from './insert-rows.ts';
import { rowOf, storedHash, valuesText } from './rows.ts';
import { API_KEY_COLUMNS, type StagedKeyTable, type Tables } from './tables.ts';

/** How many keys are staged in one transaction, and how many are inserted by one statement. */
const PIECE_ROWS = 1000;
const STATEMENT_ROWS = 20_000;

/** Keeps keys apart until they are inserted together. */
export const staging = portOfStore({
  port: STAGING,
  read: ({ connection, auditKey }) => ({
    stage: (keys, entry, onProgress) => stageKeys(connection, { keys, entry, onProgress }, auditKey),
    clear: (batch) => clearStagedKeys(connection, batch),
  }),
  empty: (location) => {
    const missing = () => Promise.reject(missingStore(location));
    return { stage: missing, clear: missing };
  },
});

/** Inserts them. */
export const stagedKeys = portOfStore({
  port: STAGED_KEYS,
  read: () => undefined,
  write: ({ db, dialect, auditKey, keysChanged }) => ({
    insert(staged) {
      // No key that is remembered changes, but a look at the file from before the change must not be trusted after it.
      keysChanged([]);
      return insertStagedKeys(db, dialect, staged, auditKey);
    },
  }),
  empty: () => undefined,
});

async function stageKeys(
  connection: Connection,
  {
    keys,
    entry,
    onProgress,
  }: { keys: readonly StoredKey[]; entry: BatchEntry; onProgress: ProgressReport | undefined },
  auditKey: KeyObject | undefined,
): Promise<StagedKeys> {
  const batch = randomUUID();
  try {
    for (let start = 0; start < keys.length; start += PIECE_ROWS) {
      const rows = keys.slice(start, start + PIECE_ROWS).map((key, index) => toStagedRow(batch, start + index, key));
      await connection.write((db) => insertRows(db, connection.dialect, 'staged_keys', rows));
      await onProgress?.(start + rows.length, keys.length);
    }
    const head = await connection.run((db) => findPosition(db, 'audit_head'));
    return { batch, keys, entry, chain: chainOf(head, { keys, entry }, auditKey) };
  } catch (error) {
    await clearStagedKeys(connection, batch).catch(() => {});
    throw error;
  }
}

async function clearStagedKeys(connection: Connection, batch?: string): Promise<void> {
  for (;;) {
    const first = await connection.run((db) =>
      db
        .selectFrom('staged_keys')
        .select(['batch', 'position'])
        .$if(batch !== undefined, (query) => query.where('batch', '=', batch!))
        .orderBy('batch')
        .orderBy('position')
        .limit(1)
        .executeTakeFirst(),
    );
    if (!first) return;
    const end = Number(first.position) + PIECE_ROWS;
    await connection.write(
      (db) => db.deleteFrom('staged_keys').where('batch', '=', first.batch).where('position', '<', end).execute(),
      // What has filled the disk may be what is cleared.
      { revokes: true },
    );
  }
}

async function insertStagedKeys(
  db: Kysely<Tables>,
  dialect: DialectName,
  staged: StagedKeys,
  auditKey: KeyObject | undefined,
): Promise<boolean> {
  if (!(await areThere(db, staged))) return false;
  const head = await findPosition(db, 'audit_head');
  const isNext = staged.chain.previous === (head?.hash ?? CHAIN_START);
  const { hashes } = isNext ? staged.chain : chainOf(head, staged, auditKey);
  if (dialect === 'sqlite') await withoutTriggers(db, () => insertKeys(db, staged));
  else await withPendingList(db, () => insertKeys(db, staged));
  await insertEntries(db, dialect, staged, { after: head?.number ?? 0, hashes });
  await setHead(db, { number: (head?.number ?? 0) + hashes.length, hash: hashes.at(-1)! }, head);
  if (dialect === 'sqlite') while (await indexEntries(db));
  return true;
}

function toStagedRow(batch: string, position: number, key: StoredKey): StagedKeyTable & Record<string, never> {
  return { batch, position, after: valuesText(auditValuesOf(key), key.name), ...rowOf(key) } as never;
}

/** The hashes of the entries of staged keys, were they to follow this one. @throws KeysError STORE_AUDIT_KEY */
function chainOf(
  head: AuditPosition | undefined,
  { keys, entry }: Pick<StagedKeys, 'keys' | 'entry'>,
  auditKey: KeyObject | undefined,
): StagedKeys['chain'] {
  requireAuditKey(head, auditKey);
  let { number, hash } = head ?? { number: 0, hash: CHAIN_START };
  const previous = hash;
  const hashes = keys.map((key) => {
    number += 1;
    const { id, name } = key;
    const draft = { ...entry, apiKey: { id, name }, before: null, after: auditValuesOf(key) };
    hash = chainHash({ ...draft, number }, hash, auditKey);
    return hash;
  });
  return { previous, hashes };
}

async function areThere(db: Kysely<Tables>, { batch, keys }: StagedKeys): Promise<boolean> {
  const { count } = await db
    .selectFrom('staged_keys')
    .select((row) => row.fn.countAll().as('count'))
    .where('batch', '=', batch)
    .executeTakeFirstOrThrow();
  return Number(count) === keys.length;
}

async function insertKeys(db: Kysely<Tables>, { batch, keys }: StagedKeys): Promise<void> {
  const columns = sql.join(API_KEY_COLUMNS.map((column) => sql.ref(column)));
  for (let start = 0; start < keys.length; start += STATEMENT_ROWS)
    // In the order of the primary key, its index grows faster.
    await sql`insert into api_keys (${columns}) select ${columns} from staged_keys
      where ${isAmong(batch, start)} order by id`.execute(db);
}

async function insertEntries(
  db: Kysely<Tables>,
  dialect: DialectName,
  { batch, entry: { at, actor, action } }: StagedKeys,
  { after, hashes }: { after: number; hashes: readonly string[] },
): Promise<void> {
  for (let start = 0; start < hashes.length; start += STATEMENT_ROWS) {
    const json = JSON.stringify(hashes.slice(start, start + STATEMENT_ROWS).map(storedHash));
    const chain =
      dialect === 'sqlite'
        ? sql`(select key as place, value as hash from json_each(${json}))`
        : sql`(select place - 1 as place, hash
            from json_array_elements_text(${json}) with ordinality as element(hash, place))`;
    await sql`insert into audit_log
      (number, at, actor_kind, actor_id, actor_name, action, key_id, key_name, ${sql.ref('after')}, hash)
      select ${sql.lit(after + 1)} + position, ${sql.lit(at)}, ${actor.kind}, ${actor.id}, ${actor.name}, ${action},
        id, name, ${sql.ref('after')}, chain.hash
      from ${chain} as chain cross join staged_keys
      where ${isAmong(batch, start)} and position = ${sql.lit(start)} + chain.place
      order by position`.execute(db);
  }
}

function isAmong(batch: string, start: number): RawBuilder<unknown> {
  return sql`batch = ${batch} and position >= ${sql.lit(start)} and position < ${sql.lit(start + STATEMENT_ROWS)}`;
}
