import type { Kysely, RawBuilder } from 'kysely';
import type { OutcomeCounts } from '../keys/key/index.ts';

/** The supported databases, for the few places where their SQL differs. */
export type DialectName = 'sqlite' | 'postgres';

/** What stands for the type of a column in the next table. */
const [TEXT, NUMBER] = ['' as string, 0 as number];
const [TEXT_OR_NULL, NUMBER_OR_NULL] = [null as string | null, null as number | null];

/**
 * The columns of `api_keys` that make a key. Their order is that of the checksum: never change it. Lists are JSON texts;
 * times are milliseconds since 1970.
 */
const KEY = {
  id: TEXT,
  name: TEXT,
  /** See `fieldsText`. */
  fields: TEXT_OR_NULL,
  roles: TEXT,
  permissions: TEXT,
  public_id: TEXT,
  digest: TEXT,
  created_at: NUMBER,
  created_by: TEXT_OR_NULL,
  expires_at: NUMBER_OR_NULL,
  disabled_at: NUMBER_OR_NULL,
  /** 1 for a key that an apply created. */
  managed: NUMBER,
  /** This and the next four are set while the key has a `Rotation`; `previous_ends_at` may still be null. */
  previous_digest: TEXT_OR_NULL,
  previous_public_id: TEXT_OR_NULL,
  rotated_at: NUMBER_OR_NULL,
  /** In milliseconds. */
  rotation_grace: NUMBER_OR_NULL,
  /** Null until the grace period begins. */
  previous_ends_at: NUMBER_OR_NULL,
  /** See `personText`; null for a key with a secret. */
  person: TEXT_OR_NULL,
  /** See `computeChecksum`; null in a row that another program wrote. */
  checksum: TEXT_OR_NULL,
};

/** These columns of a row. */
export type KeyRow = typeof KEY;

/** A row of `api_keys`. */
export interface ApiKeyTable extends KeyRow {
  /** What it is searched by: see `searchTextOf`. Null for a long text, which is in the next one. */
  short_text: string | null;
  long_text: string | null;
  /** See `computeNameSkeleton`; null in a row that another program inserted. */
  name_skeleton: string | null;
}

/** The names of the columns that make a key, and of all. */
export const KEY_COLUMNS = Object.keys(KEY) as (keyof KeyRow)[];
export const API_KEY_COLUMNS: readonly (keyof ApiKeyTable)[] = [
  ...KEY_COLUMNS,
  'short_text',
  'long_text',
  'name_skeleton',
];

/** A row of `key_labels`: what a key is selected by. See `labelsOf`. */
export interface KeyLabelTable {
  label: string;
  /** As the key has it: so keys with a label are found in the order of the list. */
  created_at: number;
  key_id: string;
}

/** A row of `key_usage`, which outlives its key until that is noticed. Hours are counted since 1970, in UTC. */
export interface KeyUsageTable extends OutcomeCounts {
  key_id: string;
  /** By which `key_usage_hours` and `key_usage_days` know the key. */
  number: number;
  uses: number;
  last_used_at: number | null;
  previous_last_used_at: number | null;
  /** The first hour in which there were requests. */
  first_hour: number;
  /** The last one, of which the counts are. */
  hour: number;
}

/** A row of `key_usage_hours`: an hour of a key before its last one. */
export interface KeyUsageHourTable extends OutcomeCounts {
  /** Since 1970, in UTC. */
  hour: number;
  key_number: number;
}

/** A row of `key_usage_days`: what was in `key_usage_hours` once. */
export interface KeyUsageDayTable extends OutcomeCounts {
  /** Since 1970, in UTC. */
  day: number;
  key_number: number;
}

/** A row of `used_grants`. */
export interface UsedGrantTable {
  key_id: string;
  permission: string;
  last_used_at: number;
}

/** A row of `rotated_secrets`. */
export interface RotatedSecretTable {
  digest: string;
  public_id: string;
  key_id: string;
  rotated_at: number;
}

/** A row of `audit_log`. `before` and `after` are JSON texts: see `valuesText`. */
export interface AuditLogTable {
  number: number;
  at: number;
  actor_kind: string;
  actor_id: string | null;
  actor_name: string | null;
  action: string;
  key_id: string | null;
  key_name: string | null;
  before: string | null;
  after: string | null;
  address: string | null;
  hash: string;
}

/** The one row of `audit_head`, or of `audit_start`: the last entry that was pruned. */
export interface AuditPositionTable {
  one: 1;
  number: number;
  hash: string;
}

/** A row of `limit_states`: how far a key has used up its limit of a unit. See `LimitState`. */
export interface LimitStateTable {
  key_id: string;
  unit: string;
  /** The number of the limit when the row was written. */
  count: number;
  /** In microseconds since 1970. */
  unused_at: number;
  /** A list, as JSON. */
  leases: string;
}

/** A row of `used_tokens`. The time is in milliseconds since 1970. */
export interface UsedTokenTable {
  digest: string;
  ends_at: number;
}

/** The one row of `notice_state`: how far the store was looked through for notices, and who does so. */
export interface NoticeStateTable {
  one: 1;
  /** The last entry of the audit log that was looked at. */
  log_number: number;
  /** When the store was last looked through, in milliseconds since 1970, as the next three times are. */
  seen_at: number;
  /** See `EndingsPosition`, as JSON. */
  endings: string;
  /** See `NoticedRefusals`, as JSON. */
  refusals: string;
  /** What identifies the webhook that wants no notices any more. */
  gone: string | null;
  /** The process that collects and delivers, by a random id. */
  holder: string | null;
  leased_until: number;
  failed_at: number | null;
  /** Why the last attempt that failed did so. */
  failure: string | null;
  delivered_at: number | null;
}

/** A row of `notice_outbox`: a notice that was not delivered yet. Times are milliseconds since 1970. */
export interface NoticeOutboxTable {
  id: string;
  type: string;
  created_at: number;
  /** What is sent, as JSON. */
  body: string;
  attempts: number;
  next_at: number;
}

/** A row of `svc_api_features`: a feature whose tables the store has. `state` is a `FeatureRecord`, as JSON. */
export interface FeatureTable {
  name: string;
  state: string;
}

/** A row of `kept_rows`: a row of a feature that the copying program did not have. */
export interface KeptRowTable {
  feature: string;
  table_name: string;
  /** Its place among the rows of that table. */
  number: number;
  /** The names of the migrations that it had seen, as JSON. */
  migrations: string;
  /** As JSON. */
  row: string;
}

/** Tables of the core. */
export interface CoreTables {
  api_keys: ApiKeyTable;
  key_labels: KeyLabelTable;
  key_usage: KeyUsageTable;
  key_usage_hours: KeyUsageHourTable;
  key_usage_days: KeyUsageDayTable;
  used_grants: UsedGrantTable;
  rotated_secrets: RotatedSecretTable;
  audit_log: AuditLogTable;
  audit_head: AuditPositionTable;
  audit_start: AuditPositionTable;
  limit_states: LimitStateTable;
  used_tokens: UsedTokenTable;
  notice_state: NoticeStateTable;
  notice_outbox: NoticeOutboxTable;
  svc_api_features: FeatureTable;
  kept_rows: KeptRowTable;
}

/** All tables. Each feature adds its own. */
export interface Tables extends CoreTables {}

/** The tables of the core of what is under way, which no copy of a store has. */
export const TRANSIENT_TABLES = ['used_tokens'] as const;

/** Tables that each store makes for itself. */
const OF_ONE_STORE = ['svc_api_features'] as const;

/** The tables of the core that are copied, each before those that refer to it, with their primary keys. */
export const TABLES = {
  api_keys: ['id'],
  key_labels: ['label', 'created_at', 'key_id'],
  key_usage: ['key_id'],
  key_usage_hours: ['hour', 'key_number'],
  key_usage_days: ['day', 'key_number'],
  used_grants: ['key_id', 'permission'],
  rotated_secrets: ['digest'],
  audit_log: ['number'],
  audit_head: ['one'],
  audit_start: ['one'],
  limit_states: ['key_id', 'unit'],
  notice_state: ['one'],
  notice_outbox: ['id'],
  kept_rows: ['feature', 'table_name', 'number'],
} as const satisfies Record<
  Exclude<keyof CoreTables, (typeof TRANSIENT_TABLES)[number] | (typeof OF_ONE_STORE)[number]>,
  readonly string[]
>;

/** Their names. */
export const TABLE_NAMES = Object.keys(TABLES) as (keyof typeof TABLES)[];

/** Types of columns, as both databases know them. */
export interface ColumnTypes {
  readonly dialect: DialectName;
  /** Text that is sorted by bytes: PostgreSQL's default order depends on the libraries of the machine. */
  readonly text: RawBuilder<unknown>;
  /** The id of a key. */
  readonly keyId: RawBuilder<unknown>;
}

/** A step of a feature's tables. One that has been released is never changed; the next change adds another one. */
export interface FeatureMigration {
  /** Its name, which stores remember. */
  readonly name: string;
  /** Makes its change, in the transaction that migrates the store. */
  readonly up: (db: Kysely<Tables>, types: ColumnTypes) => Promise<void>;
}

/** Tables of a feature. Columns are text, integer, bigint, real or ids of keys: so they can be copied. */
export interface TablesOfFeature {
  /** The tables by their names, each with its primary key, and before those that refer to it. */
  readonly tables?: Readonly<Record<string, readonly string[]>>;
  /** Tables of what is under way, which no copy of a store has. */
  readonly transientTables?: readonly string[];
  /** Its migrations, oldest first. */
  readonly migrations?: readonly FeatureMigration[];
}

/** The same, with the feature's name. */
export interface FeatureTables extends TablesOfFeature {
  readonly feature: string;
}
