import type { KeyObject } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ExpressionBuilder, type Kysely, sql } from 'kysely';
import type { AuditQuery } from '../keys/audit/index.ts';
import { isKeysError, mapYielding, type Port, yielding } from '../keys/basics/index.ts';
import type { ApiKey, StoredKey } from '../keys/key/index.ts';
import type { KeyFinder, KeyRepository, KeyWriter } from '../keys/repository/index.ts';
import {
  appendToAuditLog,
  auditReaderOf,
  indexEntries,
  removePruned,
  startAuditLogAfter,
  searchEntries,
} from './audit-log.ts';
import { clockOf, type StoreClock } from './limit-store.ts';
import type { Connection, DialectName } from './connection.ts';
import type { AnyPortOfStore, Reading, Writing } from './port-of-store.ts';
import { insertLabels, replaceLabels, updateRows } from './insert-rows.ts';
import { portIn, PORTS } from './ports.ts';
import {
  apiKeyOf,
  changedColumns,
  computeChecksum,
  chunksOf,
  computeNameSkeleton,
  hasHashed,
  idsAmong,
  isId,
  labelledValues,
  rowOf,
  readStoredKey,
} from './rows.ts';
import { countKeys, findKeys } from './search-keys.ts';
import {
  addRotatedSecrets,
  countLive,
  creatorsFirst,
  findByDigest,
  findFamily,
  forgetRotatedSecrets,
  selectAncestors,
  selectByDigests,
  selectKeys,
  pagesOfKeys,
} from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/**
 * The repository over an open database.
 * @param auditKey the key of its audit log, if it has one
 * @param ofFeatures the ports of features
 * @param clock that of leases: see `createLimitStore`
 */
export function createKeyRepository(
  connection: Connection,
  auditKey?: KeyObject,
  ofFeatures: readonly AnyPortOfStore[] = [],
  clock: StoreClock = clockOf(connection.dialect),
): KeyRepository {
  const ports = [...PORTS, ...ofFeatures];
  const { dialect } = connection;
  const run: Connection['run'] = (work) => connection.run(work);
  const reader = auditReaderOf(run, dialect, auditKey);
  const readers = new Map<Port<unknown>, unknown>();
  const writerIn = (db: Kysely<Tables>, keysChanged: Writing['keysChanged']) =>
    createWriter(connection, { db, dialect, auditKey, keysChanged }, ports, clock);
  return {
    kind: dialect,
    port: <Reader>(wanted: Port<Reader, Reader>) => {
      if (!readers.has(wanted)) readers.set(wanted, portIn(ports, wanted).read({ connection, run, auditKey, clock }));
      return readers.get(wanted) as Reader;
    },
    findById: (id) => run((db) => createFinder(db, dialect, apiKeyOf).findById(id)),
    findByName: (name) => run((db) => createFinder(db, dialect, apiKeyOf).findByName(name)),
    findBy: (field, values) => run((db) => createFinder(db, dialect, apiKeyOf).findBy(field, values)),
    findByDigests: (digests) => run((db) => createFinder(db, dialect, apiKeyOf).findByDigests(digests)),
    findConfusable: (names) => run((db) => createFinder(db, dialect, apiKeyOf).findConfusable(names)),
    countLive: (creator, now) => run((db) => createFinder(db, dialect, apiKeyOf).countLive(creator, now)),
    findManaged: () => run((db) => createFinder(db, dialect, apiKeyOf).findManaged()),
    findAncestors: (ids) => run((db) => createFinder(db, dialect, apiKeyOf).findAncestors(ids)),
    findWithDescendants: (ids) => run((db) => createFinder(db, dialect, apiKeyOf).findWithDescendants(ids)),
    revision: () => connection.revision(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (report) => connection.watchHearing(report),
    follow: (follower) => connection.follow!(follower),
    auditLog: {
      ...reader,
      find: (query) =>
        dialect === 'sqlite' && isSearch(query) ? searchEntries(connection, query) : reader.find(query),
    },

    findByDigest: (digest) => findByDigest(connection, digest),

    async *pages(limit) {
      for await (const rows of pagesOfKeys(connection, limit)) yield rows.map(apiKeyOf);
    },

    list: async (query) => (await findKeys(connection, query)).map(apiKeyOf),

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

    write: (work, { revokes = false, counts = false } = {}) =>
      connection.write(
        async (db, keysChanged) => {
          const result = await work(writerIn(db, keysChanged)).catch((error: unknown) => {
            // A step of a plugin names itself, also where the database fails, which can be tried again.
            const isOfPlugin = isKeysError(error) && error.code === 'FEATURE_FAILED';
            throw isOfPlugin && connection.isFailure(error.cause) ? error.cause : error;
          });
          if (dialect === 'sqlite' && !revokes) await indexEntries(db);
          return result;
        },
        { revokes, counts },
      ),

    async check() {
      await run((db) => db.selectFrom('api_keys').select('id').limit(1).execute());
      await connection.checkWhole?.();
    },
  };
}

function createFinder<Key extends ApiKey>(
  db: Kysely<Tables>,
  dialect: DialectName,
  keyOf: (row: ApiKeyTable) => Key,
): Omit<KeyFinder<Key>, 'port'> {
  return {
    async findById(id) {
      if (!isId(dialect, id)) return undefined;
      const row = await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
      return row && keyOf(row);
    },

    async findByName(name) {
      const row = await db.selectFrom('api_keys').selectAll().where('name', '=', name).executeTakeFirst();
      return row && keyOf(row);
    },

    async findBy(field, values) {
      const rows = [];
      for (const chunk of chunksOf(field === 'id' ? idsAmong(dialect, values) : values)) {
        const isOne =
          field === 'publicId'
            ? () => hasHashed(dialect, 'public_id', chunk)
            : (row: ExpressionBuilder<Tables, 'api_keys'>) => row(field, 'in', chunk);
        rows.push(...(await db.selectFrom('api_keys').selectAll().where(isOne).execute()));
      }
      return mapYielding(rows, keyOf);
    },

    async findByDigests(digests) {
      const rows = [];
      for (const chunk of chunksOf(digests)) rows.push(...(await selectByDigests(db, dialect, chunk)));
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
      for (const chunk of chunksOf(idsAmong(dialect, ids))) {
        const rows = await selectAncestors(db, chunk).selectAll('api_keys').execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return found;
    },

    async findWithDescendants(ids) {
      const found = new Map<string, Key>();
      for (const chunk of chunksOf(await findFamily(db, idsAmong(dialect, ids)))) {
        const rows = await db.selectFrom('api_keys').selectAll().where('id', 'in', chunk).execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return creatorsFirst(found);
    },
  };
}

function createWriter(
  connection: Connection,
  writing: Writing,
  ports: readonly AnyPortOfStore[],
  clock: StoreClock,
): KeyWriter {
  const { db, dialect, auditKey, keysChanged } = writing;
  const reading: Reading = { connection, run: (work) => work(db), auditKey, clock };
  return {
    ...createFinder(db, dialect, readStoredKey),
    port: <Writer>(wanted: Port<unknown, Writer>) => {
      const { read, write } = portIn(ports, wanted);
      return { ...(read(reading) as object), ...write?.(writing) } as Writer;
    },

    async insert(keys) {
      // No remembered key changes, but a check of the file from before this change must not be trusted after it.
      keysChanged([]);
      for (const chunk of chunksOf(keys))
        await db
          .insertInto('api_keys')
          .values(await mapYielding(chunk, rowOf))
          .execute();
      await insertLabels(db, dialect, keys);
    },

    async update(changes) {
      const ids = changes.map(({ before }) => before.id);
      keysChanged(ids);
      for (const chunk of chunksOf(changes)) await updateKeys(db, dialect, chunk);
      const isLabelled = ({ before, after }: (typeof changes)[number]) =>
        !isDeepStrictEqual(labelledValues(before), labelledValues(after));
      await replaceLabels(
        db,
        dialect,
        changes.filter(isLabelled).map(({ after }) => after),
      );
    },

    async replace(changes) {
      const keys = changes.map(({ after }) => after);
      const ids = keys.map(({ id }) => id);
      keysChanged(ids);
      // No name equals an id, so each key finds its own name free, and no row passes with another row's checksum.
      for (const chunk of chunksOf(ids))
        await db
          .updateTable('api_keys')
          .set((row) => ({ name: sql<string>`cast(${row.ref('id')} as text)`, checksum: '' }))
          .where('id', 'in', chunk)
          .execute();
      for (const key of keys) await db.updateTable('api_keys').set(rowOf(key)).where('id', '=', key.id).execute();
      const haveOthers = ({ before, after }: (typeof changes)[number]) =>
        !isDeepStrictEqual(before.unknownFields, after.unknownFields);
      const others = changes.filter(haveOthers).map(({ after }) => after.id);
      // Old labels must not find a key. Only versions that know a field make its labels.
      for (const chunk of chunksOf(others)) await db.deleteFrom('key_labels').where('key_id', 'in', chunk).execute();
      await replaceLabels(db, dialect, keys);
    },

    async delete(ids) {
      keysChanged(ids);
      for (const chunk of chunksOf(ids)) await db.deleteFrom('api_keys').where('id', 'in', chunk).execute();
    },

    addRotatedSecrets: (secrets) => addRotatedSecrets(db, secrets),
    async forgetBefore(before, limit) {
      let forgotten = await forgetRotatedSecrets(db, before, limit);
      for (const { forgetBefore } of ports) forgotten += (await forgetBefore?.(writing, before, limit)) ?? 0;
      return forgotten;
    },
    auditLog: auditReaderOf((work) => work(db), dialect, auditKey),
    appendToAuditLog: (entries) => appendToAuditLog(db, dialect, entries, auditKey),
    startAuditLogAfter: (last) => startAuditLogAfter(db, last),
    removePruned: (limit) => removePruned(db, dialect, limit),
  };
}

/** Writes the columns of keys that differ, with one statement for all keys that differ in the same columns. */
async function updateKeys(
  db: Kysely<Tables>,
  dialect: DialectName,
  changes: readonly { before: StoredKey; after: StoredKey }[],
): Promise<void> {
  const changed = new Map<string, Partial<ApiKeyTable>>();
  for await (const { before, after } of yielding(changes)) {
    // A database user can have the right to change some columns only.
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

/** True if a query may have to read the whole log. */
function isSearch({ owner, apiKey: key, actor, action, outcome, since, until }: AuditQuery): boolean {
  return (owner ?? key ?? actor ?? action ?? outcome ?? since ?? until) !== undefined || owner === null;
}
