import { type Kysely, sql } from 'kysely';
import { KeysError } from '../../keys/errors.ts';
import type { Tables } from '../tables.ts';

/** Which objects of the database to check. */
export interface OwnershipCheck {
  /** The URL without its password. */
  location: string;
  tables: readonly string[];
  /** A role that may own them, too. */
  owner: string | undefined;
}

/**
 * Refuses tables that another role could have planted: it would read digests, and change keys. Superusers and the owner
 * of the database can do so anyway. To be called before anything is read from the tables: a view would run functions.
 * @throws KeysError STORE_FOREIGN
 */
export async function requireOwnTables(
  db: Kysely<Tables>,
  { location, tables, owner = '' }: OwnershipCheck,
): Promise<void> {
  // A superuser has the rights of every role, so that does not tell whose objects it means.
  const trusted = sql`select oid from pg_roles where rolsuper or rolname in (current_user, ${owner}::name)
    or oid = (select datdba from pg_database where datname = current_database())
    or pg_has_role(oid, 'usage') and not (select rolsuper from pg_roles where rolname = current_user)`;
  const { rows: schemas } = await sql<{ name: string; grantee: string }>`select nspname::text as name,
      case when grantee = 0 then 'public' else pg_get_userbyid(grantee)::text end as grantee
    from pg_namespace, aclexplode(nspacl)
    where nspname = any(current_schemas(false)) and privilege_type = 'CREATE'
      and grantee not in (${trusted}) and grantee <> nspowner`.execute(db);
  const [schema] = schemas;
  if (schema) {
    const { name, grantee } = schema;
    throw new KeysError(
      'STORE_FOREIGN',
      `The key store ${location} is not safe: ${grantee === 'public' ? 'everybody' : `the role "${grantee}"`} may ` +
        `create functions in the schema "${name}", which its queries would call. ` +
        `Run "revoke create on schema ${name} from ${grantee}", or use another schema: …?schema=svc_api.`,
    );
  }
  const { rows: objects } = await sql<{ kind: string; name: string; owner: string }>`
    with trusted(oid) as (
      ${trusted}
    ), ours(oid) as (
      select to_regclass(name)::oid from unnest(${tables}::text[]) as given(name)
    )
    select case when relkind in ('r', 'p') then 'table' else 'view' end as kind, relname::text as name,
        pg_get_userbyid(relowner)::text as owner
      from pg_class join ours using (oid)
      where relkind not in ('r', 'p') or relowner not in (select oid from trusted)
    union all
    select 'function', proname::text, pg_get_userbyid(proowner)::text
      from pg_trigger join pg_proc on pg_proc.oid = tgfoid
      where tgrelid in (select oid from ours) and not tgisinternal and proowner not in (select oid from trusted)
    limit 1`.execute(db);
  const [object] = objects;
  if (!object) return;
  throw new KeysError(
    'STORE_FOREIGN',
    `The key store ${location} is not safe: its ${object.kind} "${object.name}" belongs to the role ` +
      `"${object.owner}", which can read and change keys. If that is intended, add the parameter ` +
      `owner=${object.owner} to its address; otherwise use another schema: …?schema=svc_api.`,
  );
}

/** Refuses a connection pooler that ignores which schema is asked for. @throws KeysError STORE_UNAVAILABLE */
export async function requireSearchPath(db: Kysely<Tables>, location: string, schema: string): Promise<void> {
  const { rows } = await sql<{ path: string }>`select current_setting('search_path') as path`.execute(db);
  if (rows[0]!.path.split(',')[0] === schema) return;
  throw new KeysError(
    'STORE_UNAVAILABLE',
    `The key store ${location} cannot be opened: a connection pooler ignores "schema". Leave it out, and set ` +
      `the search path of its user: alter role … set search_path = ${schema}, pg_temp.`,
  );
}
