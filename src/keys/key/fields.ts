import { Buffer } from 'node:buffer';
import {
  anyNumber,
  anyText,
  formatList,
  formatTime,
  isRecord,
  type Issue,
  type Limit,
  list as listOf,
  NO_LIMITS,
  normalizeText,
  orNull,
  parseLimits,
  printable,
  printableJson,
  readDate,
  readDay,
  type Rule,
  suggestion,
  yesOrNo,
} from '../basics/index.ts';
import { type Catalog, parsePermissions, parseRoles } from '../permissions/index.ts';
import { addedFields, type ListField, type NumberRange, type RegisteredField } from '../added/index.ts';
import { holdsSecret } from '../secret/index.ts';
import { readAudience } from './audience.ts';
import { type LineRule, normalizeLine, normalizeLines, parseTags, validateLine } from './labels.ts';
import { parseNetworks, validateNetworks } from './allow-from.ts';
import { identityFields } from './identities.ts';
import { normalizeName, validateName } from './name.ts';
import { audienceRestriction, limitRestriction, networkRestriction, type Restriction } from './restriction.ts';

/** The rules of a field that is set on a key. The catalog says what can be granted. */
export interface GivenField<Value, Given = Value> {
  /** The value of a key without the field. */
  readonly none: Value;
  /** The type of its texts and values. */
  readonly form: 'text' | 'list' | 'number' | 'boolean' | 'json';
  /** The type in GraphQL of a number, or of the items of a list that are numbers. */
  readonly numbers?: 'Int' | 'Float';
  /** The rule for values that programs give. */
  readonly rule: Rule<Given>;
  /** The issues with a given value. */
  validate(given: Given, catalog: Catalog): Issue[];
  /** Reads a validated value. */
  read(given: Given, catalog: Catalog): Value;
  /** Validates and reads a list of texts in one pass. */
  parse?(texts: readonly string[], catalog: Catalog): { values: readonly unknown[]; issues: Issue[] };
}

/** A field of a key that has no column of its own: its rules, its form in a store, and its texts for users. */
export interface Field<Value, Given = Value> extends GivenField<Value, Given> {
  /** Identifies the field in stores. Never change or reuse it. Fields of plugins have a text. */
  readonly id: number | string;
  /** The name shown to users. */
  readonly label: string;
  /** A sentence for flags, forms and schemas. */
  readonly help: string;
  /** Its descriptions in GraphQL. Default: `help`. */
  readonly graphql?: { readonly output?: string; readonly input?: string };
  /** A value as flags and prompts show it. Default: text. */
  readonly example?: string;
  /** Its flag, if named differently. Stores contain it for fields with a filter: never change it. */
  readonly flag?: string;
  /** True if prompts for a new key ask for it. */
  readonly isAsked?: boolean;
  /** True if a change can replace its value, but not remove it. */
  readonly isKept?: boolean;
  /** True for a text of several lines. */
  readonly hasLines?: boolean;
  /** The words that its text, or each item, can be. Default: any text. */
  readonly words?: readonly string[];
  /** The words for a missing value. Default: none. */
  readonly noneText?: string;
  /** The filter that selects keys by it. Default: none. */
  readonly filter?: Filter;
  /** The rule that says which changes give a key more access. Default: none. */
  readonly widens?: Restriction<Value>;
  /** Its JSON Schema in a declaration, without the description. */
  readonly schema: object;
  validate(given: Given): Issue[];
  read(given: Given): Value;
  /** Reads text, for fields that are neither text nor a list; NaN for unreadable text. */
  readonly fromText?: (text: string) => Given;
  /** Reads texts, for lists of anything else; NaN for unreadable ones. */
  readonly fromTexts?: (texts: readonly string[]) => Given;
  /** Reads a stored value; undefined if it cannot be read. @param isIntact true if the row matches its checksum */
  readStored(value: unknown, isIntact: boolean): Value | undefined;
}

/** A filter selects keys by a field: by equal text, ignoring case, or by all items of a list. */
export interface Filter {
  /** A sentence for its flag and forms. Default: one that says that keys have the value. */
  readonly help?: string;
  /** A value as its flag shows it. Default: that of the field. */
  readonly example?: string;
}

/** Properties that all kinds of fields share. */
type Common = Pick<
  Field<unknown>,
  'id' | 'label' | 'help' | 'graphql' | 'example' | 'flag' | 'isAsked' | 'isKept' | 'noneText'
>;

/** The most code points of a text. */
export const MAX_LINE_LENGTH = 1000;

/** The most code points of a text of several lines. */
export const MAX_TEXT_LENGTH = 4000;

/** Text of one line, or of several. */
function line({
  max,
  code = 'INPUT_INVALID',
  hasLines = false,
  isItem = false,
  ...common
}: Common & Pick<LineRule, 'max' | 'hasLines' | 'isItem'> & { code?: Issue['code'] }) {
  const normalize = hasLines ? normalizeLines : normalizeLine;
  return (name: string): Field<string | null> => {
    const validate = (given: string | null) =>
      given === null ? [] : validateLine(given, { name, max, code, hasLines, isItem });
    return {
      ...common,
      form: 'text',
      none: null,
      ...(hasLines && { hasLines }),
      schema: {
        type: ['string', 'null'],
        pattern: hasLines ? '^(?:[\\n\\r\\t]|[^\\p{Cc}\\p{Cs}\\u2028\\u2029])*$' : '^[^\\p{Cc}\\p{Cs}\\u2028\\u2029]*$',
        maxLength: max,
      },
      rule: orNull(anyText),
      validate,
      read: normalize,
      readStored: (value) => (typeof value === 'string' ? value : undefined),
    };
  };
}

/** Parses texts; different spellings of the same item give the same value. */
type Parse<Item extends string> = (texts: readonly string[]) => { values: Item[]; issues: Issue[] };

/** A list of texts. */
function list<Item extends string>({
  parse,
  none = [],
  ...common
}: Common & { parse: Parse<Item>; none?: readonly Item[] }) {
  return (): Field<readonly Item[], readonly string[]> => ({
    ...common,
    form: 'list',
    none,
    schema: { type: 'array', items: { type: 'string' } },
    rule: listOf(anyText),
    validate: (given) => parse(given).issues,
    read: (given) => parse(given).values,
    parse: (given) => parse(given),
    readStored: (value, isIntact) => readItems(value, isIntact ? undefined : parse),
  });
}

/** A list of at least one text, or null for no list. */
function listOrNull<Item extends string>({
  parse,
  validate,
  ...common
}: Common & { parse: Parse<Item>; validate: (texts: readonly string[]) => Issue[] }) {
  return (): Field<readonly Item[] | null, readonly string[] | null> => ({
    ...common,
    form: 'list',
    none: null,
    schema: { type: ['array', 'null'], minItems: 1, items: { type: 'string' } },
    rule: orNull(listOf(anyText)),
    validate: (given) => (given === null ? [] : validate(given)),
    read: (given) => given && parse(given).values,
    parse: (given) => parse(given),
    readStored: (value, isIntact) => {
      const items = readItems(value, isIntact ? undefined : parse);
      return items?.length === 0 ? undefined : items;
    },
  });
}

/** A number within a range: a whole one of at most 32 bits as in GraphQL, or a decimal one. */
export function number({
  min,
  max,
  code = 'INPUT_INVALID',
  isDecimal = false,
  ...common
}: Common & { min: number; max: number; code?: Issue['code']; isDecimal?: boolean }) {
  return (): Field<number | null> => {
    const kind = isDecimal ? 'number' : 'whole number';
    const message = `The ${common.label.toLowerCase()} must be a ${kind} from ${min} to ${max}.`;
    const isNumber = isDecimal ? Number.isFinite : isInt32;
    const fits = (value: unknown) => isNumber(value) && (value as number) >= min && (value as number) <= max;
    return {
      ...common,
      form: 'number',
      numbers: isDecimal ? 'Float' : 'Int',
      none: null,
      schema: { type: [isDecimal ? 'number' : 'integer', 'null'], minimum: min, maximum: max },
      rule: orNull(anyNumber),
      validate: (given) => (given === null || fits(given) ? [] : [{ code, message }]),
      fromText: (text) => (text.trim() === '' ? null : readDecimal(text)),
      read: (given) => given,
      readStored: (value) => (isNumber(value) ? (value as number) : undefined),
    };
  };
}

/** A decimal number; NaN for other text, such as `0x10`, which JavaScript reads as a number. */
function readDecimal(text: string): number {
  return /^[-+.\de\s]+$/i.test(text) ? Number(text) : Number.NaN;
}

function isInt32(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= -(2 ** 31) && (value as number) < 2 ** 31;
}

/** One of a fixed set of words, ignoring case. */
export function word<const Word extends string>({
  words,
  code = 'INPUT_INVALID',
  ...common
}: Common & { words: readonly Word[]; code?: Issue['code'] }) {
  return (): Field<Word | null> => {
    const find = (text: string) => {
      const given = normalizeText(text.trim());
      return words.find((each) => each === given) ?? words.find((each) => each.toLowerCase() === given.toLowerCase());
    };
    const validate = (given: string | null): Issue[] => {
      if (!given?.trim() || find(given) !== undefined) return [];
      const remedy = `${suggestion(given, words)}Choose ${formatList(words, 'or')}.`;
      return [{ code, message: `The ${common.label.toLowerCase()} "${printable(given)}" is unknown. ${remedy}` }];
    };
    return {
      ...common,
      form: 'text',
      words,
      none: null,
      schema: {
        type: ['string', 'null'],
        pattern: `^\\s*(?:${words.map(inAnyCase).join('|')})?\\s*$`,
        examples: words,
      },
      rule: orNull(anyText) as Rule<Word | null>,
      validate,
      read: (given) => find(given ?? '') ?? null,
      readStored: (value) => words.find((each) => each === value),
    };
  };
}

/** A pattern for a word in upper or lower case, for JSON Schema, which has no flags. */
function inAnyCase(text: string): string {
  return Array.from(text, (letter) => {
    const [upper, lower] = [letter.toUpperCase(), letter.toLowerCase()];
    return upper === lower ? RegExp.escape(letter) : `[${upper}${lower}]`;
  }).join('');
}

/** Yes or no. */
function flag(common: Common) {
  return (): Field<boolean | null> => {
    const message = `The ${common.label.toLowerCase()} must be true or false.`;
    const fits = (value: unknown): value is boolean | null => value === null || typeof value === 'boolean';
    const meanings = new Map<string, boolean | null>([
      ['', null],
      ['true', true],
      ['yes', true],
      ['false', false],
      ['no', false],
    ]);
    return {
      ...common,
      form: 'boolean',
      words: ['yes', 'no'],
      none: null,
      schema: { type: ['boolean', 'null'] },
      rule: orNull(yesOrNo),
      validate: (given) => (fits(given) ? [] : [{ code: 'INPUT_INVALID', message }]),
      fromText: (text) => {
        const value = meanings.get(text.trim().toLowerCase());
        return value === undefined ? (Number.NaN as never) : value;
      },
      read: (given) => given,
      readStored: (value) => (typeof value === 'boolean' ? value : undefined),
    };
  };
}

/** A day or a time, kept as a time in UTC. */
function time(common: Common) {
  return (): Field<string | null> => {
    const name = common.label.toLowerCase();
    const parse = (text: string) => (text.trim() === '' ? null : (readDate(text) ?? readDay(text)));
    const validate = (given: string | null): Issue[] => {
      if (given === null || parse(given) !== undefined) return [];
      const message = `The ${name} "${printable(given)}" is not a day or a time, such as 2030-01-31 or 2030-01-31T12:00:00Z.`;
      return [{ code: 'INPUT_INVALID', message }];
    };
    const read = (given: string | null) => formatTime(parse(given ?? '') ?? null);
    return {
      ...common,
      form: 'text',
      none: null,
      schema: { type: ['string', 'null'] },
      rule: orNull(anyText),
      validate,
      read,
      readStored: (value) => (typeof value === 'string' && read(value) === value ? value : undefined),
    };
  };
}

/** A JSON object, which is not interpreted. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The most bytes of a JSON object. */
export const MAX_JSON_BYTES = 4096;

/** A JSON object of limited size. */
export function json({ bytes, ...common }: Common & { bytes: number }) {
  return (name: string): Field<JsonObject | null> => {
    const problemOf = (given: unknown): string | undefined => {
      const unsafe: number[] = [];
      const text = isRecord(given) ? jsonText(given, unsafe) : undefined;
      if (text === undefined) return 'must be a JSON object, such as {"plan": "pro"}.';
      if (unsafe.length > 0) return `has the number ${unsafe[0]}, which cannot be kept exactly. Write it as text.`;
      const length = Buffer.byteLength(text);
      if (length > bytes) return `has ${length} bytes as JSON; at most ${bytes} are allowed.`;
      return holdsSecret(text) ? 'contains what looks like the secret of an API key. Leave it out.' : undefined;
    };
    const validate = (given: unknown): Issue[] => {
      const problem = given === null ? undefined : problemOf(given);
      return problem === undefined ? [] : [{ code: 'INPUT_INVALID', message: `The ${name} ${problem}` }];
    };
    const read = (given: JsonObject | null) => given && (JSON.parse(JSON.stringify(given)) as JsonObject);
    return {
      ...common,
      form: 'json',
      none: null,
      schema: { type: ['object', 'null'] },
      // GraphQL accepts any JSON; `validate` refuses everything else.
      rule: () => undefined,
      validate,
      fromText: (text) => (text.trim() === '' ? null : (parseRecord(text) ?? (Number.NaN as never))),
      read,
      readStored: (value) => (isRecord(value) ? value : undefined),
    };
  };
}

/** A value as JSON; undefined if JSON would change it. @param unsafe receives the numbers that JSON would change */
function jsonText(value: JsonObject, unsafe: number[]): string | undefined {
  try {
    return JSON.stringify(value, function (this: Record<string, unknown>, name) {
      // The member itself; the parameter is the result of `toJSON`.
      const member = this[name];
      if (!isJson(member) && (member !== undefined || Array.isArray(this))) throw new TypeError('No JSON');
      if (typeof member === 'number' && !(Math.abs(member) <= Number.MAX_SAFE_INTEGER)) unsafe.push(member);
      return member;
    });
  } catch {
    return undefined;
  }
}

/** True for JSON types only: lists, plain objects and primitive values. */
function isJson(value: unknown): boolean {
  if (!isRecord(value)) return value === null || ['object', 'string', 'number', 'boolean'].includes(typeof value);
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A list of distinct values of another field. @param most the number of items */
function listOfField({ most, ...common }: Common & { most: number }, item: AnyField) {
  return (): Field<readonly unknown[]> => {
    const { form, fromText, words } = item;
    const read = (given: readonly unknown[]) => [
      ...new Set(given.map((each) => item.read(each) as unknown).filter((each) => each !== null)),
    ];
    const countIssues = ({ length }: readonly unknown[]): Issue[] => {
      const message = `The ${common.label.toLowerCase()} has ${length} items; at most ${most} are allowed.`;
      return length > most ? [{ code: 'INPUT_INVALID', message }] : [];
    };
    return {
      ...common,
      form: 'list',
      ...(item.numbers && { numbers: item.numbers }),
      ...(words && { words }),
      none: [],
      schema: { type: 'array', items: withoutNull(item.schema) },
      rule: form === 'number' ? listOf(anyNumber) : listOf(anyText),
      validate: (given) => [...given.flatMap((each) => item.validate(each)), ...countIssues(read(given))],
      ...(fromText && { fromTexts: (texts) => texts.filter((text) => text.trim() !== '').map(fromText) }),
      read,
      readStored: (value, isIntact) =>
        Array.isArray(value) && value.every((each) => item.readStored(each, isIntact) !== undefined)
          ? value
          : undefined,
    };
  };
}

/** The schema of a value that is not missing. */
function withoutNull({ type, ...rest }: { type?: unknown }): object {
  return { type: [type].flat()[0], ...rest };
}

/** The texts of a list; undefined for anything else, and for items that cannot be parsed. */
function readItems<Item extends string>(value: unknown, parse?: Parse<Item>): readonly Item[] | undefined {
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return undefined;
  if (!parse) return value as Item[];
  const { values, issues } = parse(value);
  return issues.length === 0 ? values : undefined;
}

/** An address that is set when the key is made, and never changes. */
function address(common: Common) {
  return (name: string): Field<string | null> => ({
    ...common,
    form: 'text',
    none: null,
    schema: { type: ['string', 'null'] },
    rule: orNull(anyText),
    validate: (given) => {
      if (given === null || readAudience(given) !== undefined) return [];
      const message = `"${name}" is not an address, such as https://api.example.org/v1.`;
      return [{ code: 'INPUT_INVALID', message }];
    },
    read: (given) => (given === null ? null : readAudience(given)!),
    readStored: (value) => (typeof value === 'string' ? value : undefined),
  });
}

/** The name, which is required. */
const nameField: GivenField<string> = {
  form: 'text',
  none: '',
  rule: anyText,
  validate: (given) => [validateName(given) ?? []].flat(),
  read: normalizeName,
};

/** A list of roles or permissions. */
function grants<Grant extends string>(
  parse: (texts: readonly string[], catalog: Catalog) => ReturnType<Parse<Grant>>,
): GivenField<Grant[], readonly string[]> {
  return {
    form: 'list',
    none: [],
    rule: listOf(anyText),
    validate: (given, catalog) => parse(given, catalog).issues,
    read: (given, catalog) => parse(given, catalog).values,
    parse,
  };
}

// oxlint-disable typescript/no-explicit-any -- fields of any type
type AnyGivenField = GivenField<any, any>;
type AnyField = Field<any, any>;
// oxlint-enable typescript/no-explicit-any

/** A field with a filter. Keys of a store that already had the field need a migration: see `labelsOf`. */
function filtered<Of extends AnyField>(make: (name: string) => Of, filter: Filter = {}) {
  return (name: string) => ({ ...make(name), filter });
}

/** A field that restricts keys. */
function restricting<Value, Given>(make: (name: string) => Field<Value, Given>, widens: Restriction<Value>) {
  return (name: string) => ({ ...make(name), widens });
}

/** The fields of plugins, with functions that make them. */
function fieldsOfPlugins(): object {
  return Object.fromEntries(Array.from(addedFields(), ([name, field]) => [name, fieldOf(field)]));
}

function defineFields<Table extends Record<string, (name: string) => AnyField>>(table: Table) {
  return Object.fromEntries(Object.entries(table).map(([name, make]) => [name, make(name)])) as {
    readonly [Name in keyof Table]: ReturnType<Table[Name]>;
  };
}

/** Makes a field that a plugin describes. */
function fieldOf(field: RegisteredField): (name: string) => AnyField {
  const { id, label, help, example = exampleOf(field), asked, removable } = field;
  const common = {
    id,
    label,
    help,
    ...(example !== undefined && { example }),
    ...(asked && { isAsked: true }),
    ...(!removable && { isKept: true }),
  };
  const make = () => makerOf(field, common)(label.toLowerCase());
  return 'filter' in field && field.filter ? filtered(make) : make;
}

/** A value as flags show it, where the plugin has none. */
function exampleOf(field: RegisteredField): string | undefined {
  const kind = field.kind === 'list' ? field.of : field.kind;
  if ('values' in field) return field.values.join('|');
  if (kind === 'number' || kind === 'json') return kind;
  if (kind === 'time') return 'date';
  return kind === 'flag' ? 'yes|no' : undefined;
}

function makerOf(field: RegisteredField, common: Common): (name: string) => AnyField {
  const { kind } = field;
  if (kind === 'line') return line({ ...common, max: field.max ?? MAX_ADDED_LINE });
  if (kind === 'text') return line({ ...common, max: field.max ?? MAX_LINE_LENGTH, hasLines: true });
  if (kind === 'number') return number({ ...common, ...rangeOf(field) });
  if (kind === 'choice') return word({ ...common, words: field.values });
  if (kind === 'flag') return flag(common);
  if (kind === 'time') return time(common);
  if (kind === 'json') return json({ ...common, bytes: field.bytes ?? MAX_JSON_BYTES });
  return listOfField({ ...common, most: field.items ?? 16 }, itemOf(field, common));
}

/** Makes the field that a list of a plugin has several of. */
function itemOf(field: ListField, common: Common): AnyField {
  const name = common.label.toLowerCase();
  const label = `item of the ${name}`;
  if (field.of === 'number') return number({ ...common, label, ...rangeOf(field) })();
  if (field.of === 'choice') return word({ ...common, label, words: field.values })();
  return line({ ...common, max: field.max ?? MAX_ADDED_LINE, isItem: true })(label);
}

/** The range of a number of a plugin. */
function rangeOf({ min, max, integer = false }: NumberRange) {
  const [least, most] = integer ? [-(2 ** 31), 2 ** 31 - 1] : [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  return { min: min ?? least, max: max ?? most, isDecimal: !integer };
}

/** The most code points of a line of a plugin that sets no maximum. */
const MAX_ADDED_LINE = 200;

/** Fields that describe a key, in display order. */
export const labelFields = defineFields({
  /** Free text of at most 1,000 code points; null if there is none. */
  description: line({
    id: 1,
    max: MAX_LINE_LENGTH,
    code: 'DESCRIPTION_INVALID',
    label: 'Description',
    help: 'What the key is for, at most 1,000 characters. Empty: none.',
    graphql: { output: 'What it is for.' },
    isAsked: true,
  }),
  /**
   * The person or team responsible for it, as text of at most 200 code points; null if there is none. As a filter, it
   * finds the keys with this owner, the key of this name, the person who signs in under this name, ignoring case, and
   * all child keys of these.
   */
  owner: filtered(
    line({
      id: 14,
      max: 200,
      code: 'OWNER_INVALID',
      label: 'Owner',
      help: 'Person or team responsible for the key. Empty: no owner.',
      graphql: {
        output: 'The person or team responsible for it and its child keys; null if none is named.',
      },
    }),
    {
      help: 'Only keys that have this owner or this name, or belong to a person of this name, and their child keys.',
      example: 'name',
    },
  ),
  /** Its tags, each as `key=value`, in the form of `parseTags`; at most 16. */
  tags: filtered(
    list({
      id: 15,
      parse: parseTags,
      label: 'Tags',
      help: 'Up to 16 tags, such as env=prod.',
      graphql: {
        output: 'Its tags, each as key=value.',
        input: 'All its tags, at most 16, each as key=value, each key once; an empty list for none.',
      },
      example: 'key=value',
      flag: 'tag',
    }),
  ),
  /** A JSON object of at most 4 KB, passed to services that check the key and never interpreted; null for none. */
  metadata: json({
    id: 16,
    bytes: MAX_JSON_BYTES,
    label: 'Metadata',
    help: 'A JSON object for your own use, at most 4 KB. Services that check the key receive it. Empty: none.',
    example: 'json',
  }),
  // Unknown to the types, since plugins bring them at run time.
  ...fieldsOfPlugins(),
});

/** Fields that restrict the requests of a key and of its child keys. */
export const restrictionFields = defineFields({
  /** Its own limits on requests, at most one for each unit; empty if it has none. */
  limits: restricting(
    list<Limit>({
      id: 4,
      parse: parseLimits,
      none: NO_LIMITS,
      label: 'Limits',
      noneText: 'default limits',
      help: 'Rate such as 100/m, or total such as 1/uses. Empty: the default limits.',
      graphql: {
        output:
          'Its limits on requests: a number and s, m, h, d or month, such as 100/m, or budget or uses, such as 1/uses.',
      },
    }),
    limitRestriction,
  ),
  /** The networks that it can be used from, in the form of `parseNetworks`; null for anywhere. */
  allowFrom: restricting(
    listOrNull({
      id: 5,
      parse: parseNetworks,
      validate: validateNetworks,
      label: 'Used from',
      help: 'Networks that the key can be used from, such as 10.0.0.0/8, 2001:db8::/32. Default: anywhere.',
      graphql: {
        output: 'The networks that it can be used from, such as 10.0.0.0/8; null for all.',
        input: 'The networks that it can be used from, such as 10.0.0.0/8, at least one; null for all.',
      },
      example: 'network',
      noneText: 'anywhere',
    }),
    networkRestriction,
  ),
});

/** Fields that are set when a key is made and never change. */
export const fixedFields = defineFields({
  /** The only address that it is valid for, with all paths below: see `readAudience`; null for any. */
  audience: restricting(
    address({
      id: 13,
      label: 'Valid for',
      help: 'The only address that the key is valid for, with all paths below it.',
      graphql: {
        output:
          'The only address that it is valid for, with all paths below it, as an application requested; null if it ' +
          'is valid everywhere.',
      },
    }),
    audienceRestriction,
  ),
});

/** Fields whose changes can give a key more access. */
export const wideningFields = { ...restrictionFields, ...fixedFields };
/** Their rules, each with the name of its field. */
export const RESTRICTIONS = namesOf(wideningFields).map((name): readonly [typeof name, Restriction<any>] => [
  name,
  wideningFields[name].widens,
]);

/** The fields that describe and restrict a key. */
export const keyFields = { ...labelFields, ...restrictionFields };
/** The fields set on a key, except its expiry, in display order. */
export const givenFields = {
  name: nameField,
  ...labelFields,
  roles: grants(parseRoles),
  permissions: grants(parsePermissions),
  ...restrictionFields,
};
/** Like `keyFields`, with the fields that never change, and those that features set. */
export const storedFields = { ...identityFields, ...keyFields, ...fixedFields };

/** All tables, by the names that GraphQL documents have for them. */
export const fieldTables = { labels: labelFields, restrictions: restrictionFields, fixed: fixedFields };

/** The names of these fields. */
export type FieldName = keyof typeof keyFields;
/** Some of these fields, by their names. */
export type FieldTable = Readonly<Record<string, AnyField>>;
/** Fields that may have columns of their own. */
type GivenTable = Readonly<Record<string, AnyGivenField>>;
/** Fields that callers may not set. */
type AnyTable = Readonly<Record<string, { readonly none: unknown }>>;
/** The values of the fields of a table. */
export type ValuesOf<Table> = {
  -readonly [Name in keyof Table]: Table[Name] extends { readonly none: infer Value } ? Value : never;
};

/** The names of fields with a filter. */
export type FilterName = {
  [Name in FieldName]: (typeof keyFields)[Name] extends { readonly filter: Filter } ? Name : never;
}[FieldName];
/** The fields with a filter. */
export const filterFields = Object.fromEntries(fieldsOf().filter(([, { filter }]) => filter)) as Pick<
  typeof keyFields,
  FilterName
>;
/** The type of a field in GraphQL. */
export function graphqlTypeOf({ form, numbers }: Pick<AnyField, 'form' | 'numbers'>): string {
  const types = { text: 'String', number: numbers, boolean: 'Boolean', json: 'JsonObject' };
  return form === 'list' ? `[${numbers ?? 'String'}!]` : types[form]!;
}

/** A sentence about a filter. */
export function filterHelp({ filter, form, label }: AnyField): string {
  return filter?.help ?? `Only keys with ${form === 'list' ? 'all these' : 'this'} ${label.toLowerCase()}.`;
}

/** Values to select keys by: only keys with all of them match. */
export type FilterValues = { readonly [Name in FilterName]?: NonNullable<FieldValues[Name]> | undefined };
/** The same values, as users write them. */
export type FieldFilters = { -readonly [Name in FilterName]?: Written<FieldValues[Name]> | null };

/**
 * The values of a key without any of these fields. Combined by table, because the library's published types would
 * otherwise show the rules.
 */
export const NO_VALUES = {
  ...valuesOf(labelFields, {}),
  ...valuesOf(restrictionFields, {}),
  ...valuesOf(fixedFields, {}),
  ...valuesOf(identityFields, {}),
};
/** The values of all fields. */
export type KeyValues = typeof NO_VALUES;
/** The values of the fields that describe and restrict a key. */
export type FieldValues = Omit<KeyValues, keyof typeof fixedFields | keyof typeof identityFields>;
/** A value as users write it: the texts of a list can have any spelling. */
type Written<Value> = Value extends readonly string[] ? readonly string[] : Value;
/** Field values as users write them. Omitted fields stay as they are, or are empty. */
export type FieldInput = { -readonly [Name in keyof FieldValues]?: Written<FieldValues[Name]> };

/** The fields of a table with their names. */
export function fieldsOf(table: FieldTable = keyFields): [FieldName, AnyField][] {
  return Object.entries(table) as [FieldName, AnyField][];
}

/** The type of the field with this name; undefined for other names. */
export function formOf(name: string): AnyField['form'] | undefined {
  const fields = Object.entries({ ...givenFields, ...fixedFields });
  return fields.find(([each]) => each === name)?.[1].form;
}

/** The names of the fields of a table. */
export function namesOf<Table extends AnyTable>(table: Table): (keyof Table & string)[] {
  return Object.keys(table);
}

/** The values of a key in the fields of a table. */
export function valuesOf<Table extends AnyTable>(table: Table, key: Partial<ValuesOf<Table>>): ValuesOf<Table> {
  return Object.fromEntries(namesOf(table).map((name) => [name, key[name] ?? table[name]!.none])) as never;
}

/** The values that differ from a missing one. */
export function givenIn<Table extends AnyTable>(
  table: Table,
  key: Partial<ValuesOf<Table>>,
): { [Name in keyof Table]?: NonNullable<ValuesOf<Table>[Name]> } {
  const values = namesOf(table).map((name): [string, unknown] => [name, key[name]]);
  return Object.fromEntries(values.filter(([, value]) => !isNone(value))) as never;
}

/** True for a missing value. */
export function isNone(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Issues with empty values for a key's fields that can be replaced, but not removed. */
export function removalIssues({ name }: { readonly name: string }, given: Given): Issue[] {
  return fieldsOf().flatMap(([field, { isKept, label }]): Issue[] => {
    if (!isKept || given[field] === undefined || !isNone(given[field])) return [];
    const message = `The ${label.toLowerCase()} of "${printable(name)}" cannot be removed. Give it another value.`;
    return [{ code: 'INPUT_INVALID', message, field }];
  });
}

/** The issues with the given values of a table's fields, each with the name of its field. */
export function validateFields(table: GivenTable, given: Given, catalog: Catalog): Issue[] {
  return Object.entries(table).flatMap(([name, field]) =>
    given[name] === undefined ? [] : field.validate(given[name], catalog).map((issue) => ({ ...issue, field: name })),
  );
}

/** The values that validated input has for the fields of a table. */
export function readFields<Table extends GivenTable>(
  table: Table,
  given: Given,
  catalog: Catalog,
): Partial<ValuesOf<Table>> {
  const fields = Object.entries(table).filter(([name]) => given[name] !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, field.read(given[name], catalog)])) as never;
}

/** Input with some of these fields, and possibly others. */
type Given = { readonly [Name in string]?: any };

/** Splits a list that is written in one line. */
function itemsIn(text: string, separator = /[,;]/): string[] {
  return text.split(separator).flatMap((item) => item.trim() || []);
}

/** Reads a value typed in one line. */
export function valueOfText(field: AnyField, text: string, separator?: RegExp): unknown {
  if (field.fromText) return field.fromText(text);
  if (field.form === 'text') return text || null;
  const items = itemsIn(text, separator);
  if (items.length === 0) return field.none;
  return field.fromTexts ? field.fromTexts(items) : items;
}

/** A value in one line; empty if there is none. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ');
  return isRecord(value)
    ? printableJson(JSON.stringify(value))
    : String((value as string | number | null | undefined) ?? '');
}

/** Words for each restriction of a key, such as "is limited to 100/m". @param isShared see `Restriction.words` */
export function restrictionTexts(values: Partial<ValuesOf<typeof wideningFields>>, isShared = false): string[] {
  return RESTRICTIONS.flatMap(([name, { words }]) => (isNone(values[name]) ? [] : [words(values[name], isShared)]));
}

/** The values of fields that this version does not know, and of fields of plugins that it cannot read, by id. */
export type UnknownFields = Readonly<Record<string, unknown>>;

const STORED = Object.entries<Pick<AnyField, 'id' | 'readStored'>>(storedFields);
const fieldsById = new Map(STORED.map(([name, field]) => [`${field.id}`, [name, field] as const]));

/** The fields of a key as stored text: by id, without missing values. Null if it has none. */
export function fieldsText(key: KeyValues & { unknownFields?: UnknownFields }): string | null {
  const given: Given = key;
  const values = STORED.filter(([name]) => !isNone(given[name])).map(([name, { id }]) => [id, given[name]]);
  if (values.length === 0 && !key.unknownFields) return null;
  // A new value has the same id as the unreadable one that it replaces.
  return JSON.stringify({ ...key.unknownFields, ...Object.fromEntries(values) });
}

/**
 * Reads the stored text of fields; undefined if it cannot be read.
 * @param isIntact true if the row matches its checksum
 */
export function readFieldsText(
  text: string | null,
  isIntact: boolean,
): (KeyValues & { unknownFields?: UnknownFields }) | undefined {
  if (text === null) return NO_VALUES;
  const stored = parseRecord(text);
  if (!stored) return undefined;
  const known: Record<string, unknown> = {};
  const unknown: [string, unknown][] = [];
  for (const [id, value] of Object.entries(stored)) {
    const [name, field] = fieldsById.get(id) ?? [];
    const read = field?.readStored(value, isIntact);
    if (read !== undefined) known[name!] = read;
    // A plugin can change which values its field accepts.
    else if (name === undefined || typeof field!.id === 'string') unknown.push([id, value]);
    else return undefined;
  }
  return { ...NO_VALUES, ...known, ...(unknown.length > 0 && { unknownFields: Object.fromEntries(unknown) }) };
}

/** The values of plugin fields that this version cannot read, by the names of the fields. */
export function unreadValues(unknownFields: UnknownFields = {}): Readonly<Record<string, unknown>> {
  const values = Object.entries(unknownFields).map(([id, value]) => [fieldsById.get(id)?.[0], value]);
  return Object.fromEntries(values.filter(([name]) => name !== undefined));
}

/** The values of fields that no installed plugin has. An id consists of the names of the plugin and the field. */
export function valuesOfMissing(unknownFields: UnknownFields = {}): UnknownFields {
  return Object.fromEntries(Object.entries(unknownFields).filter(([id]) => id.includes('.') && !fieldsById.has(id)));
}

function parseRecord(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Maps each field of a table, by its name. */
export function mapFields<Table extends GivenTable, Result>(
  table: Table,
  map: (field: Table extends FieldTable ? AnyField : AnyGivenField, name: keyof Table & string) => Result,
): { [Name in keyof Table]: Result } {
  return Object.fromEntries(namesOf(table).map((name) => [name, map(table[name] as never, name)])) as never;
}
