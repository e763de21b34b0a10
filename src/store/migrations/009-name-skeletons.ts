import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import { nameSkeletonOf } from '../rows.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

const PAGE_ROWS = 500;

/** What names look like, so that a new name is compared with all others without reading them. */
export async function addNameSkeletons(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  await db.schema.alterTable('api_keys').addColumn('name_skeleton', textType(dialect)).execute();
  for (let last = ''; ;) {
    const keys = await db
      .selectFrom('api_keys')
      .select(['id', 'name'])
      .where('id', '>', last)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute();
    if (keys.length === 0) break;
    const values = keys.map(({ id, name }) => sql`(${id}, ${nameSkeletonOf(name)})`);
    await sql`with named(id, skeleton) as (values ${sql.join(values)})
      update api_keys set name_skeleton = named.skeleton from named where named.id = api_keys.id`.execute(db);
    last = keys.at(-1)!.id;
  }
  await db.schema.createIndex('api_keys_by_name_skeleton').on('api_keys').column('name_skeleton').execute();
}
