import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import type { AddedFlag, CommandAddition } from '../../feature.ts';
import { CliError } from '../errors.ts';
import { kebab } from '../../keys/added/index.ts';
import {
  assertValid,
  BUDGET_UNITS,
  clampTime,
  DEFAULT_PAGE_SIZE,
  durationHint,
  formatList,
  formatTime,
  KeysError,
  type Limit,
  MAX_PAGE_SIZE,
  printable,
  readDuration,
  splitLimit,
} from '../../keys/basics/index.ts';
import {
  type Field,
  type FieldFilters,
  type FieldInput,
  fieldsOf,
  type FieldTable,
  filterFields,
  filterHelp,
  isNone,
  type KeyChange,
  keyFields,
  labelFields,
  restrictionFields,
} from '../../keys/key/index.ts';
import type { KeyFilters } from '../../keys/lists/index.ts';
import { isCursor } from '../../keys/service/index.ts';

export function exclusiveFlags(...flags: readonly string[]): CliError {
  return new CliError('USAGE', `${flags.join(' and ')} cannot be used together. Pass one of them.`);
}

/** For commands with questions. */
export const noInputFlag = Flags.boolean({
  description: 'Never ask questions: a missing value is an error, as it is without a terminal.',
  helpGroup: 'GLOBAL',
});

/** For commands with confirmations. */
export const yesFlag = Flags.boolean({
  description: 'Answer every confirmation with yes.',
  helpGroup: 'GLOBAL',
});

/** A comma-separated list. Empty items are kept, so that they can be refused. */
const list = { multiple: true, multipleNonGreedy: true, delimiter: ',' } as const;

export const nameFlag = Flags.string({
  description: 'Name of the key: letters, digits and spaces, at most 100 characters.',
  helpValue: '<name>',
});

/** The name as an argument. Without `ignoreStdin`, oclif would read a missing one from stdin. */
export const nameArgs = {
  name: Args.string({ description: 'Name of the key, instead of --name.', ignoreStdin: true }),
};

export const rolesFlag = (description: string) => Flags.string({ ...list, description, helpValue: '<role,…>' });

export const permissionsFlag = (description: string) =>
  Flags.string({ ...list, description, helpValue: '<resource:action,…>' });

/** The flags for the permissions and the lifetime of a key. */
export const grantFlags = {
  roles: rolesFlag('Roles to grant, comma-separated: ADMIN, CONNECT, VIEWER, GUEST, or one of svc-api.yaml.'),
  permissions: permissionsFlag(
    'Permissions to grant, comma-separated, each as RESOURCE:ACTION, such as GRAFANA:READ_ANY. Resources of your own ' +
      'are declared in svc-api.yaml.',
  ),
  'expires-in': Flags.string({
    aliases: ['ttl'],
    description: 'Let the key expire after this time: a number followed by s, m, h, d or w.',
    helpValue: '90m|12h|30d',
  }),
  'expires-at': Flags.string({
    description: 'Let the key expire at this date and time, in RFC 3339 format: 2030-12-31T23:59:59Z.',
    helpValue: '<date>',
  }),
};

/** The flag of a field: a field `costCentre` has `--cost-centre`. */
function flagOf(name: string, { flag = kebab(name) }: Field<unknown>): string {
  return flag;
}

/** Limits have three flags of their own. */
const { limits: _limits, ...otherRestrictions } = restrictionFields;
const { limits: _ownFlags, ...otherFields } = keyFields;

const FIELDS = fieldsOf(otherFields).map(([name, field]) => ({ name, field, flag: flagOf(name, field) }));
const LISTS = FIELDS.filter(({ field }) => field.form === 'list' && !field.isKept).map((listed) => ({
  ...listed,
  none: `no-${kebab(listed.name)}`,
}));

/** The words that the field of a flag can have; undefined for any text. */
export function wordsOfFlag(flag: string): readonly string[] | undefined {
  return FIELDS.find((each) => each.flag === flag)?.field.words;
}

function flagsOf(table: FieldTable) {
  const flags = fieldsOf(table).map(([name, field]) => {
    const { form, help, example = 'text' } = field;
    const flag =
      form === 'list'
        ? Flags.string({ ...list, description: `${help} Can be repeated.`, helpValue: `<${example},…>` })
        : Flags.string({ description: help, helpValue: `<${example}>` });
    return [flagOf(name, field), flag] as const;
  });
  return Object.fromEntries(flags);
}

/** The flags for the number of requests, and the networks, of a key. */
export const restrictionFlags = {
  ...flagsOf(otherRestrictions),
  rate: Flags.string({
    ...list,
    description:
      'Rate limit of the key, such as 100/m: a number of requests, and s, m, h, d or month. Can be repeated.',
    helpValue: '100/m',
  }),
  budget: Flags.string({
    description:
      'Total number of requests the key can make. It never refills. On some routes, a request can count more than ' +
      'once.',
    helpValue: '<number>',
  }),
  uses: Flags.string({ description: 'Number of times the key can be used: 1 for once.', helpValue: '<number>' }),
};

/** The flags that describe a key. */
export const labelFlags = flagsOf(labelFields);

/** The flags of a new key, besides its name. */
export const newKeyFlags = {
  ...grantFlags,
  ...restrictionFlags,
  ...labelFlags,
  overwrite: Flags.boolean({
    description: 'Replace an existing key of that name: new secret, new id. Keys that it created are deleted.',
  }),
};

export function inGroup<Of extends Interfaces.FlagInput>(helpGroup: string, flags: Of): Of {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, helpGroup }])) as Of;
}

/** The flags of features for a command. */
export function addedFlags(additions: readonly CommandAddition[]): Interfaces.FlagInput {
  const flagOf = ({ description, value, group, isList, isHidden }: AddedFlag) => {
    const shown = { description, ...(group !== undefined && { helpGroup: group }), ...(isHidden && { hidden: true }) };
    if (value === undefined) return Flags.boolean(shown);
    return isList
      ? Flags.string({ ...list, ...shown, helpValue: value })
      : Flags.string({ ...shown, helpValue: value });
  };
  const all = additions.flatMap(({ flags }) => Object.entries(flags));
  return Object.fromEntries(all.map(([name, flag]) => [name, flagOf(flag)]));
}

const FILTERS = fieldsOf(filterFields).map(([name, field]) => ({ name, field, flag: flagOf(name, field) }));

function filterFlagOf(field: Field<unknown>) {
  const description = filterHelp(field);
  const example = field.filter?.example ?? field.example ?? 'text';
  return field.form === 'list'
    ? Flags.string({ ...list, description, helpValue: `<${example},…>` })
    : Flags.string({ description, helpValue: `<${example}>` });
}

export const listFlags = {
  roles: rolesFlag('Only keys with one of these roles.'),
  status: Flags.string({
    description: 'Only keys with this status: active, disabled or expired.',
    helpValue: '<status>',
  }),
  search: Flags.string({ description: 'Only keys whose name or description contains this text.', helpValue: '<text>' }),
  ...Object.fromEntries(FILTERS.map(({ flag, field }) => [flag, filterFlagOf(field)])),
  parent: Flags.string({
    description: 'Only child keys of this key: those that the key with this name or id created.',
    helpValue: '<name>',
  }),
  'unused-for': Flags.string({
    description: 'Only keys that are older than this, and have not been used for as long.',
    helpValue: '90d',
  }),
  'expires-within': Flags.string({
    description: 'Only keys that expire within this time, and have not expired yet.',
    helpValue: '14d',
  }),
};

/** The flags of a command that changes the keys selected by filters, if no name is given. */
export function selectFlags<Filters extends Interfaces.FlagInput>(filters: Filters) {
  return {
    ...inGroup('SELECT', filters),
    'dry-run': Flags.boolean({ description: 'Show which keys would change, without changing them.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };
}

export const changeFlags = {
  rename: Flags.string({ description: 'New name.', helpValue: '<name>' }),
  ...labelFlags,
  ...grantFlags,
  ...restrictionFlags,
  'no-roles': Flags.boolean({ description: 'Remove all roles except those in --roles.' }),
  'no-permissions': Flags.boolean({ description: 'Remove all permissions except those in --permissions.' }),
  ...Object.fromEntries(
    LISTS.map(({ none, field: { label, noneText } }) => [
      none,
      Flags.boolean({
        description: noneText
          ? `Remove the restriction. The key can then be ${label.toLowerCase()} ${noneText}.`
          : `Remove all ${label.toLowerCase()}.`,
      }),
    ]),
  ),
  'no-limits': Flags.boolean({ description: 'Remove all limits: those of --rate, --budget and --uses.' }),
  'no-expiry': Flags.boolean({ description: 'Remove the expiry.' }),
};

/** The prefix of filters in a command that also has flags which set the same fields. */
export const WHERE = 'where-';

/** The flags of `listFlags` for changes. Those that set nothing are also accepted without the prefix. */
export const filtersOfChange = Object.fromEntries(
  Object.entries(listFlags).map(([name, flag]) => [
    `${WHERE}${name}`,
    Object.hasOwn(changeFlags, name) ? flag : { ...flag, aliases: [name] },
  ]),
);

/** The filters among the flags of a change, under their names in lists. */
export function filtersInChange(flags: Readonly<Record<string, unknown>>): FlagValues<typeof listFlags> {
  return Object.fromEntries(Object.keys(listFlags).map((name) => [name, flags[`${WHERE}${name}`]]));
}

/** Flags of a change that exclude one another. */
const EXCLUSIVE = [
  ['expires-in', 'expires-at', 'no-expiry'],
  ...LISTS.map(({ flag, none }) => [flag, none]),
  ['rate', 'no-limits'],
  ['budget', 'no-limits'],
  ['uses', 'no-limits'],
];

/** The values of the given flags. */
type FlagValues<Of extends Interfaces.FlagInput> = Partial<Interfaces.InferredFlags<Of>>;

/** The common fields of the flags for a new key and for a change, under the names of the rules. */
function fieldsIn(flags: FlagValues<typeof grantFlags & typeof restrictionFlags>) {
  const { roles, permissions } = flags;
  const given: Readonly<Record<string, unknown>> = flags;
  const fields: FieldInput = Object.fromEntries(
    FIELDS.map(({ name, flag, field }) => [name, valueOf(field, given[flag])]),
  );
  const limits = limitsIn(flags);
  const expiry = { expiresIn: flags['expires-in'], expiresAt: flags['expires-at'] };
  return { ...fields, roles, permissions, limits, ...expiry };
}

/**
 * The value of a field from its flag.
 * @throws ValidationError for an invalid number or refused JSON: on the way to a server, NaN and Infinity would become
 * null
 */
function valueOf(field: Field<unknown>, given: unknown): unknown {
  const value = readValue(field, given);
  const isLost = [value].flat().some((each) => typeof each === 'number' && !Number.isFinite(each));
  if (isLost || (field.form === 'json' && value !== undefined)) assertValid(field.validate(value));
  return value;
}

function readValue({ fromText, fromTexts }: Field<unknown>, given: unknown): unknown {
  if (typeof given === 'string' && fromText) return fromText(given);
  return Array.isArray(given) && fromTexts ? fromTexts(given as string[]) : given;
}

/** The limits in flags; undefined for none. @throws KeysError INPUT_INVALID */
export function limitsIn(flags: FlagValues<typeof restrictionFlags>): string[] | undefined {
  const budgets = BUDGET_UNITS.flatMap((unit) => {
    const count = readNumber(flags[unit], `--${unit}`);
    return count === undefined ? [] : [`${count}/${unit}`];
  });
  const { rate = [] } = flags;
  return flags.rate || budgets.length > 0 ? [...rate, ...budgets] : undefined;
}

export function requestOf(flags: FlagValues<typeof newKeyFlags> & { name?: string | undefined }) {
  return { ...fieldsIn(flags), name: flags.name, overwrite: flags.overwrite };
}

/**
 * Keeps a key's other limits in a change: of rates, budget and uses, flags replace only their own kind.
 * @param now the present limits of the key
 */
export function withLimitsKept(
  change: KeyChange,
  flags: FlagValues<typeof changeFlags>,
  now: readonly Limit[],
): KeyChange {
  if (!change.limits || flags['no-limits']) return change;
  const isKept = (limit: Limit) => {
    const { unit } = splitLimit(limit);
    return flags[unit === 'budget' || unit === 'uses' ? unit : 'rate'] === undefined;
  };
  return { ...change, limits: [...change.limits, ...now.filter(isKept)] };
}

/** The change in flags, without the limits that stay. @throws CliError USAGE */
export function changeOf(flags: FlagValues<typeof changeFlags>): KeyChange {
  for (const exclusive of EXCLUSIVE) {
    const given = exclusive.filter((flag) => flags[flag as keyof typeof flags] !== undefined);
    if (given.length > 1) throw exclusiveFlags(...given.map((flag) => `--${flag}`));
  }
  const { roles, permissions, limits, expiresAt, ...fields } = fieldsIn(flags);
  const given: Readonly<Record<string, unknown>> = flags;
  const change = {
    ...fields,
    name: flags.rename,
    roles: roles ?? (flags['no-roles'] ? [] : undefined),
    permissions: permissions ?? (flags['no-permissions'] ? [] : undefined),
    ...Object.fromEntries(LISTS.flatMap(({ name, none, field }) => (given[none] ? [[name, field.none]] : []))),
    limits: flags['no-limits'] ? [] : limits,
    expiresAt: flags['no-expiry'] ? null : expiresAt,
  };
  if (Object.values(change).some((value) => value !== undefined)) return change;
  const names = Object.keys(changeFlags).map((flag) => `--${flag}`);
  throw new CliError('USAGE', `There is nothing to change. Pass ${formatList(names, 'or')}.`);
}

/** True if a command shows a plan first: for filters, and for --dry-run. @throws CliError USAGE */
export function showsPlan(
  { name, ...flags }: { name: string | undefined } & Readonly<Record<string, unknown>>,
  filters: Interfaces.FlagInput,
): boolean {
  const filter = Object.keys(filters).find((flag) => flags[flag] !== undefined);
  if (filter !== undefined && name !== undefined)
    throw new CliError('USAGE', `--${filter} selects keys, but a name is given as well. Leave one out.`);
  const isDryRun = flags['dry-run'] !== undefined;
  if (isDryRun && filter === undefined && name === undefined)
    throw new CliError('USAGE', 'Which keys? Pass a name, or a filter such as --unused-for 90d.');
  return filter !== undefined || isDryRun;
}

/**
 * The filters in flags, except the parent.
 * @param prefix the prefix of their flags, for errors
 * @throws CliError USAGE if one is empty; INPUT_INVALID
 */
export function filtersOf(flags: FlagValues<typeof listFlags>, prefix = ''): KeyFilters {
  const now = Date.now();
  const { roles, status, search } = flags;
  const given: Readonly<Record<string, unknown>> = flags;
  // An empty filter, such as an unset variable of a script, would select all keys.
  const empty =
    ['search', 'parent'].find((name) => typeof given[name] === 'string' && given[name].trim() === '') ??
    FILTERS.find(({ flag, field }) => given[flag] !== undefined && isEmpty(field, readValue(field, given[flag])))?.flag;
  if (empty !== undefined) throw new CliError('USAGE', `--${prefix}${empty} is empty. Give a text, or leave it out.`);
  const fields: FieldFilters = Object.fromEntries(
    FILTERS.map(({ name, flag, field }) => [name, valueOf(field, given[flag])]),
  );
  return {
    roles,
    status,
    search,
    ...fields,
    unusedSince: timeAway(flags['unused-for'], `--${prefix}unused-for`, (span) => now - span),
    expiresBefore: timeAway(flags['expires-within'], `--${prefix}expires-within`, (span) => now + span),
  };
}

/** True for a valid value that is read as none, such as a list of blank texts. */
function isEmpty(field: Field<unknown>, value: unknown): boolean {
  return field.validate(value).length === 0 && isNone(field.read(value));
}

function timeAway(text: string | undefined, flag: string, timeOf: (span: number) => number): string | undefined {
  if (text === undefined) return undefined;
  const span = readDuration(text);
  if (span !== undefined && span > 0) return formatTime(clampTime(timeOf(span)));
  const remedy = durationHint(text) ?? 'Write a number with s, m, h, d or w, such as 90d.';
  throw new KeysError('INPUT_INVALID', `${flag} is "${printable(text)}", which is not a duration. ${remedy}`);
}

/** Reads the value of a numeric flag. @param remedy the remedy for other values @throws KeysError INPUT_INVALID */
export function readNumber(text: string | undefined, flag: string, remedy = ''): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text.trim()))
    throw new KeysError('INPUT_INVALID', `${flag} is "${printable(text)}", which is not a number.${remedy}`);
  return Number(text);
}

/** The flag for the number of items to show. */
export function limitFlag(plural: string) {
  return Flags.string({
    description: `Number of ${plural} to show, up to ${MAX_PAGE_SIZE}. Default: ${DEFAULT_PAGE_SIZE}.`,
    helpValue: '<number>',
  });
}

/** Reads the value of `--limit`. @throws KeysError INPUT_INVALID */
export function readLimit(text: string | undefined, plural: string): number | undefined {
  const limit = readNumber(text, '--limit');
  if (limit === undefined || (limit >= 1 && limit <= MAX_PAGE_SIZE)) return limit;
  throw new KeysError('INPUT_INVALID', `--limit is ${limit}; a page has 1 to ${MAX_PAGE_SIZE} ${plural}.`);
}

/** Reads the value of `--after`. @throws KeysError INPUT_INVALID */
export function readAfter(text: string | undefined): string | undefined {
  if (text === undefined || isCursor(text)) return text;
  const remedy = 'Pass the one from the end of the previous page: "next" in JSON.';
  throw new KeysError(
    'INPUT_INVALID',
    `--after is "${printable(text)}", which is not a cursor of this list. ${remedy}`,
  );
}
