import { hash } from 'node:crypto';
import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { AuditedChange, AuditEntry, AuditValues } from '../keys/audit/index.ts';
import { isTime, UUID } from '../keys/basics/index.ts';
import {
  type ApiKey,
  computeSkeleton,
  fieldsOf,
  fieldsText,
  filterFields,
  type FilterName,
  type FilterValues,
  identityNamesOf,
  NO_VALUES,
  readFieldsText,
  type Rotation,
  type StoredKey,
} from '../keys/key/index.ts';
import type { Permission } from '../keys/permissions/index.ts';
import type { DialectName } from './connection.ts';
import { ID_START } from './migrations.ts';
import { type ApiKeyTable, type AuditLogTable, KEY_COLUMNS, type KeyRow, type Tables } from './tables.ts';

/** The columns of a key that hold times. */
export const TIME_COLUMNS = ['created_at', 'expires_at', 'disabled_at', 'rotated_at', 'previous_ends_at'] as const;

/** The key in a row. */
export function apiKeyOf(row: KeyRow): ApiKey {
  const [roles, permissions] = [listIn(row.roles), listIn(row.permissions)];
  const isIntact = row.checksum !== null && row.checksum === computeChecksum(row);
  const fields = readFieldsText(row.fields, isIntact);
  const isReadable = roles && permissions && fields;
  const hasTimes = TIME_COLUMNS.every((column) => row[column] === null || isTime(Number(row[column])));
  const isDamaged = !isReadable || !hasTimes || (row.checksum !== null && !isIntact);
  return {
    // After a flipped bit in a file, a text can read as a number or as bytes.
    id: String(row.id),
    name: String(row.name),
    ...(fields ?? NO_VALUES),
    roles: roles ?? [],
    permissions: (permissions ?? []) as Permission[],
    publicId: String(row.public_id),
    createdAt: Number(row.created_at),
    createdBy: row.created_by,
    expiresAt: readTime(row.expires_at),
    disabledAt: readTime(row.disabled_at),
    managed: row.managed !== 0,
    rotation: rotationOf(row),
    ...(isDamaged && { damaged: true }),
  };
}

/** The key in a row, with the digests of its secrets. */
export function readStoredKey(row: ApiKeyTable): StoredKey {
  return { ...apiKeyOf(row), digest: row.digest, previousDigest: row.previous_digest };
}

/** The row of a key. */
export function rowOf(key: StoredKey): ApiKeyTable {
  const row = { ...columnsOf(key), ...searchedColumns(key), name_skeleton: computeNameSkeleton(key.name) };
  // A damaged key stays damaged, whatever is written to it.
  return { ...row, checksum: key.damaged ? '' : computeChecksum(row) };
}

/** The columns in which the row of a key changes, except its checksum. */
export function changedColumns(before: StoredKey, after: StoredKey): Partial<ApiKeyTable> {
  const [old, values] = [columnsOf(before), columnsOf(after)];
  const changed = Object.entries(values).filter(([column, value]) => value !== old[column as keyof typeof old]);
  return {
    ...(Object.fromEntries(changed) as Partial<ApiKeyTable>),
    ...(after.name !== before.name && { name_skeleton: computeNameSkeleton(after.name) }),
    ...(searchTextOf(after) !== searchTextOf(before) && searchedColumns(after)),
  };
}

function columnsOf(key: StoredKey) {
  return {
    id: key.id,
    name: key.name,
    fields: fieldsText(key),
    roles: JSON.stringify(key.roles),
    permissions: JSON.stringify(key.permissions),
    public_id: key.publicId,
    digest: key.digest,
    created_at: key.createdAt,
    created_by: key.createdBy,
    expires_at: key.expiresAt,
    disabled_at: key.disabledAt,
    managed: key.managed ? 1 : 0,
    previous_digest: key.previousDigest,
    previous_public_id: key.rotation?.previousPublicId ?? null,
    rotated_at: key.rotation?.startedAt ?? null,
    rotation_grace: key.rotation?.grace ?? null,
    previous_ends_at: key.rotation?.previousEndsAt ?? null,
  };
}

const CHECKED = KEY_COLUMNS.filter((column) => column !== 'checksum');
/** The columns whose numbers PostgreSQL returns as text. */
const LARGE: ReadonlySet<keyof KeyRow> = new Set([...TIME_COLUMNS, 'rotation_grace']);

/**
 * The checksum of a row, which detects changes by disk errors. Triggers remove it from rows that another program
 * changes through the database. Deliberate changes are detected by the audit log, not by this.
 */
export function computeChecksum(row: Omit<KeyRow, 'checksum'>): string {
  const values = CHECKED.map((column) => (LARGE.has(column) ? toNumber(row[column]) : row[column]));
  return hash('sha256', JSON.stringify(values), 'base64url').slice(0, 11);
}

/** The texts in a JSON list; undefined for anything else. */
function listIn(text: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((item) => typeof item === 'string') ? list : undefined;
  } catch {
    return undefined;
  }
}

/** The row of an entry of the audit log. */
export function toAuditRow({
  number,
  at,
  actor,
  action,
  apiKey: key,
  before,
  after,
  address,
  hash,
}: AuditEntry): AuditLogTable {
  return {
    number,
    at,
    actor_kind: actor.kind,
    actor_id: actor.id,
    actor_name: actor.name,
    action,
    key_id: key?.id ?? null,
    key_name: key?.name ?? null,
    before: before && valuesText(before, key?.name),
    after: after && valuesText(after, key?.name),
    address: address ?? null,
    hash: storedHash(hash),
  };
}

const HASH = /^(hmac:)?([0-9a-f]{64})$/;
/** The last character has two unused bits, which are 0. */
const STORED_HASH = /^(hmac:)?([\w-]{42}[AEIMQUYcgkosw048])$/;

/** The stored form of an entry's hash: base64url, which is shorter than hex. */
export function storedHash(text: string): string {
  return encodedAnew(text, HASH, 'hex', 'base64url');
}

/** The hash of an entry from its stored form. A malformed text was tampered with, and stays malformed. */
export function readHash(text: string): string {
  return encodedAnew(text, STORED_HASH, 'base64url', 'hex');
}

function encodedAnew(text: string, form: RegExp, from: BufferEncoding, to: BufferEncoding): string {
  const [, keyed = '', bytes] = form.exec(text) ?? [];
  return bytes === undefined ? text : keyed + Buffer.from(bytes, from).toString(to);
}

/** The entry of the audit log in a row. */
export function readAuditEntry(row: AuditLogTable): AuditEntry {
  return { ...readChange(row), ...(row.address !== null && { address: row.address }), hash: readHash(row.hash) };
}

/** The columns of an entry about a change, without its address and hash. */
export const CHANGE_COLUMNS = [
  'number',
  'at',
  'actor_kind',
  'actor_id',
  'actor_name',
  'action',
  'key_id',
  'key_name',
  'before',
  'after',
] as const satisfies readonly (keyof AuditLogTable)[];

/** The change of a key in a row. */
export function readChange(row: Pick<AuditLogTable, (typeof CHANGE_COLUMNS)[number]>): AuditedChange {
  return {
    number: Number(row.number),
    at: Number(row.at),
    actor: { kind: row.actor_kind as AuditEntry['actor']['kind'], id: row.actor_id, name: row.actor_name },
    action: row.action as AuditEntry['action'],
    apiKey: row.key_id === null ? null : { id: row.key_id, name: row.key_name ?? '' },
    before: valuesOf(row.before, row.key_name),
    after: valuesOf(row.after, row.key_name),
  };
}

/** The labels that find a key with these values: a text regardless of case, and words and items of lists as they are. */
export function labelsOf(values: { readonly [Name in FilterName]?: FilterValues[Name] | null }): string[] {
  return fieldsOf(filterFields).flatMap(([name, field]) =>
    [values[name as FilterName] ?? []]
      .flat()
      .map(
        (value) =>
          labelStart([name, field]) + (field.form === 'list' || field.words ? value : foldedCase(String(value))),
      ),
  );
}

const IDENTITY = 'identity:';

/** The fields that can have labels: a plugin's field may have had a filter before. */
const labelledFields = fieldsOf().filter(([, { id, filter }]) => filter || typeof id === 'string');

/** The starts of all labels that this version knows. */
export const LABEL_STARTS = [...labelledFields.map(labelStart), IDENTITY];

/** The values that the labels of a key depend on. */
export function labelledValues(key: ApiKey): unknown[] {
  return [...labelledFields.map(([name]) => key[name]), identityLabelsOf(key)];
}

/** The labels that find a key without a secret by its name, and by the names of the identity that it stands for. */
export function identityLabelsOf(key: ApiKey): string[] {
  const names = identityNamesOf(key);
  return names.length === 0 ? [] : [...new Set([key.name, ...names].map(identityLabel))];
}

/** The label of keys whose identity is called so, regardless of case. A digest, as names can be too long for an index. */
export function identityLabel(name: string): string {
  return IDENTITY + hash('sha256', foldedCase(name), 'base64url');
}

/** Distinguishes plugins that have fields of the same name. */
function labelStart([name, { id, flag = name }]: ReturnType<typeof fieldsOf>[number]): string {
  return `${typeof id === 'string' ? id : flag}:`;
}

type Searched = Pick<ApiKey, 'name'> & Partial<ApiKey>;

/** The search text of a key, with differences of case and Unicode form removed. */
export function searchTextOf(key: Searched): string {
  const texts = [key.name, key.description, ...identityNamesOf(key)];
  return foldedCase(texts.filter(Boolean).join('\n'));
}

/** The longest search text that is stored in the short column. */
const SHORT_TEXT = 100;

/** The columns with the search text of a key. */
function searchedColumns(key: Searched): Pick<ApiKeyTable, 'short_text' | 'long_text'> {
  const text = searchTextOf(key);
  return text.length <= SHORT_TEXT ? { short_text: text, long_text: null } : { short_text: null, long_text: text };
}

/** Lower case alone would not match ß with SS, and ς with σ. */
function foldedCase(text: string): string {
  return text.normalize('NFKC').toLowerCase().toUpperCase().normalize('NFKC');
}

/** A digest of a name's skeleton, which few names share: skeletons can be too long for an index of PostgreSQL. */
export function computeNameSkeleton(name: string): string {
  return hash('sha256', computeSkeleton(name), 'base64url').slice(0, 7);
}

/** PostgreSQL returns large numbers as text. */
export function toNumber(value: number | string | bigint | null): number | null {
  return value === null ? null : Number(value);
}

/** A time in a row. An invalid one counts as past. */
function readTime(value: number | null): number | null {
  const time = toNumber(value);
  return time === null || isTime(time) ? time : 0;
}

function rotationOf(row: KeyRow): Rotation | null {
  if (row.previous_public_id === null) return null;
  return {
    previousPublicId: row.previous_public_id,
    startedAt: readTime(row.rotated_at) ?? 0,
    grace: Number(row.rotation_grace),
    previousEndsAt: readTime(row.previous_ends_at),
  };
}

/**
 * The values of most new keys in the audit log. Stores identify each of these fields by its position here: never change
 * it.
 */
const USUAL_VALUES: AuditValues = {
  name: undefined,
  description: null,
  roles: [],
  permissions: [],
  limits: [],
  allowFrom: null,
  prefix: undefined,
  createdBy: null,
  expiresAt: null,
  disabledAt: null,
  managed: false,
  rotation: null,
};

const PLACES = Object.keys(USUAL_VALUES);

/**
 * The values of an entry about a key, as JSON. A whole key becomes a list of its unusual values, each after its
 * position or name.
 */
function valuesText(values: AuditValues, name: string | undefined): string {
  const text = JSON.stringify(values);
  const usual: AuditValues = { ...USUAL_VALUES, name };
  const unusual = Object.entries(values).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(usual[field]),
  );
  const isWhole = JSON.stringify({ ...usual, ...Object.fromEntries(unusual) }) === text;
  const placeOf = (field: string) => (PLACES.includes(field) ? PLACES.indexOf(field) : field);
  return isWhole ? JSON.stringify(unusual.flatMap(([field, value]) => [placeOf(field), value])) : text;
}

/** A text that is not JSON was tampered with: it must neither break reading the log nor pass verification. */
function valuesOf(text: string | null, name: string | null = null): AuditEntry['before'] {
  if (text === null) return null;
  try {
    const stored = JSON.parse(text) as AuditValues | unknown[];
    if (!Array.isArray(stored)) return stored;
    const values: Record<string, unknown> = { ...USUAL_VALUES, name };
    for (let at = 0; at < stored.length; at += 2) {
      const place = stored[at];
      values[typeof place === 'number' ? PLACES[place]! : String(place)] = stored[at + 1];
    }
    return values;
  } catch {
    return { unreadable: text };
  }
}

/** Rows as one parameter: a statement with a parameter for each value takes as long to prepare as to run. */
export function jsonRows(dialect: DialectName, rows: readonly (readonly unknown[])[]): RawBuilder<unknown> {
  const json = JSON.stringify(rows);
  return dialect === 'sqlite' ? sql`json_each(${json})` : sql`jsonb_array_elements(${json}::jsonb) as given(value)`;
}

/** The same for rows of one value each. */
export function jsonRowsOf(dialect: DialectName, values: readonly unknown[]): RawBuilder<unknown> {
  return jsonRows(
    dialect,
    values.map((value) => [value]),
  );
}

/**
 * A condition for a column to equal one of these texts, as one parameter. With a single text, an index returns rows in
 * order.
 */
function amongTexts(dialect: DialectName, texts: readonly string[]): RawBuilder<unknown> {
  if (texts.length === 1) return sql`= ${texts[0]}`;
  return dialect === 'sqlite'
    ? sql`in (select value from json_each(${JSON.stringify(texts)}))`
    : sql`= any(${texts}::text[])`;
}

/** True if a column has one of these texts. PostgreSQL uses an index of hashes, which is smaller. */
export function hasHashed(dialect: DialectName, column: string, texts: readonly string[]): RawBuilder<SqlBool> {
  const hasOne = sql<SqlBool>`${sql.ref(column)} ${amongTexts(dialect, texts)}`;
  if (dialect === 'sqlite') return hasOne;
  const hashOf = (text: unknown) => sql`hashtextextended(${text}, 0)`;
  return sql`(${hashOf(sql.ref(column))} in (${sql.join(texts.map(hashOf))}) and ${hasOne})`;
}

/** Counts code points, as databases do. */
const START_OF_ID = new RegExp(`^.{0,${ID_START}}`, 'su');

/** True if an audit entry is about one of these keys, by an index of id prefixes. */
export function isAbout(dialect: DialectName, texts: readonly string[]): RawBuilder<SqlBool> {
  const ids = idsAmong(dialect, texts);
  if (ids.length === 0) return sql<SqlBool>`false`;
  const starts = new Set(ids.map((id) => START_OF_ID.exec(id)![0]));
  return sql<SqlBool>`(${idStart(dialect, 'audit_log.key_id')} ${amongTexts(dialect, [...starts])}
    and audit_log.key_id ${amongIds(dialect, ids)})`;
}

/** The prefix of a key id in a column. */
export function idStart(dialect: DialectName, column: string): RawBuilder<string> {
  const text = dialect === 'sqlite' ? sql.ref(column) : sql`${sql.ref(column)}::text`;
  return sql`substr(${text}, 1, ${sql.lit(ID_START)})`;
}

/** The nil UUID, which sorts before the ids of all keys (RFC 9562, section 5.9). */
export const BEFORE_IDS = '00000000-0000-0000-0000-000000000000';

/** True for a possible key id. PostgreSQL compares ids only with UUIDs, and stores them in lower case. */
export function isId(dialect: DialectName, text: string): boolean {
  return dialect === 'sqlite' || UUID.test(text);
}

/** The texts that can be ids. */
export function idsAmong(dialect: DialectName, texts: readonly string[]): readonly string[] {
  return texts.filter((text) => isId(dialect, text));
}

export function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

/** A condition for a column of ids to equal one of these: see `amongTexts`. */
export function amongIds(dialect: DialectName, ids: readonly string[]): RawBuilder<unknown> {
  return dialect === 'sqlite' || ids.length === 1 ? amongTexts(dialect, ids) : sql`= any(${ids}::uuid[])`;
}

/** A value of a given row. */
export function jsonRowText(index: number): RawBuilder<string> {
  return sql`(value ->> ${sql.lit(index)})`;
}

/** The id of a key of a given row. */
export function jsonRowId(dialect: DialectName, index: number): RawBuilder<string> {
  return dialect === 'sqlite' ? jsonRowText(index) : sql`cast(${jsonRowText(index)} as uuid)`;
}

/** A whole number of a given row. */
export function jsonRowNumber(index: number): RawBuilder<number> {
  return sql`cast(value ->> ${sql.lit(index)} as bigint)`;
}

/** The number of rows in a table. */
export async function countRows(db: Kysely<Tables>, table: string): Promise<number> {
  const { count } = await db
    .selectFrom(table as keyof Tables)
    .select((row) => row.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Databases limit the number of parameters in a statement. */
const CHUNK_ROWS = 500;

/** Splits a list into chunks small enough for one statement. */
export function chunksOf<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / CHUNK_ROWS) }, (_, index) =>
    items.slice(index * CHUNK_ROWS, (index + 1) * CHUNK_ROWS),
  );
}
