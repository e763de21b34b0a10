import { type Kysely, sql } from 'kysely';
import { KeysError } from '../keys/basics/index.ts';
import type { ColumnTypes, DialectName, Tables } from './tables.ts';

/** The length of the key id prefix in the index of entries, which few ids share. */
export const ID_START = 7;

/**
 * The tables of the core in the first release. Their columns are explained in tables.ts; times are milliseconds since
 * 1970, and lists and objects are JSON texts.
 */
async function createSchema(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const isPostgres = dialect === 'postgres';
  const { text, keyId } = columnTypes(dialect);
  // Stored in the order of the primary key, so that writes in that order change few pages. PostgreSQL has no such
  // tables.
  const clustered = sql.raw(isPostgres ? '' : ' without rowid');

  // Keys, each with the digest of its secret. A key is deleted with the key that created it. During a rotation, the
  // previous secret still works.
  await sql`create table api_keys (
    id ${keyId} primary key,
    created_at bigint not null,
    created_by ${keyId} references api_keys (id) on delete cascade,
    expires_at bigint,
    disabled_at bigint,
    rotated_at bigint,
    rotation_grace bigint,
    previous_ends_at bigint,
    managed integer not null default 0,
    name ${text} not null unique,
    fields ${text},
    roles ${text} not null,
    permissions ${text} not null,
    public_id ${text} not null ${sql.raw(isPostgres ? '' : 'unique')},
    digest ${text} not null ${sql.raw(isPostgres ? '' : 'unique')},
    previous_digest ${text},
    previous_public_id ${text},
    short_text ${text} default '',
    long_text ${text},
    name_skeleton ${text},
    checksum ${text}
  )`.execute(db);
  // An index of hashes takes a third of the space, and collisions are filtered out: see `hasHashed`.
  if (isPostgres)
    for (const column of ['public_id', 'digest'])
      await sql`create unique index ${sql.id(`api_keys_${column}_key`)}
        on api_keys (hashtextextended(${sql.id(column)}, 0))`.execute(db);
  // The order of the list, with all columns for searches and filters, so that none has to read the long rows. The few
  // keys with a long search text have it in another column.
  await sql`create index api_keys_in_order
    on api_keys (created_at, id, created_by, expires_at, disabled_at, roles, short_text)`.execute(db);
  await sql`create index api_keys_by_creator on api_keys (created_by, created_at, id)
    where created_by is not null`.execute(db);
  await sql`create unique index api_keys_by_previous_digest on api_keys (previous_digest)
    where previous_digest is not null`.execute(db);
  await sql`create index api_keys_by_name_skeleton on api_keys (name_skeleton)`.execute(db);
  await sql`create index api_keys_by_expiry on api_keys (expires_at, id) where expires_at is not null`.execute(db);

  // Labels of keys, for filters. Keys with the same label are in the order of the list.
  await sql`create table key_labels (
    label ${text} not null,
    created_at bigint not null,
    key_id ${keyId} not null references api_keys (id) on delete cascade,
    constraint key_labels_in_order primary key (label, created_at, key_id)
  )${clustered}`.execute(db);
  await sql`create index key_labels_by_key on key_labels (key_id)`.execute(db);

  // The digests of former secrets. None is accepted, but their key is still known.
  await sql`create table rotated_secrets (
    digest ${text} primary key,
    public_id ${text} not null,
    key_id ${keyId} not null references api_keys (id) on delete cascade,
    rotated_at bigint not null
  )`.execute(db);
  await sql`create index rotated_secrets_by_key on rotated_secrets (key_id)`.execute(db);

  // Uses of keys. Separate from the keys and without references, so that recording use and changing keys do not wait for
  // each other. The use of deleted keys is removed later. PostgreSQL can update a row within its page, without touching
  // an index, if there is room.
  const room = isPostgres ? sql.raw(' with (fillfactor = 50)') : clustered;
  await sql`create table key_uses (
    key_id ${keyId} primary key not null,
    uses bigint not null,
    last_used_at bigint,
    previous_last_used_at bigint
  )${room}`.execute(db);

  // How much of each limit keys have used, and what processes have leased of it.
  await sql`create table limit_states (
    key_id ${keyId} not null references api_keys (id) on delete cascade,
    unit ${text} not null,
    count bigint not null,
    unused_at bigint not null,
    leases ${text} not null,
    constraint limit_states_key primary key (key_id, unit)
  )`.execute(db);

  // The audit log: a chain of entries that only grows, the number and hash of the newest one, and of the last pruned
  // one. Each filter has an index, so that a search does not read all entries; in SQLite only that of keys, as each
  // index costs a page per change: see `audit_terms`. Indexes are short, as every entry is in all of them.
  await sql`create table audit_log (
    number ${sql.raw(isPostgres ? 'bigint' : 'integer')} primary key,
    at bigint not null,
    actor_kind ${text} not null,
    actor_id ${keyId},
    actor_name ${text},
    action ${text} not null,
    key_id ${keyId},
    key_name ${text},
    before ${text},
    after ${text},
    address ${text},
    hash ${text} not null
  )`.execute(db);
  const isAboutOne = sql.raw(isPostgres ? '' : 'where key_id is not null');
  await sql`create index audit_log_by_key_id
    on audit_log (substr(${sql.raw(isPostgres ? 'key_id::text' : 'key_id')}, 1, ${sql.lit(ID_START)}))
    ${isAboutOne}`.execute(db);
  if (isPostgres) {
    // Only with an index of all entries does PostgreSQL know how many entries have which hash.
    await sql`create index audit_log_by_key_name on audit_log (hashtextextended(key_name, 0))`.execute(db);
    for (const column of ['actor_id', 'actor_name'])
      await sql`create index ${sql.id(`audit_log_by_${column}`)} on audit_log (${sql.id(column)})
        where ${sql.id(column)} is not null`.execute(db);
    await sql`create index audit_log_by_action on audit_log (action, number)`.execute(db);
    // Times are in the order of the entries, so the first and last one of many pages are enough.
    await sql`create index audit_log_by_at on audit_log using brin (at)`.execute(db);
  }
  // In SQLite, the newest entry is not a table, which would cost a page per change: see `key_changes`.
  for (const table of isPostgres ? ['audit_head', 'audit_start'] : ['audit_start'])
    await sql`create table ${sql.id(table)} (
      one integer primary key check (one = 1),
      number bigint not null,
      hash ${text} not null
    )`.execute(db);

  // Exchanged tokens and console forms by digest, and reports of use by name, for as long as they could be replayed.
  await sql`create table used_tokens (
    digest ${text} primary key,
    ends_at bigint not null
  )`.execute(db);
  await sql`create index used_tokens_by_end on used_tokens (ends_at)`.execute(db);

  // Features with tables in the store, and rows of features that were not installed when the store was copied.
  await sql`create table svc_api_features (
    name ${text} primary key not null,
    state ${text} not null
  )`.execute(db);
  await sql`create table kept_rows (
    feature ${text} not null,
    table_name ${text} not null,
    number bigint not null,
    migrations ${text} not null,
    "row" ${text} not null,
    constraint kept_rows_key primary key (feature, table_name, number)
  )${clustered}`.execute(db);

  await (isPostgres ? completePostgres(db) : completeSqlite(db));
}

/** The types of columns in a dialect. */
export function columnTypes(dialect: DialectName): ColumnTypes {
  const isPostgres = dialect === 'postgres';
  const text = sql.raw(isPostgres ? 'text collate "C"' : 'text');
  // Many tables and indexes hold ids of keys. As uuid, PostgreSQL needs less than half the space.
  return { dialect, text, keyId: isPostgres ? sql.raw('uuid') : text };
}

/**
 * Completes an SQLite schema: marks of changes in the file, the search terms of the audit log, and triggers that guard
 * tables and record changes.
 */
async function completeSqlite(db: Kysely<Tables>): Promise<void> {
  // The mark of the last change: its random id, and that of the change before, as one text of 72 characters. Before the
  // first change, it is the nil UUID (RFC 9562, section 5.9). The mark reveals a file that was copied over the store.
  await sql`create table last_change (ids text not null)`.execute(db);
  await sql`insert into last_change values (${crypto.randomUUID()} || '00000000-0000-0000-0000-000000000000')`.execute(
    db,
  );

  // The latest created, changed or deleted keys, by any program. A change has a number and a random mark: if the mark
  // differs or is gone, the changes since then are unknown. Rows without an id in between are the newest entries of the
  // audit log, so that a change writes one page for both.
  await sql`create table key_changes (
    number integer primary key,
    key_id text not null default '',
    mark text not null default (hex(randomblob(8))),
    log_number integer,
    log_hash text
  )`.execute(db);
  await sql`insert into key_changes default values`.execute(db);
  await sql`create view audit_head as select 1 as one, log_number as number, log_hash as hash from key_changes
    where log_hash is not null order by key_changes.number desc limit 1`.execute(db);

  // The search terms of audit entries, and the range of their times, by blocks of consecutive entries. Written later,
  // for many entries at once, by changes that revoke nothing.
  await sql`create table audit_terms (
    term text not null,
    block integer not null,
    primary key (term, block)
  ) without rowid`.execute(db);
  await sql`create table audit_blocks (
    block integer primary key,
    first_at bigint not null,
    last_at bigint not null
  )`.execute(db);

  // The keys that share a unique value with a new row and would be replaced by "insert or replace".
  const replaced = `id = new.id or name = new.name or public_id = new.public_id or digest = new.digest
    or previous_digest = new.previous_digest`;
  for (const trigger of [
    `audit_log_no_update before update on audit_log
      begin select raise(abort, 'the audit log only grows'); end`,
    `audit_log_no_delete before delete on audit_log
      when old.number > coalesce((select number from audit_start), 0)
      begin select raise(abort, 'the audit log only grows'); end`,
    ...['insert', 'update'].map(
      (change) => `audit_head_${change} instead of ${change} on audit_head
        begin insert into key_changes (log_number, log_hash) values (new.number, new.hash); end`,
    ),
    `audit_head_delete instead of delete on audit_head
      begin delete from key_changes where log_hash is not null; end`,
    // Without their index rows, entries would not be found.
    ...['audit_terms', 'audit_blocks'].flatMap((table) =>
      ['update', 'delete'].map(
        (change) => `${table}_no_${change} before ${change} on ${table}
          when (old.block + 1) * ${BLOCK_ENTRIES} > coalesce((select number from audit_start), 0) + 1
          begin select raise(abort, 'the audit log only grows'); end`,
      ),
    ),
    // A program that changes a key without updating its checksum removes the checksum.
    `api_keys_without_checksum after update on api_keys when new.checksum is old.checksum
      begin update api_keys set checksum = null where id = new.id; end`,
    // Also for new keys: a file put in place of this one may lack them.
    `key_changes_before_insert before insert on api_keys
      begin insert into key_changes (key_id) select id from api_keys where ${replaced} union all select new.id; end`,
    `key_changes_before_update before update on api_keys
      begin insert into key_changes (key_id) select id from api_keys where id = old.id or ${replaced}; end`,
    `key_changes_after_delete after delete on api_keys
      begin insert into key_changes (key_id) values (old.id); end`,
    // Not after each insert, as they are at the other end of the table.
    `key_changes_are_few after insert on key_changes when new.number % ${KEPT_CHANGES / 16} = 0
      begin delete from key_changes where number < new.number - ${KEPT_CHANGES} and number is not (
        select number from key_changes where log_hash is not null order by number desc limit 1); end`,
  ])
    await sql.raw(`create trigger ${trigger}`).execute(db);
}

/** The least number of changes that an SQLite store keeps. */
const KEPT_CHANGES = 4096;
/** How many entries of the audit log form a block of the search index in an SQLite store. */
export const BLOCK_ENTRIES = 32;
/** Completes a PostgreSQL schema: functions that guard tables and announce changes. */
async function completePostgres(db: Kysely<Tables>): Promise<void> {
  // The audit log only grows. Only entries up to its start, which are no longer part of it, can be deleted.
  await sql`create function forbid_audit_changes() returns trigger language plpgsql as $$
    begin raise exception 'the audit log only grows'; end $$`.execute(db);
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
  // A program that changes a key without updating its checksum removes the checksum.
  await sql`create function remove_checksum() returns trigger language plpgsql as $$
    begin new.checksum := null; return new; end $$`.execute(db);
  await sql`create trigger api_keys_without_checksum before update on api_keys
    for each row when (new.checksum is not distinct from old.checksum) execute function remove_checksum()`.execute(db);
  // A database user who can end a grace period must not be able to bring a previous secret back.
  await sql`create function forbid_longer_grace() returns trigger language plpgsql as $$
    begin raise exception 'a grace that has begun only gets shorter'; end $$`.execute(db);
  await sql`create trigger api_keys_keep_grace_ends before update on api_keys for each row
    when (new.previous_digest = old.previous_digest and old.previous_ends_at is not null
      and (new.previous_ends_at is null or new.previous_ends_at > old.previous_ends_at))
    execute function forbid_longer_grace()`.execute(db);
  // Notifies listeners of the ids of changed and deleted keys, within the transaction of any program, in batches: a
  // notification is limited to 8,000 bytes. See `PostgresListener`.
  await sql`create function announce_changed_keys() returns trigger language plpgsql as $$
    begin
      perform pg_notify('svc_api_changed_keys',
          json_build_object('schema', tg_table_schema, 'keys', json_agg(id))::text)
        from (select id, (row_number() over () - 1) / 100 as part from changed) as parts group by part;
      return null;
    end $$`.execute(db);
  for (const change of ['update', 'delete'])
    await sql`create trigger ${sql.id(`api_keys_${change}_announced`)} after ${sql.raw(change)} on api_keys
      referencing old table as changed for each statement execute function announce_changed_keys()`.execute(db);
  // The followers, which remember keys: the last change they know, and until when they trust their memory, in
  // milliseconds since 1970; and the number of the last change. See `announceChange`.
  await sql`create table followers (id text primary key, seen bigint not null, leased_until bigint not null)`.execute(
    db,
  );
  // The note of each follower about its recipients, and when it was written.
  await sql`create table follower_notes (id text primary key, written_at bigint not null, note text not null)`.execute(
    db,
  );
  await sql`create table change_number (one integer primary key check (one = 1), number bigint not null)`.execute(db);
  await sql`insert into change_number values (1, 0)`.execute(db);
  await sql`create function announce_truncated_keys() returns trigger language plpgsql as $$
    begin
      perform pg_notify('svc_api_changed_keys', json_build_object('schema', tg_table_schema)::text);
      return null;
    end $$`.execute(db);
  await sql`create trigger api_keys_truncate_announced after truncate on api_keys
    for each statement execute function announce_truncated_keys()`.execute(db);
}

/** Brings a store from one schema to the next. The previous version of the program must still work with the result. */
export type Migration = (db: Kysely<Tables>, dialect: DialectName) => Promise<void>;

/** All migrations, oldest first. A released one is never changed; the next change adds another one. */
export const MIGRATIONS: readonly Migration[] = [createSchema];

/** Schemas of unreleased versions have numbers up to this one, and are not migrated. */
const UNRELEASED = 39;

/** The number of the newest schema. */
export function newestSchema(): number {
  return UNRELEASED + MIGRATIONS.length;
}

/** The migrations from one schema to a newer one. @param from 0 for a new store */
export function migrationsBetween(from: number, to: number): readonly Migration[] {
  return MIGRATIONS.slice(Math.max(from - UNRELEASED, 0), to - UNRELEASED);
}

/** Refuses a schema that this version cannot bring to the newest one. @throws KeysError STORE_NEWER, STORE_OLDER */
export function requireKnownSchema(version: number, location: string): void {
  if (version > newestSchema())
    throw new KeysError(
      'STORE_NEWER',
      `The key store ${location} was made by a newer version of svc-api ` +
        `(schema ${version}; this one knows ${newestSchema()}). Update svc-api.`,
    );
  if (version > 0 && version <= UNRELEASED)
    throw new KeysError(
      'STORE_OLDER',
      `The key store ${location} was made by a version of svc-api that was never released (schema ${version}). ` +
        'Run "svc-api apikey export --with-digests" with that version, and "svc-api apikey import" with this one, ' +
        'into a new store.',
    );
}
