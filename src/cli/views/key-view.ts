import { CliError } from '../errors.ts';
import { kebab } from '../../keys/added/index.ts';
import type { Column } from '../output.ts';
import type { KeyLimit, KeyState, NamedIssue } from '../../keys/service/index.ts';
import type { Identification } from '../../keys/authentication/index.ts';
import { chainAccess, chainExpiry } from '../../keys/authorization/index.ts';
import type { IssuedKind } from '../../keys/changes/index.ts';
import {
  type FieldChange,
  type FieldValue,
  fixedFields,
  givenIn,
  identityFields,
  identityOf,
  labelFields,
  MAX_TEXT_LENGTH,
  namesOf,
  previousUseSince,
  restrictionFields,
  restrictionTexts,
  textOf,
  type UseTotals,
  valuesOf,
} from '../../keys/key/index.ts';
import { formatTime, formatList, inOneLine, nearest, printable, relativeTime } from '../../keys/basics/index.ts';
import { type Catalog, type Permission, splitPermission } from '../../keys/permissions/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';

/**
 * A key in the JSON of every command, with its present status, which counts ancestors: a closed list of fields. Times
 * are in RFC 3339 format, in UTC.
 */
export function keyJson(state: KeyState) {
  const { apiKey: key, status, disabledByPolicy, unknownGrants, rotation, use, budgets } = state;
  return {
    id: key.id,
    name: key.name,
    ...valuesOf(labelFields, key),
    roles: key.roles,
    permissions: key.permissions,
    /** Its roles and permissions that are no longer declared, or only elsewhere: they allow nothing here. */
    unknownGrants,
    ...valuesOf(restrictionFields, key),
    /** The only address that it is valid for; omitted if it is valid for all. */
    ...givenIn(fixedFields, key),
    prefix: prefixOf(key.publicId),
    status,
    createdAt: formatTime(key.createdAt),
    createdBy: key.createdBy,
    expiresAt: formatTime(key.expiresAt),
    disabledAt: formatTime(key.disabledAt),
    /** True if the policy disabled it because it was not used. */
    disabledByPolicy,
    /** True if `apply` created it. */
    managed: key.managed,
    uses: use.uses,
    /** The rest of its limits that never refill. */
    budgets: budgets.map(({ limit, left }) => ({ limit, left })),
    lastUsedAt: formatTime(use.lastUsedAt),
    /** Set while the previous secret is still accepted. */
    rotation: rotation && rotationJson(rotation, use),
    /** The identity that it stands for, such as a person; null for a key with a secret. */
    ...valuesOf(identityFields, key),
  };
}

export type KeyJson = ReturnType<typeof keyJson>;

/** The limits that an ancestor puts on a key, as JSON, with the permissions that the key lacks because of them. */
export function limitJson({ ancestor: { id, name }, expiresAt, ...limit }: KeyLimit) {
  return { id, name, ...limit, expiresAt: formatTime(expiresAt) };
}

/** The limits as one line of text. */
export function limitText({ name, status, expiresAt, permissions, ...limit }: ReturnType<typeof limitJson>): string {
  const parts = [
    ...(status === 'ACTIVE' ? [] : [`is ${status}`]),
    ...(expiresAt === null ? [] : [`expires ${expiresAt}`]),
    ...(permissions.length === 0 ? [] : [`lacks ${permissions.join(', ')}`]),
    ...restrictionTexts(limit, true),
  ];
  return `${name === null ? 'a parent key' : `"${printable(name, 100)}"`} ${parts.join(', ')}`;
}

export function changeText({ field, before, after }: FieldChange): string {
  return `${field}: ${fieldText(field, before)} -> ${fieldText(field, after)}`;
}

export function fieldText(field: string, value: FieldValue | Exclude<KeyJson[keyof KeyJson], undefined>): string {
  if (value === null || value === '') return '-';
  if (typeof value !== 'object') return printable(inOneLine(String(value)), MAX_TEXT_LENGTH);
  if (field === 'rotation') return rotationText(value as NonNullable<KeyJson['rotation']>);
  const identity = identityOf({ [field]: value });
  if (identity) return printable(identity.field.textOf(identity.value), 900);
  if (!Array.isArray(value)) return textOf(value);
  return (
    value
      .map((item) => (typeof item === 'object' ? `${item.left} left of ${item.limit}` : printable(String(item), 200)))
      .join(', ') || '-'
  );
}

function rotationJson(rotation: NonNullable<KeyState['rotation']>, use: UseTotals) {
  return {
    startedAt: formatTime(rotation.startedAt),
    previousPrefix: prefixOf(rotation.previousPublicId),
    /** Null until the new secret is used. */
    previousEndsAt: formatTime(rotation.previousEndsAt),
    /** When the previous secret was last used since the rotation. */
    previousLastUsedAt: formatTime(previousUseSince(rotation, use)),
  };
}

function rotationText({ previousPrefix, previousEndsAt, previousLastUsedAt }: ReturnType<typeof rotationJson>): string {
  const end = previousEndsAt ?? 'the new secret is used and the grace period has ended';
  const use = previousLastUsedAt === null ? 'not used since' : `last used ${previousLastUsedAt}`;
  return `${previousPrefix} accepted until ${end}, ${use}`;
}

/** Effects of a key in words, such as `issued a secret for "CI"`. */
const WORDS: Readonly<Record<IssuedKind, (name: string) => string>> = {
  SECRET: (name) => `issued a secret for ${name}`,
  WIDENING: (name) => `gave more access to ${name}`,
  ENABLING: (name) => `enabled ${name}`,
  APPROVAL: (name) => `approved a request for the key ${name}`,
  ADOPTION: (name) => `created ${name}, which has since been detached`,
  CREATION: (name) => `created ${name}, using a secret that it issued for another key`,
};

/** Effects of a key on other keys, as the field `issued` of JSON, which is omitted if there are none. */
export function issuedJson(issued: readonly NamedIssue[]): { issued?: object[] } {
  if (issued.length === 0) return {};
  return { issued: issued.map(issueJson) };
}

/** One effect as JSON. */
export function issueJson({ name, what, at }: NamedIssue): object {
  return { key: name, what, at: formatTime(at) };
}

/** Effects as text, one per line. */
export function issuedLines(issued: readonly NamedIssue[]): string[] {
  return issued.map(({ name, what, at, disabled }) => {
    const shown = `"${printable(name, 100)}"`;
    // A newer server can send unknown kinds.
    const did = Object.hasOwn(WORDS, what) ? WORDS[what](shown) : `changed ${shown}`;
    return `${formatTime(at)} ${did}${disabled ? ' (disabled)' : ''}`;
  });
}

type Known = Extract<Identification, { apiKey: unknown }>;
type Unknown = Exclude<Identification, Known>;

interface Verdict {
  valid: boolean;
  reason: 'malformed' | 'unknown' | 'disabled' | 'expired' | 'rotated' | 'forbidden' | null;
  /** True if the key has the requested permission; null if none was requested. */
  permitted: boolean | null;
  text: string;
}

const REASONS = { DISABLED: 'disabled', EXPIRED: 'expired', ROTATED: 'rotated' } as const;

/** The verdict on a secret, and on a permission if one is requested. */
export function verdictOn(found: Identification, permission: Permission | undefined, catalog: Catalog): Verdict {
  const refused = { valid: false, permitted: permission === undefined ? null : false };
  if ('unknown' in found) return { ...refused, reason: found.unknown, text: `not valid: ${unknownText(found)}` };
  const text = `API key "${found.apiKey.name}" (${prefixOf(found.publicId)}), ${statusText(found)}`;
  if (found.status !== 'ACTIVE') return { ...refused, reason: REASONS[found.status], text: `not valid: ${text}` };
  if (permission === undefined) return { valid: true, reason: null, permitted: null, text: `valid: ${text}` };
  const permitted = chainAccess(found.chain, catalog).has(...splitPermission(permission));
  const access = `${permitted ? 'has' : 'lacks'} ${permission}`;
  return { valid: true, reason: permitted ? null : 'forbidden', permitted, text: `valid: ${text}, ${access}` };
}

function unknownText({ unknown, publicId }: Unknown): string {
  if (unknown === 'malformed') return 'malformed, with a wrong format or checksum';
  return `unknown, no API key has this secret${publicId === undefined ? '' : ` (${prefixOf(publicId)})`}`;
}

function statusText({ apiKey: key, chain, status, publicId }: Known): string {
  const end = chainExpiry(chain);
  if (status === 'ROTATED') return 'ROTATED, replaced by a newer secret';
  if (status === 'EXPIRED')
    return `EXPIRED since ${formatTime(end)}${end === key.expiresAt ? '' : ', because of a parent key'}`;
  if (status === 'DISABLED' && key.damaged) return 'DISABLED, because its row in the key store is damaged';
  if (status === 'DISABLED')
    return key.disabledAt === null
      ? 'DISABLED, because a parent key is'
      : `DISABLED since ${formatTime(key.disabledAt)}`;
  const active = `ACTIVE, ${end === null ? 'does not expire' : `expires ${formatTime(end)}`}`;
  if (publicId === key.publicId) return active;
  const graceEnd =
    formatTime(key.rotation?.previousEndsAt ?? null) ?? 'the new one is used and the grace period has ended';
  return `${active}; this is its previous secret, accepted until ${graceEnd}`;
}

export interface KeyColumn extends Column {
  /** Its name for `--columns`. */
  readonly name: string;
  text(key: KeyJson): string;
  /** Its cell on a terminal, if that differs. */
  shown?(key: KeyJson): string;
}

/** The widths to which texts can be shortened. */
const [NAME, TEXT] = [10, 8];

/** Columns for programs: the order is part of the public interface. */
export const ALL_COLUMNS: readonly KeyColumn[] = [
  column('name', ({ name }) => name, { least: NAME }),
  column('status', ({ status }) => status, {
    shown: ({ status, rotation, disabledByPolicy, budgets }) =>
      [
        status,
        ...(disabledByPolicy ? ['unused'] : []),
        ...(rotation ? ['rotating'] : []),
        ...budgets.map(({ left, limit }) => (left === 0 ? 'spent' : `${left} left of ${limit}`)),
      ].join(', '),
  }),
  grantColumn('roles', ({ roles }) => roles),
  grantColumn('permissions', ({ permissions }) => permissions),
  column('prefix', ({ prefix }) => prefix, { least: TEXT }),
  time('created', ({ createdAt }) => createdAt),
  time('expires', ({ expiresAt }) => expiresAt, 1),
  time('last-used', ({ lastUsedAt }) => lastUsedAt, 2),
  column('uses', ({ uses }) => uses),
  column('rotation', ({ rotation }) => rotation, { least: TEXT }),
];
const PICKABLE: readonly KeyColumn[] = [
  ...ALL_COLUMNS,
  grantColumn('grants', ({ roles, permissions }) => [...roles, ...permissions]),
  column('unknown-grants', ({ unknownGrants }) => unknownGrants, { least: TEXT }),
  column('budgets', ({ budgets }) => budgets, { least: TEXT }),
  ...namesOf(identityFields).map((name) => column(kebab(name), (key) => key[name], { least: TEXT })),
  column('id', ({ id }) => id, { least: TEXT }),
  ...namesOf({ ...restrictionFields, ...labelFields }).map((name) =>
    column(kebab(name), (key) => key[name], { least: TEXT }),
  ),
];
/** The default columns of a terminal. */
export const DEFAULT_COLUMNS = ['name', 'grants', 'status', 'last-used', 'expires'].map(pick);

export const COLUMN_NAMES: readonly string[] = PICKABLE.map((column) => column.name);

/** The columns with these names, each once; case and the form of word breaks don't matter. @throws CliError USAGE */
export function pickColumns(names: readonly string[]): KeyColumn[] {
  return [...new Set(names.map(pick))].map((column) => ({ ...column, least: 1 }));
}

function pick(text: string): KeyColumn {
  const wanted = formOf(text);
  const found = PICKABLE.find((column) => formOf(column.name) === wanted);
  if (found) return found;
  const [first] = nearest(
    text.trim(),
    COLUMN_NAMES.map((known) => known.toUpperCase()),
    1,
  );
  const remedy = first ? `Did you mean ${first.toLowerCase()}?` : `The columns are ${formatList(COLUMN_NAMES)}.`;
  throw new CliError('USAGE', `"${printable(text)}" is not a column of the list. ${remedy}`);
}

function formOf(text: string): string {
  return text.toLowerCase().replaceAll(/[\s_-]/g, '');
}

function column(
  name: string,
  value: (key: KeyJson) => Exclude<KeyJson[keyof KeyJson], undefined>,
  rest: Omit<Column, 'title'> & Pick<KeyColumn, 'shown'> = {},
): KeyColumn {
  const title = name.toUpperCase().replace('-', ' ');
  return { name, title, text: (key) => fieldText(name, value(key)), ...rest };
}

/** A column of grants; a terminal marks unknown ones. */
function grantColumn(name: string, grantsOf: (key: KeyJson) => string[]): KeyColumn {
  const shown = (key: KeyJson) =>
    fieldText(
      name,
      grantsOf(key).map((grant) => (key.unknownGrants.includes(grant) ? `${grant} (unknown)` : grant)),
    );
  return column(name, grantsOf, { shown, least: TEXT });
}

/** A column of times, in RFC 3339 format for programs. */
function time(name: string, value: (key: KeyJson) => string | null, leaves?: number): KeyColumn {
  const shown = (key: KeyJson) => {
    const at = value(key);
    return at === null ? 'never' : relativeTime(Date.parse(at));
  };
  return column(name, value, { shown, ...(leaves !== undefined && { leaves }) });
}
