import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/** Notifies listeners of every change of a key, in its transaction, whoever makes it. See `PostgresListener`. */
export async function announceChanges(db: Kysely<Tables>): Promise<void> {
  await sql`create function announce_api_keys() returns trigger language plpgsql as $$
    begin perform pg_notify('svc_api_keys', tg_table_schema); return null; end $$`.execute(db);
  await sql`create trigger api_keys_announced after insert or update or delete or truncate on api_keys
    for each statement execute function announce_api_keys()`.execute(db);
}

/** Makes the audit log append-only. */
export async function forbidAuditChanges(db: Kysely<Tables>): Promise<void> {
  await sql`create function forbid_audit_changes() returns trigger language plpgsql as $$
    begin raise exception 'the audit log only grows'; end $$`.execute(db);
  await sql`create trigger audit_log_only_grows before update or delete or truncate on audit_log
    for each statement execute function forbid_audit_changes()`.execute(db);
}

/** Removes the checksum of a key that is changed without it. */
export async function removeChecksums(db: Kysely<Tables>): Promise<void> {
  await sql`create function remove_checksum() returns trigger language plpgsql as $$
    begin new.checksum := null; return new; end $$`.execute(db);
  await sql`create trigger api_keys_without_checksum before update on api_keys
    for each row when (new.checksum is not distinct from old.checksum) execute function remove_checksum()`.execute(db);
}

/** Keeps the end of a grace that has begun: a user who may set one cannot bring a previous secret back. */
export async function keepGraceEnds(db: Kysely<Tables>): Promise<void> {
  await sql`create function forbid_longer_grace() returns trigger language plpgsql as $$
    begin raise exception 'a grace that has begun only gets shorter'; end $$`.execute(db);
  await sql`create trigger api_keys_keep_grace_ends before update on api_keys for each row
    when (new.previous_digest = old.previous_digest and old.previous_ends_at is not null
      and (new.previous_ends_at is null or new.previous_ends_at > old.previous_ends_at))
    execute function forbid_longer_grace()`.execute(db);
}

/** Lets entries of the audit log be deleted that are no longer part of it: those up to the start of the log. */
export async function allowPruning(db: Kysely<Tables>): Promise<void> {
  await sql`drop trigger audit_log_only_grows on audit_log`.execute(db);
  await sql`create trigger audit_log_only_grows before update or truncate on audit_log
    for each statement execute function forbid_audit_changes()`.execute(db);
  await sql`create function forbid_audit_deletion() returns trigger language plpgsql set search_path from current as $$
    begin
      if old.number > coalesce((select number from audit_start), 0) then
        raise exception 'the audit log only grows';
      end if;
      return old;
    end $$`.execute(db);
  await sql`create trigger audit_log_keeps_entries before delete on audit_log
    for each row execute function forbid_audit_deletion()`.execute(db);
}

/**
 * Notifies listeners of the ids of keys that are changed or deleted, in that transaction, whoever does it. A
 * notification takes less than 8,000 bytes; one without ids means any key. See `PostgresListener`.
 */
export async function announceChangedKeys(db: Kysely<Tables>): Promise<void> {
  await sql`create function announce_changed_keys() returns trigger language plpgsql as $$
    begin
      perform pg_notify('svc_api_changed_keys', case when octet_length(payload) < 8000 then payload else any_key end)
        from (
          select json_build_object('schema', tg_table_schema)::text as any_key,
            json_build_object('schema', tg_table_schema, 'keys', json_agg(id))::text as payload
          from (select id, (row_number() over () - 1) / 100 as part from changed) as parts group by part
        ) as payloads;
      return null;
    end $$`.execute(db);
  for (const change of ['update', 'delete']) {
    await sql
      .raw(
        `create trigger api_keys_${change}_announced after ${change} on api_keys referencing old table as changed
          for each statement execute function announce_changed_keys()`,
      )
      .execute(db);
  }
  await sql`create function announce_truncated_keys() returns trigger language plpgsql as $$
    begin
      perform pg_notify('svc_api_changed_keys', json_build_object('schema', tg_table_schema)::text);
      return null;
    end $$`.execute(db);
  await sql`create trigger api_keys_truncate_announced after truncate on api_keys
    for each statement execute function announce_truncated_keys()`.execute(db);
}
