import { type RawBuilder, sql } from 'kysely';
import { MAX_TOOLS, type UsedGrant } from '../../keys/key/index.ts';
import {
  chunksOf,
  idsAmong,
  jsonRowId,
  jsonRowNumber,
  jsonRows,
  jsonRowsOf,
  jsonRowText,
  portOfStore,
} from '../../store/index.ts';
import { USED_GRANTS } from './suggest.ts';

/** The grants that keys have used. */
export const usedGrants = portOfStore({
  port: USED_GRANTS,
  read: ({ run, connection: { dialect } }) => ({
    of: (ids) =>
      run(async (db) => {
        const found = new Map<string, Map<UsedGrant, number>>(ids.map((id) => [id, new Map()]));
        for (const chunk of chunksOf(idsAmong(dialect, ids))) {
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
      }),
  }),
  write: ({ db, dialect }) => ({
    async add(uses) {
      const grants = uses.flatMap(({ id, permissions, lastUsedAt }) =>
        permissions.map((permission) => [id, permission, lastUsedAt ?? 0]),
      );
      // The core has locked the totals of these keys in the same transaction, and made those of new ones.
      if (grants.length > 0)
        await sql`insert into used_grants (key_id, permission, last_used_at)
          select ${jsonRowId(dialect, 0)}, ${jsonRowText(1)}, ${jsonRowNumber(2)} from ${jsonRows(dialect, grants)}
          where exists (select 1 from key_uses where key_id = ${jsonRowId(dialect, 0)})
            and (not ${isName(jsonRowText(1))} or (select count(*) from used_grants as other
              where other.key_id = ${jsonRowId(dialect, 0)} and ${isName(sql.ref('other.permission'))}
                and other.permission <> ${jsonRowText(1)}) < ${sql.lit(MAX_TOOLS)})
          on conflict (key_id, permission) do update set last_used_at = excluded.last_used_at
            where excluded.last_used_at > used_grants.last_used_at
              and excluded.permission not like 'route:%'`.execute(db);
    },
    async forget(ids) {
      await sql`delete from used_grants
        where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, ids)})
          and not exists (select 1 from api_keys where id = key_id)`.execute(db);
    },
  }),
});

/** True for a used tool or route. Only the first use of a route is kept, as there are many. */
function isName(used: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(${used} like 'tool:%' or ${used} like 'route:%')`;
}
