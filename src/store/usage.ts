import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Permission } from '../keys/permissions/catalog.ts';
import type { KeyUsage, UsageTotals } from '../keys/key/usage.ts';
import { chunksOf } from './chunks.ts';
import type { DialectName } from './connection.ts';
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

/** The permissions that keys have used, by id, each with the time of its last use. */
export async function findUsedPermissions(
  db: Kysely<Tables>,
  ids: readonly string[],
): Promise<Map<string, Map<Permission, number>>> {
  const found = new Map<string, Map<Permission, number>>(ids.map((id) => [id, new Map()]));
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('used_grants')
      .selectAll()
      .where('key_id', 'in', chunk)
      .orderBy('key_id')
      .orderBy('permission')
      .execute();
    for (const { key_id: id, permission, last_used_at: at } of rows)
      found.get(id)?.set(permission as Permission, Number(at));
  }
  return found;
}

/** Adds to the totals of keys, inside a write transaction. Keys that no longer exist are ignored. */
export async function addUsage(db: Kysely<Tables>, dialect: DialectName, usage: readonly KeyUsage[]): Promise<void> {
  const totals = usage.map(({ id, uses, lastUsedAt, previousLastUsedAt }) => [
    id,
    uses,
    lastUsedAt,
    previousLastUsedAt,
  ]);
  if (totals.length > 0)
    await sql`insert into key_usage (key_id, uses, last_used_at, previous_last_used_at)
      select ${text(0)}, ${number(1)}, ${number(2)}, ${number(3)} from ${existing(dialect, totals)}
      on conflict (key_id) do update set uses = key_usage.uses + excluded.uses,
        last_used_at = ${latest('last_used_at')}, previous_last_used_at = ${latest('previous_last_used_at')}`.execute(
      db,
    );

  const grants = usage.flatMap(({ id, lastUsedAt, permissions }) =>
    permissions.map((permission) => [id, permission, lastUsedAt ?? 0]),
  );
  if (grants.length > 0)
    await sql`insert into used_grants (key_id, permission, last_used_at)
      select ${text(0)}, ${text(1)}, ${number(2)} from ${existing(dialect, grants)}
      on conflict (key_id, permission) do update set last_used_at = excluded.last_used_at
        where excluded.last_used_at > used_grants.last_used_at`.execute(db);
}

/**
 * The rows whose first value is the id of a key, as one parameter: a statement with one for each value takes as long to
 * make as to run.
 */
function existing(dialect: DialectName, rows: readonly unknown[][]): RawBuilder<unknown> {
  const json = JSON.stringify(rows);
  const given =
    dialect === 'sqlite' ? sql`json_each(${json})` : sql`jsonb_array_elements(${json}::jsonb) as given(value)`;
  return sql`${given} where exists (select 1 from api_keys where id = ${text(0)})`;
}

function text(index: number): RawBuilder<string> {
  return sql`(value ->> ${sql.lit(index)})`;
}

function number(index: number): RawBuilder<number> {
  return sql`cast(value ->> ${sql.lit(index)} as bigint)`;
}

function latest(column: 'last_used_at' | 'previous_last_used_at'): RawBuilder<number> {
  const [added, stored] = [sql.ref(`excluded.${column}`), sql.ref(`key_usage.${column}`)];
  return sql`case when ${added} is null or ${stored} > ${added} then ${stored} else ${added} end`;
}
