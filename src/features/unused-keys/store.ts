import { type Kysely, sql, type SqlBool } from 'kysely';
import type { AuditAction } from '../../keys/audit/index.ts';
import {
  chunksOf,
  type DialectName,
  findFamily,
  idStart,
  isAbout,
  portOfStore,
  type StoreOfFeature,
  type Tables,
} from '../../store/index.ts';
import { KEYS_IN_USE } from './unused-keys.ts';

/** Actions that restart the time a key may go unused. */
const BEGINNINGS: readonly AuditAction[] = [
  'CREATE',
  'IMPORT',
  'ENABLE',
  'ADOPT',
  'ROTATE',
  'ROTATE_ROLLBACK',
  'RESTORE',
];

/** Which keys are in use. */
const keysInUse = portOfStore({
  port: KEYS_IN_USE,
  read: ({ run, connection: { dialect } }) => ({
    find: (ids, since) => run((db) => findInUse(db, dialect, ids, since)),
  }),
});

/** Its part of a store, without tables of its own. */
export const unusedKeysStore: StoreOfFeature = { ports: [keysInUse] };

async function findInUse(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<Set<string>> {
  const inUse = await findUsed(db, dialect, ids, since);
  for (const id of ids) {
    if (inUse.has(id)) continue;
    // It keeps those alive that it has created.
    const family = await findFamily(db, [id]);
    for (const chunk of chunksOf(family.slice(1))) {
      if ((await findUsed(db, dialect, chunk, since)).size === 0) continue;
      inUse.add(id);
      break;
    }
  }
  return inUse;
}

/** Keys that were used, or restarted, since a time. */
async function findUsed(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<Set<string>> {
  const used = new Set<string>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('api_keys')
      .select('id')
      .where('id', 'in', chunk)
      .where((row) =>
        row.or([
          row('created_at', '>=', since),
          row.exists(
            row
              .selectFrom('key_uses')
              .select(sql`1`.as('one'))
              .whereRef('key_id', '=', 'api_keys.id')
              .where('last_used_at', '>=', since),
          ),
          row.exists(
            row
              .selectFrom('audit_log')
              .select(sql`1`.as('one'))
              .where(sql<SqlBool>`${idStart(dialect, 'audit_log.key_id')} = ${idStart(dialect, 'api_keys.id')}`)
              .whereRef('key_id', '=', 'api_keys.id')
              .where('at', '>=', since)
              .where('action', 'in', BEGINNINGS),
          ),
        ]),
      )
      .execute();
    for (const { id } of rows) used.add(id);
    const others = chunk.filter((id) => !used.has(id));
    for (const id of await findRevived(db, dialect, others, since)) used.add(id);
  }
  return used;
}

/** Keys that had expired and got a new expiry since a time. */
async function findRevived(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('audit_log')
    .select(['key_id', 'at', 'before'])
    .where(isAbout(dialect, ids))
    .where('at', '>=', since)
    .where('action', '=', 'UPDATE' satisfies AuditAction)
    .where('before', 'like', '%"expiresAt":%')
    .execute();
  return rows.flatMap(({ key_id: id, at, before }) => {
    const { expiresAt } = JSON.parse(before!) as { expiresAt?: string | null };
    // Moving a future expiry does not count, because it can happen again and again without looking at the key.
    return expiresAt && Date.parse(expiresAt) <= Number(at) ? [id!] : [];
  });
}
