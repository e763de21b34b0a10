import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { KeyUsage, UsageTotals, UsedGrant } from '../keys/key/usage.ts';
import { chunksOf } from './chunks.ts';
import type { DialectName } from './connection.ts';
import { givenNumber, givenRowsOfKeys, givenText } from './given-rows.ts';
import { addHours } from './period-usage.ts';
import { numberOf } from './rows.ts';
import type { Tables } from './tables.ts';

/** The totals of keys, by id; keys that were never used are left out. */
export async function findUsage(db: Kysely<Tables>, ids: readonly string[]): Promise<Map<string, UsageTotals>> {
  const found = new Map<string, UsageTotals>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db.selectFrom('key_usage').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: id, uses, last_used_at: last, previous_last_used_at: previous } of rows)
      found.set(id, { uses: Number(uses), lastUsedAt: numberOf(last), previousLastUsedAt: numberOf(previous) });
  }
  return found;
}

/** The permissions that keys have used and the roles that they granted, by id, each with the time of its last use. */
export async function findUsedPermissions(
  db: Kysely<Tables>,
  ids: readonly string[],
): Promise<Map<string, Map<UsedGrant, number>>> {
  const found = new Map<string, Map<UsedGrant, number>>(ids.map((id) => [id, new Map()]));
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('used_grants')
      .selectAll()
      .where('key_id', 'in', chunk)
      .orderBy('key_id')
      .orderBy('permission')
      .execute();
    for (const { key_id: id, permission, last_used_at: at } of rows)
      found.get(id)?.set(permission as UsedGrant, Number(at));
  }
  return found;
}

/** Adds to the totals of keys, inside a write transaction. Keys that no longer exist are ignored. */
export async function addUsage(db: Kysely<Tables>, dialect: DialectName, usage: readonly KeyUsage[]): Promise<void> {
  const totals = usage
    .filter(({ lastUsedAt }) => lastUsedAt !== null)
    .map(({ id, uses, lastUsedAt, previousLastUsedAt }) => [id, uses, lastUsedAt, previousLastUsedAt]);
  if (totals.length > 0)
    await sql`insert into key_usage (key_id, uses, last_used_at, previous_last_used_at)
      select ${givenText(0)}, ${givenNumber(1)}, ${givenNumber(2)}, ${givenNumber(3)}
      from ${givenRowsOfKeys(dialect, totals)}
      on conflict (key_id) do update set uses = key_usage.uses + excluded.uses,
        last_used_at = ${latest('last_used_at')}, previous_last_used_at = ${latest('previous_last_used_at')}`.execute(
      db,
    );
  await addHours(db, dialect, usage);

  const grants = usage.flatMap(({ id, lastUsedAt, permissions }) =>
    permissions.map((permission) => [id, permission, lastUsedAt ?? 0]),
  );
  if (grants.length > 0)
    await sql`insert into used_grants (key_id, permission, last_used_at)
      select ${givenText(0)}, ${givenText(1)}, ${givenNumber(2)} from ${givenRowsOfKeys(dialect, grants)}
      on conflict (key_id, permission) do update set last_used_at = excluded.last_used_at
        where excluded.last_used_at > used_grants.last_used_at`.execute(db);
}

function latest(column: 'last_used_at' | 'previous_last_used_at'): RawBuilder<number> {
  const [added, stored] = [sql.ref(`excluded.${column}`), sql.ref(`key_usage.${column}`)];
  return sql`case when ${added} is null or ${stored} > ${added} then ${stored} else ${added} end`;
}
