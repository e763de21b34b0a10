import type { Kysely, RawBuilder } from 'kysely';

/** The supported databases, for the few places where their SQL differs. */
export type DialectName = 'sqlite' | 'postgres';

/** Placeholders for the types of columns in `KEY`. */
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
  /** 1 for a key that `apply` created. */
  managed: NUMBER,
  /** Set with the next four while the key has a `Rotation`, though `previous_ends_at` can be null. */
  previous_digest: TEXT_OR_NULL,
  previous_public_id: TEXT_OR_NULL,
  rotated_at: NUMBER_OR_NULL,
  /** In milliseconds. */
  rotation_grace: NUMBER_OR_NULL,
  /** Null until the grace period begins. */
  previous_ends_at: NUMBER_OR_NULL,
  /** See `computeChecksum`; null in a row that another program wrote. */
  checksum: TEXT_OR_NULL,
};

/** The columns of a key in a row. */
export type KeyRow = typeof KEY;

/** A row of `api_keys`. */
export interface ApiKeyTable extends KeyRow {
  /** The search text, see `searchTextOf`; null for a long text, which is in the next column. */
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

const FOUND_BY = ['id', 'digest', 'previous_digest'] as const;
/** The columns of a key, in the order of rows for servers without a store: those for searches come first. */
export const FEED_COLUMNS: readonly (keyof KeyRow)[] = [
  ...FOUND_BY,
  ...KEY_COLUMNS.filter((column) => !(FOUND_BY as readonly string[]).includes(column)),
];

/** A row of `key_labels`: a label that finds a key. See `labelsOf`. */
export interface KeyLabelTable {
  label: string;
  /** The key's time of creation, so that keys with a label are in list order. */
  created_at: number;
  key_id: string;
}

/** A row of `key_uses`. It can outlive its key for a while. */
export interface KeyUsesTable {
  key_id: string;
  uses: number;
  last_used_at: number | null;
  previous_last_used_at: number | null;
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

/** The one row of `audit_head` (the newest entry) or `audit_start` (the last pruned one). */
export interface AuditPositionTable {
  one: 1;
  number: number;
  hash: string;
}

/** A row of `limit_states`: how much of its limit of a unit a key has used. See `LimitState`. */
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

/** A row of `svc_api_features`: a feature with tables in the store. `state` is a `FeatureRecord`, as JSON. */
export interface FeatureTable {
  name: string;
  state: string;
}

/** A row of `kept_rows`: a row of a feature that was not installed when the store was copied. */
export interface KeptRowTable {
  feature: string;
  table_name: string;
  /** Its position among the rows of that table. */
  number: number;
  /** The names of its finished migrations, as JSON. */
  migrations: string;
  /** As JSON. */
  row: string;
}

/** Tables of the core. */
export interface CoreTables {
  api_keys: ApiKeyTable;
  key_labels: KeyLabelTable;
  key_uses: KeyUsesTable;
  rotated_secrets: RotatedSecretTable;
  audit_log: AuditLogTable;
  audit_head: AuditPositionTable;
  audit_start: AuditPositionTable;
  limit_states: LimitStateTable;
  used_tokens: UsedTokenTable;
  svc_api_features: FeatureTable;
  kept_rows: KeptRowTable;
}

/** All tables. Each feature adds its own. */
export interface Tables extends CoreTables {}

/** The core's tables of transient data, which copies of a store leave out. */
export const TRANSIENT_TABLES = ['used_tokens'] as const;

/** Tables that each store makes for itself. */
const OF_ONE_STORE = ['svc_api_features'] as const;

/** The core's tables that are copied, each before the tables that refer to it, with their primary keys. */
export const TABLES = {
  api_keys: ['id'],
  key_labels: ['label', 'created_at', 'key_id'],
  key_uses: ['key_id'],
  rotated_secrets: ['digest'],
  audit_log: ['number'],
  audit_head: ['one'],
  audit_start: ['one'],
  limit_states: ['key_id', 'unit'],
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

/** A step in the history of a feature's tables. A released one is never changed; the next change adds another one. */
export interface FeatureMigration {
  /** Its name, which stores remember. */
  readonly name: string;
  /** Makes its change, in the transaction that migrates the store. */
  readonly up: (db: Kysely<Tables>, types: ColumnTypes) => Promise<void>;
}

/** Tables of a feature. Columns are text, integer, bigint, real or ids of keys, so that they can be copied. */
export interface TablesOfFeature {
  /** The tables by name, each with its primary key, and each before the tables that refer to it. */
  readonly tables?: Readonly<Record<string, readonly string[]>>;
  /** Tables of transient data, which copies of a store leave out. */
  readonly transientTables?: readonly string[];
  /** Tables among these that servers write. The database user of a server needs the rights to do so. */
  readonly writtenByServers?: readonly string[];
  /** Its migrations, oldest first. */
  readonly migrations?: readonly FeatureMigration[];
}

/** The tables of a feature, with its name. */
export interface FeatureTables extends TablesOfFeature {
  readonly feature: string;
}
