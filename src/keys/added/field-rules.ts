import {
  anyNumber,
  formatList,
  kindOf,
  list,
  oneOf,
  options,
  printable,
  required,
  type Rule,
  suggestion,
  yesOrNo,
} from '../basics/index.ts';
import type {
  AddedField,
  ChoiceField,
  FlagField,
  JsonField,
  LineField,
  ListField,
  NumberField,
  NumberRange,
  TextField,
  TimeField,
} from './field-types.ts';
import { whole, words } from './text-rules.ts';

const UNFILTERED = {
  label: required(words),
  help: required(words),
  example: words,
  asked: yesOrNo,
  removable: yesOrNo,
};
const COMMON = { ...UNFILTERED, filter: yesOrNo };
const LENGTH = whole(1, 1000);
/** Beyond these, decimal numbers have no decimals. */
const BOUND: Rule<number> = (value, name) =>
  anyNumber(value, name) ??
  (Math.abs(value as number) <= Number.MAX_SAFE_INTEGER
    ? undefined
    : `is ${value as number}. It must be a number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}.`);
const RANGE = { integer: yesOrNo, min: BOUND, max: BOUND };
const VALUES = { values: required(list(words, 1)) };

/** The most characters of a line that keys are selected by. */
const MAX_FILTERED = 500;

/** The properties of each kind, with their rules. */
const KINDS = {
  line: options<LineField>({ ...COMMON, kind: required(oneOf('line')), max: LENGTH }),
  text: options<TextField>({ ...UNFILTERED, kind: required(oneOf('text')), max: whole(1, 4000) }),
  number: options<NumberField>({ ...COMMON, kind: required(oneOf('number')), ...RANGE }),
  choice: options<ChoiceField>({ ...COMMON, kind: required(oneOf('choice')), ...VALUES }),
  flag: options<FlagField>({ ...COMMON, kind: required(oneOf('flag')) }),
  time: options<TimeField>({ ...UNFILTERED, kind: required(oneOf('time')) }),
  json: options<JsonField>({ ...UNFILTERED, kind: required(oneOf('json')), bytes: whole(1, 4096) }),
  list: (value, path) => ruleOfList(value, path),
} satisfies Record<AddedField['kind'], Rule<AddedField>>;

const LIST = { ...COMMON, kind: required(oneOf('list')), items: whole(1, 100) };
/** The rules for the properties of a list, by the kind of its items. */
const LISTS = {
  line: options<ListField & { of?: 'line' }>({ ...LIST, of: oneOf('line'), max: LENGTH }),
  number: options<ListField & { of: 'number' }>({ ...LIST, of: required(oneOf('number')), ...RANGE }),
  choice: options<ListField & { of: 'choice' }>({ ...LIST, of: required(oneOf('choice')), ...VALUES }),
};

/** A field of a plugin. */
export const ruleOfField: Rule<AddedField> = (value, path) => {
  const name = path.slice(path.lastIndexOf('.') + 1);
  const { kind } = (value ?? {}) as { kind?: unknown };
  if (isOneOf(KINDS, kind)) return KINDS[kind](value, path) ?? problemOfValues(name, value as AddedField);
  return `Its field "${name}" has the kind ${shown(kind)}. ${choiceOf(kind, KINDS)}The kinds are ${formatList(Object.keys(KINDS))}.`;
};

const ruleOfList: Rule<ListField> = (value, path) => {
  const { of = 'line' } = value as { of?: unknown };
  if (isOneOf(LISTS, of)) return LISTS[of](value, path);
  const name = path.slice(path.lastIndexOf('.') + 1);
  return `Its field "${name}" is a list of ${shown(of)}. ${choiceOf(of, LISTS)}A list can be of ${formatList(Object.keys(LISTS), 'or')}.`;
};

function isOneOf<Table extends object>(table: Table, name: unknown): name is keyof Table {
  return typeof name === 'string' && Object.hasOwn(table, name);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${printable(value)}"` : kindOf(value);
}

function choiceOf(value: unknown, table: object): string {
  return typeof value === 'string' ? suggestion(value, Object.keys(table)) : '';
}

function problemOfValues(name: string, field: AddedField): string | undefined {
  const of = field.kind === 'list' ? { ...field, kind: field.of ?? 'line' } : field;
  const problem =
    (of.kind === 'number' && problemOfRange(of as NumberRange)) ||
    (of.kind === 'choice' && problemOfChoice(of as ChoiceField, field.kind === 'list')) ||
    (of.kind === 'line' && problemOfFilter(of as LineField));
  return problem ? `Its field "${name}" has ${problem}` : undefined;
}

function problemOfRange({ integer, min, max }: NumberRange): string | undefined {
  if (min !== undefined && max !== undefined && min > max) return 'a "min" above its "max".';
  const isWhole = (bound = 0) => Number.isInteger(bound) && bound >= -(2 ** 31) && bound < 2 ** 31;
  if (!integer || (isWhole(min) && isWhole(max))) return undefined;
  return 'a "min" or "max" that is no whole number of 32 bits, and "integer".';
}

// PostgreSQL indexes at most 2,704 bytes a row, and a character takes up to four.
function problemOfFilter({ filter, max = 0 }: LineField): string | undefined {
  return filter && max > MAX_FILTERED ? `a "filter", and a "max" of more than ${MAX_FILTERED} characters.` : undefined;
}

function problemOfChoice({ values }: ChoiceField, isListed: boolean): string | undefined {
  const stored = new Set(values.map((word) => word.trim().normalize()));
  if (stored.size < values.length || values.some((word) => !stored.has(word)))
    return 'values that are equal, have spaces around them, or are not in the Unicode form NFC.';
  return isListed && values.some((word) => /[,;]/.test(word))
    ? 'values with a comma or semicolon, which separates items.'
    : undefined;
}
