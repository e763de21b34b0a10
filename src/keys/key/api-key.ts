import {
  anyText,
  bitsBeyond,
  codePoints,
  debug,
  describeCharacter,
  durationHint,
  formatTime,
  hasTooManyMarks,
  type Issue,
  KeysError,
  type Limit,
  list,
  formatList,
  MAX_MARKS,
  missingDay,
  NO_LIMITS,
  normalizeText,
  orNull,
  parseLimits,
  parseNetwork,
  partsOf,
  printable,
  readDate,
  readDay,
  readDuration,
  readNetwork,
  required,
  type Rules,
  type SplitNetwork,
  textOrDate,
  UNIT_MS,
  yesOrNo,
} from '../basics/index.ts';
import { type Catalog, parsePermissions, parseRoles, type Permission, type Role } from '../permissions/index.ts';
import { normalizeLine, parseTags, validateLine } from './labels.ts';
import type { Person } from './person.ts';
import { isInProgress, type Rotation } from './rotation.ts';

/** When a key is to expire, as the user wrote it: after a duration, at a date, or never (null). */
export interface ExpiryRequest {
  /** A number with a unit: `90m`, `12h`, `30d`. */
  expiresIn?: string;
  /** An RFC 3339 date and time, or a date. */
  expiresAt?: string | Date | null;
}

/** Ten years: a key that is to live longer needs no expiry. */
export const MAX_DURATION_MS = 3653 * UNIT_MS.d;

/** Parses an expiry: milliseconds since 1970, null for never, or the expiryIssue with it. */
export function readExpiry({ expiresIn, expiresAt }: ExpiryRequest, now: number): number | null | Issue {
  if (expiresIn !== undefined && expiresAt !== undefined)
    return expiryIssue('A key expires after a duration or at a date, not both.');
  if (expiresIn !== undefined) {
    const duration = readDuration(expiresIn);
    if (duration === undefined) {
      const remedy = durationHint(expiresIn) ?? 'Write a number with s, m, h, d or w, such as 90m, 12h or 30d.';
      return expiryIssue(`"${printable(expiresIn)}" is not a duration. ${remedy}`);
    }
    return withinLimit(now + duration, now, expiresIn);
  }
  if (expiresAt === undefined || expiresAt === null) return null;
  const text = expiresAt instanceof Date ? textOfDate(expiresAt) : expiresAt;
  const instant = readDate(text);
  if (instant === undefined) return expiryIssue(notADate(text));
  if (instant <= now) return expiryIssue(`"${printable(text)}" is in the past. Choose a later date.`);
  return withinLimit(instant, now, text);
}

function textOfDate(date: Date): string {
  return Number.isNaN(date.getTime()) ? String(date) : date.toISOString();
}

/** An expiry that is written in one text: a date and time, or a duration. */
export function expiryIn(text: string): ExpiryRequest {
  return /^\s*\d{4}-/.test(text) ? { expiresAt: text } : { expiresIn: text };
}

/** The expiry in a validated request; undefined if it names none. */
export function expiryOf(request: ExpiryRequest, now: number): number | null | undefined {
  if (request.expiresIn === undefined && request.expiresAt === undefined) return undefined;
  return readExpiry(request, now) as number | null;
}

/** The expiryIssue with the expiry in a request, if there is one. */
export function validateExpiry(request: ExpiryRequest, now: number): Issue[] {
  const read = readExpiry(request, now);
  return typeof read === 'object' && read !== null ? [read] : [];
}

function withinLimit(instant: number, now: number, text: string): number | Issue {
  return instant - now <= MAX_DURATION_MS
    ? instant
    : expiryIssue(`"${printable(text)}" is more than ten years away. Choose an earlier date, or none.`);
}

/** What is wrong with a text that `readDate` cannot parse. Of a date alone it is not clear whether the day counts. */
export function notADate(text: string): string {
  const day = text.trim();
  if (readDay(day) !== undefined)
    return `"${day}" has no time. Write ${day}T00:00:00Z for its start in UTC, or ${day}T23:59:59Z for its end.`;
  const shown = `"${printable(text)}"`;
  const problem = missingDay(day);
  const what = `${shown} is not an RFC 3339 date and time`;
  return problem === undefined ? `${what}, such as 2030-12-31T23:59:59Z.` : `${what}. ${problem}`;
}

function expiryIssue(message: string): Issue {
  return { code: 'EXPIRY_INVALID', message };
}

/** An API key. Its secret is not part of it. */
export interface ApiKey {
  /** A UUID. */
  id: string;
  /** The name, in the form of `normalizeName`; no two keys have the same. */
  name: string;
  /** Free text of at most 1,000 code points; null if there is none. */
  description: string | null;
  /** Who answers for it, such as a person or a team, as text of at most 200 code points; null if nobody is named. */
  owner: string | null;
  /** What it is sorted by, each as `key=value`, in the form of `parseTags`; at most 16. */
  tags: readonly string[];
  /** The granted roles. */
  roles: Role[];
  /** The permissions that are granted besides the roles. */
  permissions: Permission[];
  /** How many requests it may make, at most one limit for each unit; empty if it has no limits of its own. */
  limits: readonly Limit[];
  /** The networks that it may be used from, in the form of `parseNetworks`; null for anywhere. */
  allowFrom: readonly string[] | null;
  /** The address that it is valid for alone, with all paths under it: see `readAudience`; null for any. */
  audience: string | null;
  /** The 12 public characters of the secret; for a secret in another format, see `createImportedId`. */
  publicId: string;
  /** When it was created, in milliseconds since 1970. */
  createdAt: number;
  /** The id of the key that created it; null if the operator did. */
  createdBy: string | null;
  /** When it expires, in milliseconds since 1970; null if it never does. */
  expiresAt: number | null;
  /** When it was disabled, in milliseconds since 1970; null while it is enabled. */
  disabledAt: number | null;
  /** Whether an apply created it, so that pruning may delete it. */
  managed: boolean;
  /** Who it stands for, who signs in and has no secret; null for any other key. */
  person: Person | null;
  /** The last rotation, also once it has ended, until it is rolled back; null if there is none. */
  rotation: Rotation | null;
  /**
   * Set if its row in the store does not match its checksum: a disk error, or another program, has changed it.
   * Such a key is not accepted, and can only be deleted or replaced.
   */
  damaged?: true;
}

/** The fields that whoever creates a key gives it, in the order in which they are shown. */
export const GIVEN_FIELDS = [
  'name',
  'description',
  'owner',
  'tags',
  'roles',
  'permissions',
  'limits',
  'allowFrom',
  'expiresAt',
] as const satisfies readonly (keyof ApiKey)[];
/** Those of them that null removes. */
export const REMOVABLE_FIELDS = [
  'description',
  'owner',
  'allowFrom',
  'expiresAt',
] as const satisfies readonly (keyof ApiKey)[];
/** Those that say what a key is for, and nothing of what it may do. */
export const NO_LABELS: Pick<ApiKey, 'description' | 'owner' | 'tags'> = { description: null, owner: null, tags: [] };

/** What restricts its requests, and those of the keys that it creates. */
export type KeyRestrictions = Pick<ApiKey, 'limits' | 'allowFrom'>;
export const UNRESTRICTED: KeyRestrictions = { limits: NO_LIMITS, allowFrom: null };
export const RESTRICTION_FIELDS = Object.keys(UNRESTRICTED) as (keyof KeyRestrictions)[];

/** The restrictions of a key, whatever stands for one. */
export function keyRestrictions<Limits, Networks>(key: { limits: Limits; allowFrom: Networks }) {
  return { limits: key.limits, allowFrom: key.allowFrom };
}

/**
 * An address that a key can be for (RFC 8707, section 2), without a slash at its end; undefined for what is none: it is
 * http or https, and has no query or fragment.
 */
export function readAudience(text: string): string | undefined {
  const url = text.length <= MAX_AUDIENCE_LENGTH && /^https?:\/\/[!-~]+$/i.test(text) ? URL.parse(text) : null;
  if (!url || /[?#\\]/.test(text) || url.username !== '' || url.password !== '') return undefined;
  return (url.origin + url.pathname).replace(/\/$/, '');
}

const MAX_AUDIENCE_LENGTH = 500;

/** Whether an address, as `readAudience` has it, is the one that a key is for, or a path under it. */
export function isFor(audience: string, address: string): boolean {
  return address === audience || address.startsWith(`${audience}/`);
}

export function isUnrestricted({ limits, allowFrom }: KeyRestrictions): boolean {
  return limits.length === 0 && allowFrom === null;
}

/** What whoever creates a key gives it. */
export type GivenFields = Pick<ApiKey, (typeof GIVEN_FIELDS)[number]>;

/** The same of a key that there is. */
export function givenFieldsOf(key: GivenFields): GivenFields {
  return Object.fromEntries(GIVEN_FIELDS.map((field) => [field, key[field]])) as unknown as GivenFields;
}

/** What of a key is known outside its store as well. */
export type KeyFields = Omit<ApiKey, 'rotation' | 'damaged'>;

/** A key with the digests of its secrets, as the store keeps it. */
export interface StoredKey extends ApiKey {
  /** See `digestSecret`. */
  digest: string;
  /** The digest of the previous secret; null without a rotation. */
  previousDigest: string | null;
}

/** What a key that was just made has where nothing else is said. */
export const BARE_KEY = {
  ...NO_LABELS,
  ...UNRESTRICTED,
  audience: null,
  createdBy: null,
  expiresAt: null,
  disabledAt: null,
  managed: false,
  person: null,
  rotation: null,
  previousDigest: null,
} as const satisfies Partial<StoredKey>;

/** The key without the digests of its secrets, for callers outside `src/keys`. */
export function withoutDigests(stored: ApiKey | StoredKey): ApiKey {
  const { digest: _digest, previousDigest: _previousDigest, ...key } = stored as StoredKey;
  return key;
}

/**
 * Changes to a key; omitted fields stay as they are. Texts are as the user wrote them. An `expiresAt` of null removes
 * the expiry.
 */
export interface KeyChange extends ExpiryRequest {
  /** 1 to 100 letters, digits and spaces. */
  name?: string;
  /** At most 1,000 code points, without control characters; null for none. */
  description?: string | null;
  /** Who answers for it: at most 200 code points, without control characters; null for nobody. */
  owner?: string | null;
  /** All its tags, at most 16, each as `key=value`, each key once. */
  tags?: readonly string[];
  /** Names of all roles that the key is to have, case-insensitive. */
  roles?: readonly string[];
  /** All permissions that the key is to have besides its roles, as `RESOURCE:ACTION`, case-insensitive. */
  permissions?: readonly string[];
  /** How many requests it may make, such as `100/m`; each unit (s, m, h, d, month) once. An empty list is no limits. */
  limits?: readonly string[];
  /** All networks that it may be used from, such as `10.0.0.0/8`, at least one; null for anywhere. */
  allowFrom?: readonly string[] | null;
}

/** A request to create a key, with at least one role or permission. Omitted fields are empty. */
export interface NewKey extends KeyChange {
  name: string;
  /** Replace the key of that name, if there is one. */
  overwrite?: boolean;
}

export const STATUSES = ['ACTIVE', 'DISABLED', 'EXPIRED'] as const;
/** Whether a key is accepted: only if ACTIVE. An expired key is EXPIRED even if it is disabled as well. */
export type Status = (typeof STATUSES)[number];

/**
 * A key's status at a time in milliseconds since 1970. It is expired from the instant `expiresAt` on. A damaged key is
 * DISABLED: its expiry cannot be relied on.
 */
export function statusOf(
  { expiresAt, disabledAt, damaged }: Pick<ApiKey, 'expiresAt' | 'disabledAt' | 'damaged'>,
  now: number,
): Status {
  if (damaged) return 'DISABLED';
  if (expiresAt !== null && expiresAt <= now) return 'EXPIRED';
  return disabledAt === null ? 'ACTIVE' : 'DISABLED';
}

/** In code points. */
export const MAX_NAME_LENGTH = 100;

/** Letters with the marks that belong to them, decimal digits and spaces. */
const ALLOWED = /\p{L}\p{M}*|\p{Nd}|\u0020/uy;
/** Hangul fillers, variation selectors and the like: letters or marks by category, but invisible. */
const INVISIBLE = /\p{DI}/u;

/** A name as it is stored and compared: NFC, without leading or trailing spaces. */
export function normalizeName(name: string): string {
  return normalizeText(name).replace(/^\u0020+|\u0020+$/g, '');
}

/**
 * Checks a name: only letters (with their combining marks), decimal digits and U+0020, all visible, and 1 to 100 code
 * points after normalization. Returns the nameIssue, if there is one.
 */
export function validateName(name: string): Issue | undefined {
  const normalized = normalizeName(name);
  if (normalized === '') return nameIssue('The name is empty: it needs at least one letter or digit.');
  if (hasTooManyMarks(normalized)) return nameIssue(`The name has more than ${MAX_MARKS} combining marks in a row.`);
  const found = invalidCharacters(normalized);
  if (found.length > 0) {
    const shown = found.slice(0, 5).map((character) => describeCharacter(character));
    const more = found.length > 5 ? [`${found.length - 5} more`] : [];
    return nameIssue(`The name may only contain letters, digits and spaces; found ${formatList([...shown, ...more])}.`);
  }
  const length = codePoints(normalized);
  if (length > MAX_NAME_LENGTH)
    return nameIssue(`The name is ${length} characters long; at most ${MAX_NAME_LENGTH} are allowed.`);
  return undefined;
}

function invalidCharacters(name: string): string[] {
  const invalid = new Set<string>();
  for (let index = 0; index < name.length;) {
    ALLOWED.lastIndex = index;
    const allowed = ALLOWED.exec(name)?.[0];
    const next = allowed ?? String.fromCodePoint(name.codePointAt(index)!);
    for (const character of next) if (allowed === undefined || INVISIBLE.test(character)) invalid.add(character);
    index += next.length;
  }
  return [...invalid];
}

function nameIssue(message: string): Issue {
  return { code: 'NAME_INVALID', message };
}

/** The most networks that a key may be used from. */
export const MAX_NETWORKS = 100;

/**
 * Parses networks. Each gets the form in which it is stored: short, in lower case, and without the length of a plain
 * address. Duplicates are dropped; what is none, or is ambiguous, is an issue.
 */
export function parseNetworks(texts: readonly string[]): { values: string[]; issues: Issue[] } {
  const values = new Set<string>();
  const issues: Issue[] = [];
  for (const text of texts) {
    const read = readNetwork(text.trim());
    if ('problem' in read) issues.push({ code: 'NETWORK_INVALID', message: read.problem });
    else values.add(read.network);
  }
  if (values.size > MAX_NETWORKS)
    issues.push({
      code: 'NETWORK_INVALID',
      message: `${values.size} networks are more than ${MAX_NETWORKS}, which is the most.`,
    });
  return { values: [...values], issues };
}

/** The issues with the networks that a key may be used from, of which there must be one at least. */
export function validateNetworks(texts: readonly string[]): Issue[] {
  if (texts.length > 0) return parseNetworks(texts).issues;
  return [
    { code: 'NETWORK_INVALID', message: 'The list of networks is empty. Name one, or leave it out for anywhere.' },
  ];
}

/** The networks in a validated request; null for anywhere. */
function readAllowFrom(texts: readonly string[] | null | undefined): string[] | null {
  return texts ? parseNetworks(texts).values : null;
}

export function areWithin(inner: readonly string[], outer: readonly string[]): boolean {
  const others = outer.map(splitNetwork);
  return inner.map(splitNetwork).every((network) => others.some((other) => isWithin(network, other)));
}

function splitNetwork(text: string): SplitNetwork {
  const [address, prefix, family] = parseNetwork(text)!;
  return { parts: partsOf(address, family), prefix };
}

function isWithin({ parts, prefix }: SplitNetwork, other: SplitNetwork): boolean {
  return (
    other.parts.length === parts.length &&
    other.prefix <= prefix &&
    parts.every((part, index) => (part ^ other.parts[index]!) >> bitsBeyond(other, index) === 0)
  );
}

/** The fields of a change. What their values may be is said by `validateChange`. */
export const KEY_CHANGE_OPTIONS: Rules<KeyChange> = {
  name: anyText,
  description: orNull(anyText),
  owner: orNull(anyText),
  tags: list(anyText),
  roles: list(anyText),
  permissions: list(anyText),
  limits: list(anyText),
  allowFrom: orNull(list(anyText)),
  expiresIn: anyText,
  expiresAt: orNull(textOrDate),
};
export const NEW_KEY_OPTIONS: Rules<NewKey> = { ...KEY_CHANGE_OPTIONS, name: required(anyText), overwrite: yesOrNo };

/** All issues with a new key, but for a missing name: the caller may still prompt for it. */
export function validateNewKey(input: Partial<NewKey>, catalog: Catalog, now: number): Issue[] {
  return [...validateChange(input, catalog, now), ...validateGrants(input.roles ?? [], input.permissions ?? [])];
}

/** All issues with the given values. */
export function validateChange(change: KeyChange, catalog: Catalog, now: number): Issue[] {
  const { name, description, owner, tags = [], roles = [], permissions = [], limits = [], allowFrom = null } = change;
  const issues = [
    ...about('name', name === undefined ? [] : [validateName(name)]),
    ...about('description', description == null ? [] : [validateLine(description, 'description')]),
    ...about('owner', owner == null ? [] : [validateLine(owner, 'owner')]),
    ...about('tags', parseTags(tags).issues),
    ...about('roles', parseRoles(roles, catalog).issues),
    ...about('permissions', parsePermissions(permissions, catalog).issues),
    ...about('limits', parseLimits(limits).issues),
    ...about('allowFrom', allowFrom === null ? [] : validateNetworks(allowFrom)),
    ...about(change.expiresIn === undefined ? 'expiresAt' : 'expiresIn', validateExpiry(change, now)),
  ];
  // No other field: an imported key has its secret beside them.
  debug('the fields of a key were validated', () => {
    const { name: keyName, roles, permissions, limits, allowFrom, expiresIn, expiresAt } = change;
    const given = { keyName, roles, permissions, limits, allowFrom, expiresIn, expiresAt };
    return { ...given, issues: issues.map(({ code, field }) => ({ code, field })) };
  });
  return issues;
}

function about(field: string, issues: readonly (Issue | undefined)[]): Issue[] {
  return issues.flatMap((issue) => (issue ? { ...issue, field } : []));
}

/** Requires at least one role or permission. Invalid items count: they are issues of their own. */
export function validateGrants(roles: readonly unknown[], permissions: readonly unknown[]): Issue[] {
  if (roles.length > 0 || permissions.length > 0) return [];
  return [{ code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' }];
}

/** What validated input gives a key but for its end, as it is kept. */
export function readGiven(given: KeyChange, catalog: Catalog): Partial<Omit<GivenFields, 'expiresAt'>> {
  const { name, description, owner, tags, roles, permissions, limits, allowFrom } = given;
  return {
    ...(name !== undefined && { name: normalizeName(name) }),
    ...(description !== undefined && { description: normalizeLine(description) }),
    ...(owner !== undefined && { owner: normalizeLine(owner) }),
    ...(tags && { tags: parseTags(tags).values }),
    ...(roles && { roles: parseRoles(roles, catalog).values }),
    ...(permissions && { permissions: parsePermissions(permissions, catalog).values }),
    ...(limits && { limits: parseLimits(limits).values }),
    ...(allowFrom !== undefined && { allowFrom: readAllowFrom(allowFrom) }),
  };
}

export function readNewFields(given: NewKey, catalog: Catalog): Omit<GivenFields, 'expiresAt'> {
  const none = { ...NO_LABELS, roles: [], permissions: [], ...UNRESTRICTED };
  return { ...none, ...readGiven(given, catalog), name: normalizeName(given.name) };
}

export function readGrants(
  input: Pick<NewKey, 'roles' | 'permissions'>,
  catalog: Catalog,
): { roles: Role[]; permissions: Permission[] } {
  return {
    roles: parseRoles(input.roles ?? [], catalog).values,
    permissions: parsePermissions(input.permissions ?? [], catalog).values,
  };
}

/** The fields of a key that somebody sets, in the order in which they are shown. */
export const KEY_FIELDS = [...GIVEN_FIELDS, 'enabled'] as const;
const FIELDS = [...KEY_FIELDS, 'createdBy'] as const;
/** Those that no declaration has: the secrets of a key, by their public parts. */
type SecretField = 'prefix' | 'previousPrefix';

export type FieldValue = string | readonly string[] | boolean | null;

export interface FieldChange {
  field: (typeof FIELDS)[number] | SecretField | 'expiresIn';
  before: FieldValue;
  after: FieldValue;
}

/** One change of a plan. A key that does not exist yet has no id. */
export interface PlannedChange {
  action: 'CREATE' | 'UPDATE' | 'ROTATE' | 'RENEW' | 'DELETE';
  name: string;
  id?: string;
  /** Since when it has the secret that is too old, in milliseconds since 1970. */
  secretSince?: number;
  changes?: FieldChange[];
}

/** The fields that differ between two states of a key. */
export function fieldChanges(before: KeyFields, after: KeyFields): FieldChange[] {
  const [old, fresh] = [fieldsOf(before), fieldsOf(after)];
  return FIELDS.filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field])).map((field) => ({
    field,
    before: old[field],
    after: fresh[field],
  }));
}

function fieldsOf({ disabledAt, expiresAt, ...key }: KeyFields): Record<(typeof FIELDS)[number], FieldValue> {
  return { ...key, expiresAt: formatTime(expiresAt), enabled: disabledAt === null };
}

/** A secret that a key had once. It is not accepted any more. */
export interface RotatedSecret {
  /** See `digestSecret`. */
  digest: string;
  publicId: string;
  keyId: string;
  /** When the key lost it, in milliseconds since 1970. */
  rotatedAt: number;
}

/** A key without its previous secret; the same object if it has none that works. */
export function finishedKey(key: StoredKey, now: number): StoredKey {
  const { rotation } = key;
  if (!isInProgress(rotation, now)) return key;
  return { ...key, rotation: { ...rotation, grace: 0, previousEndsAt: now }, previousDigest: null };
}

/** A key that is being rotated, as it is once it has its previous secret alone. */
export function rolledBackKey(key: StoredKey): StoredKey {
  const { rotation, previousDigest } = key;
  return {
    ...key,
    publicId: rotation!.previousPublicId,
    digest: previousDigest!,
    rotation: null,
    previousDigest: null,
  };
}

/** The secrets that a key loses by a change. */
export function rotatedSecrets(before: StoredKey, after: StoredKey, now: number): RotatedSecret[] {
  const kept = new Set([after.digest, after.previousDigest]);
  const { id: keyId, rotation } = before;
  const secrets = [{ digest: before.digest, publicId: before.publicId }];
  if (rotation && before.previousDigest !== null)
    secrets.push({ digest: before.previousDigest, publicId: rotation.previousPublicId });
  return secrets.filter(({ digest }) => !kept.has(digest)).map((secret) => ({ ...secret, keyId, rotatedAt: now }));
}

/** Refuses a damaged key, where what it says would be written elsewhere. @throws KeysError STORE_CORRUPT */
export function requireWhole({ name, damaged }: ApiKey): void {
  if (!damaged) return;
  throw new KeysError(
    'STORE_CORRUPT',
    `The API key "${printable(name)}" is damaged: its row in the key store does not match its checksum. ` +
      'Delete or replace it, or restore a backup.',
  );
}
