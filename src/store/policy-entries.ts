import type { Kysely } from 'kysely';
import { type AuditAction, type AuditActor, POLICY_ENTRIES } from '../keys/audit/index.ts';
import type { ApiKey } from '../keys/key/index.ts';
import type { DialectName } from './connection.ts';
import { portOfStore } from './port-of-store.ts';
import { chunksOf, isAbout } from './rows.ts';
import type { Tables } from './tables.ts';

/** The keys that the policy has disabled, as the audit log has it. */
export const policyEntries = portOfStore({
  port: POLICY_ENTRIES,
  read: ({ run, connection: { dialect } }) => ({
    disabled: (keys) => run((db) => findDisabledByPolicy(db, dialect, keys)),
  }),
});

async function findDisabledByPolicy(
  db: Kysely<Tables>,
  dialect: DialectName,
  keys: readonly Pick<ApiKey, 'id' | 'disabledAt'>[],
): Promise<Set<string>> {
  const disabled = new Map(keys.flatMap(({ id, disabledAt }) => (disabledAt === null ? [] : [[id, disabledAt]])));
  const found = new Set<string>();
  for (const chunk of chunksOf([...disabled.keys()])) {
    const rows = await db
      .selectFrom('audit_log')
      .select(['key_id', 'at'])
      .where(isAbout(dialect, chunk))
      .where('action', '=', 'DISABLE' satisfies AuditAction)
      .where('actor_kind', '=', 'POLICY' satisfies AuditActor['kind'])
      .execute();
    for (const { key_id: id, at } of rows) if (disabled.get(id!) === Number(at)) found.add(id!);
  }
  return found;
}
