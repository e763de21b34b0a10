import type { KeyObject } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { ApiKey, StoredKey } from '../keys/key/api-key.ts';
import type { AuditQuery } from '../keys/audit/audit-entry.ts';
import type { Port } from '../keys/port.ts';
import type { KeyFinder, KeyRepository, KeyWriter } from '../keys/repository.ts';
import { yielding, mapYielding } from '../keys/yielding.ts';
import { updateRows } from './insert-rows.ts';
import {
  addRotatedSecrets,
  countLive,
  creatorsFirst,
  findByDigest,
  findFamily,
  forgetRotatedSecrets,
  selectAncestors,
  selectByDigests,
} from './families.ts';
import { appendToAuditLog, auditReaderOf, pruneAuditLog } from './audit-log.ts';
import { chunksOf } from './chunks.ts';
import { countKeys, listKeys } from './list-keys.ts';
import type { Connection, DialectName, Reading, Writing } from './connection.ts';
import { latestTime, rememberTime } from './clock.ts';
import { portIn, PORTS } from './ports.ts';
import { apiKeyOf, changedColumns, computeChecksum, computeNameSkeleton, rowOf, readStoredKey } from './rows.ts';
import { firstFound, hasSearchIndex } from './searches.ts';
import { auditSearchesFor } from './search-audit-log.ts';
import { selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

const COLUMNS = { id: 'id', name: 'name', publicId: 'public_id' } as const;

/** The repository over an open database, with the key of its audit log, if it has one. */
export function createKeyRepository(connection: Connection, auditKey?: KeyObject): KeyRepository {
  const { dialect } = connection;
  const run: Connection['run'] = (work) => connection.run(work);
  const reader = auditReaderOf(run, auditKey);
  const readers = new Map<Port<unknown>, unknown>();
  return {
    kind: dialect,
    port: <Reader>(wanted: Port<Reader, Reader>) => {
      if (!readers.has(wanted)) readers.set(wanted, portIn(wanted).read({ connection, run, auditKey }));
      return readers.get(wanted) as Reader;
    },
    findById: (id) => run((db) => createFinder(db, apiKeyOf).findById(id)),
    findByName: (name) => run((db) => createFinder(db, apiKeyOf).findByName(name)),
    findBy: (field, values) => run((db) => createFinder(db, apiKeyOf).findBy(field, values)),
    findByDigests: (digests) => run((db) => createFinder(db, apiKeyOf).findByDigests(digests)),
    findConfusable: (names) => run((db) => createFinder(db, apiKeyOf).findConfusable(names)),
    countLive: (creator, now) => run((db) => createFinder(db, apiKeyOf).countLive(creator, now)),
    findManaged: () => run((db) => createFinder(db, apiKeyOf).findManaged()),
    findAncestors: (ids) => run((db) => createFinder(db, apiKeyOf).findAncestors(ids)),
    findWithDescendants: (ids) => run((db) => createFinder(db, apiKeyOf).findWithDescendants(ids)),
    revision: () => connection.revision(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (report) => connection.watchHearing(report),
    latestTime: () => run(latestTime),
    auditLog: {
      ...reader,
      find: (query) =>
        dialect === 'sqlite' && isSearch(query) ? firstFound(auditSearchesFor(connection, query)) : reader.find(query),
    },

    findByDigest: (digest) => findByDigest(connection, digest),

    list: async (query) => (await listKeys(connection, query)).map(apiKeyOf),

    count: (now) => countKeys(connection, now),

    listCreatedBy: (creators, page) =>
      run(async (db) => {
        const rows = await selectKeys(db, page, (row) =>
          creators ? row('created_by', 'in', creators) : row('created_by', 'is', null),
        )
          .selectAll()
          .limit(page.limit)
          .execute();
        return rows.map(readStoredKey);
      }),

    write: (work, options) =>
      connection.write(
        (db, keysChanged) => work(createWriter(connection, { db, dialect, auditKey, keysChanged })),
        options,
      ),

    hasSearchIndex: () => hasSearchIndex(connection),
    check: () => run(async (db) => void (await db.selectFrom('api_keys').select('id').limit(1).execute())),
  };
}

function createFinder<Key extends ApiKey>(
  db: Kysely<Tables>,
  keyOf: (row: ApiKeyTable) => Key,
): Omit<KeyFinder<Key>, 'port'> {
  return {
    async findById(id) {
      const row = await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
      return row && keyOf(row);
    },

    async findByName(name) {
      const row = await db.selectFrom('api_keys').selectAll().where('name', '=', name).executeTakeFirst();
      return row && keyOf(row);
    },

    async findBy(field, values) {
      const rows = [];
      for (const chunk of chunksOf(values))
        rows.push(...(await db.selectFrom('api_keys').selectAll().where(COLUMNS[field], 'in', chunk).execute()));
      return mapYielding(rows, keyOf);
    },

    async findByDigests(digests) {
      const rows = [];
      for (const chunk of chunksOf(digests)) rows.push(...(await selectByDigests(db, chunk)));
      return rows.map(readStoredKey);
    },

    async findConfusable(names) {
      const rows = [];
      for (const chunk of chunksOf([...new Set(await mapYielding(names, computeNameSkeleton))]))
        rows.push(...(await db.selectFrom('api_keys').selectAll().where('name_skeleton', 'in', chunk).execute()));
      return mapYielding(rows, keyOf);
    },

    countLive: (creator, now) => countLive(db, creator, now),

    async findManaged() {
      const rows = await db.selectFrom('api_keys').selectAll().where('managed', '=', 1).execute();
      return rows.map(keyOf);
    },

    async findAncestors(ids) {
      const found = new Map<string, Key>();
      for (const chunk of chunksOf(ids)) {
        const rows = await selectAncestors(db, chunk).selectAll('api_keys').execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return found;
    },

    async findWithDescendants(ids) {
      const found = new Map<string, Key>();
      for (const chunk of chunksOf(await findFamily(db, ids))) {
        const rows = await db.selectFrom('api_keys').selectAll().where('id', 'in', chunk).execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return creatorsFirst(found);
    },
  };
}

function createWriter(connection: Connection, writing: Writing): KeyWriter {
  const { db, dialect, auditKey, keysChanged } = writing;
  const reading: Reading = { connection, run: (work) => work(db), auditKey };
  return {
    ...createFinder(db, readStoredKey),
    port: <Writer>(wanted: Port<unknown, Writer>) => {
      const { read, write } = portIn(wanted);
      return { ...(read(reading) as object), ...write?.(writing) } as Writer;
    },

    async insert(keys) {
      // No key that is remembered changes, but a look at the file from before the change must not be trusted after it.
      keysChanged([]);
      for (const chunk of chunksOf(keys))
        await db
          .insertInto('api_keys')
          .values(await mapYielding(chunk, rowOf))
          .execute();
    },

    async update(changes) {
      keysChanged(changes.map(({ before }) => before.id));
      for (const chunk of chunksOf(changes)) await updateKeys(db, dialect, chunk);
    },

    async replace(keys) {
      const ids = keys.map(({ id }) => id);
      keysChanged(ids);
      // No name is an id: so each finds its own free, and a checksum of another row is not taken for its own.
      for (const chunk of chunksOf(ids))
        await db
          .updateTable('api_keys')
          .set((row) => ({ name: row.ref('id'), checksum: '' }))
          .where('id', 'in', chunk)
          .execute();
      for (const key of keys) await db.updateTable('api_keys').set(rowOf(key)).where('id', '=', key.id).execute();
    },

    async delete(ids) {
      keysChanged(ids);
      for (const chunk of chunksOf(ids)) await db.deleteFrom('api_keys').where('id', 'in', chunk).execute();
      for (const { deleted } of PORTS) await deleted?.(writing, ids);
    },

    rememberTime: (now) => rememberTime(db, now),
    addRotatedSecrets: (secrets) => addRotatedSecrets(db, secrets),
    forgetRotatedSecrets: (before) => forgetRotatedSecrets(db, before),
    auditLog: auditReaderOf((work) => work(db), auditKey),
    appendToAuditLog: (entries) => appendToAuditLog(db, entries, auditKey),
    pruneAuditLog: (last) => pruneAuditLog(db, last),
  };
}

/** Changes the columns of keys that differ, in a statement for all whose same columns do. */
async function updateKeys(
  db: Kysely<Tables>,
  dialect: DialectName,
  changes: readonly { before: StoredKey; after: StoredKey }[],
): Promise<void> {
  const changed = new Map<string, Partial<ApiKeyTable>>();
  for await (const { before, after } of yielding(changes)) {
    // A database user may have the right to change some columns only.
    const values = changedColumns(before, after);
    if (Object.keys(values).length > 0) changed.set(before.id, values);
  }
  if (changed.size === 0) return;
  // Another program may have written the other columns in another form.
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('id', 'in', [...changed.keys()])
    .execute();
  const found = new Map(rows.map((row) => [row.id, row]));
  const groups = Map.groupBy(changed, ([, values]) => Object.keys(values).join());
  for (const group of groups.values())
    await updateRows(
      db,
      dialect,
      await mapYielding(group, ([id, values]) => {
        const row = found.get(id);
        return { ...values, checksum: row && !apiKeyOf(row).damaged ? computeChecksum({ ...row, ...values }) : '', id };
      }),
    );
}

/** Whether a query may have to read the whole log. */
function isSearch({ owner, apiKey: key, actor, action, since, until }: AuditQuery): boolean {
  return (owner ?? key ?? actor ?? action ?? since ?? until) !== undefined || owner === null;
}
