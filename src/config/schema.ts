import * as v from 'valibot';
import {
  type DocumentIssue,
  type DocumentPath,
  formatList,
  isRecord,
  nearest,
  printable,
} from '../keys/basics/index.ts';

/** A schema of the configuration, typed by its output. */
export type Schema<Output = unknown> = v.GenericSchema<unknown, Output>;

/** The texts of a field, for its JSON Schema and its row in the docs. */
export interface About {
  readonly description: string;
  /** The default value or behaviour. */
  readonly otherwise?: string;
  /** The page of the docs with more details. */
  readonly page?: string;
  /** A sentence for the error if the field is missing. */
  readonly remedy?: string;
}

/** A field that can be left out. */
export function optional<Wrapped extends Schema>(
  schema: Wrapped,
  description = '',
  more: Omit<About, 'description'> = {},
) {
  return { ...v.optional(schema), about: { description, ...more } };
}

/** A required field. */
export function required<Wrapped extends Schema>(
  schema: Wrapped,
  description = '',
  more: Omit<About, 'description'> = {},
) {
  return { ...schema, about: { description, ...more } };
}

/** A part of the JSON Schema for a rule in code. */
export function json<Input>(fragment: Record<string, unknown>) {
  return v.metadata<Input, Record<string, unknown>>(fragment);
}

/** A sentence, or its end from "must" or "is" on, and its path within the value. */
export type Problem = string | { path: DocumentPath; message: string };
type Problems = Problem | readonly Problem[] | undefined;

/** A rule in code, for values whose fields have the right types. */
export function rule<Input>(problemsOf: (value: Input) => Problems) {
  return v.rawCheck<Input>(({ dataset, addIssue }) => {
    if (dataset.typed) report(addIssue, problemsOf(dataset.value));
  });
}

/** A rule against duplicate items, also among invalid ones. @param at the field with the name */
export function distinct<Item>(
  nameOf: (item: Item) => unknown,
  messageOf: (name: string) => string,
  ...at: DocumentPath
) {
  return v.rawCheck<Item[]>(({ dataset, addIssue }) => {
    const seen = new Set<unknown>();
    for (const [index, item] of (Array.isArray(dataset.value) ? (dataset.value as Item[]) : []).entries()) {
      const name = nameOf(item ?? ({} as Item));
      if (typeof name !== 'string') continue;
      if (seen.has(name)) report(addIssue, { path: [index, ...at], message: messageOf(name) });
      seen.add(name);
    }
  });
}

/** Converts a valid value, or returns its problems. */
export function reads<Input, Output>(read: (value: Input) => { value: Output } | { refusal: Problems }) {
  return v.rawTransform<Input, Output>(({ dataset, addIssue, NEVER }) => {
    const result = read(dataset.value);
    if ('value' in result) return result.value;
    report(addIssue, result.refusal);
    return NEVER;
  });
}

type AddIssue = (issue: { message: string; path?: [v.IssuePathItem, ...v.IssuePathItem[]] }) => void;

function report(addIssue: AddIssue, problems: Problems): void {
  for (const problem of [problems ?? []].flat()) {
    const { message, path } = typeof problem === 'string' ? { message: problem, path: [] } : problem;
    const [first, ...others] = path.map((key) => stepTo(key));
    addIssue({ message, ...(first && { path: [first, ...others] }) });
  }
}

/** One of a fixed set of words. */
export function oneOf<const Words extends readonly string[]>(words: Words) {
  return v.picklist(words, `must be ${formatList(words, 'or')}.`);
}

/** The only value that a field can have. */
export function only<const Value extends string | boolean>(value: Value) {
  return v.literal(value, `must be ${value}, or left out.`);
}

/** A whole number, at least 1. */
export function count(most: number) {
  const isRight = (value: number) => Number.isInteger(value) && value >= 1 && value <= most;
  const message = `must be a whole number from 1 to ${most}.`;
  return v.pipe(v.number(message), v.check(isRight, message), json({ type: 'integer', minimum: 1, maximum: most }));
}

/** A text that `read` converts. @param pattern its form, for the JSON Schema */
export function text<Output>(
  read: (text: string) => { value: Output } | { refusal: Problems },
  pattern: Record<string, unknown> = {},
) {
  return v.pipe(v.string(), json(pattern), reads(read));
}

/** A text with a rule. @param pattern its form, for the JSON Schema */
export function textWith(problemOf: (text: string) => Problems, pattern: Record<string, unknown> = {}) {
  return v.pipe(v.string(), rule(problemOf), json(pattern));
}

/** A list without duplicates. @param empty the problem with an empty list, if it is not allowed */
export function list<Item extends Schema>(item: Item, empty?: string) {
  const unique = v.transform((items: v.InferOutput<Item>[]) => [...new Set(items)]);
  return v.pipe(v.array(item), notEmpty(empty), json(leastItems(empty)), unique);
}

function notEmpty<Item>(message: string | undefined) {
  return rule<Item[]>((items) => (items.length === 0 ? message : undefined));
}

function leastItems(empty: string | undefined): { minItems?: 1 } {
  return empty === undefined ? {} : { minItems: 1 };
}

/** The most items of a list. */
export function atMost<Item>(most: number, what: string) {
  return v.maxLength<Item[], number, v.ErrorMessage<v.MaxLengthIssue<Item[], number>>>(most, ({ input }) =>
    tooMany(input.length, what, most),
  );
}

/** The most names in a map. */
export function namesAtMost<Value>(most: number, what: string) {
  return v.maxEntries<Record<string, Value>, number, v.ErrorMessage<v.MaxEntriesIssue<Record<string, Value>, number>>>(
    most,
    ({ input }) => tooMany(Object.keys(input).length, what, most),
  );
}

function tooMany(found: number, what: string, most: number): string {
  return `There are ${found} ${what}; at most ${most} are allowed.`;
}

/** The most invalid items that are explained: explanations are slow, and only the first ones are shown. */
const MAX_EXPLAINED = 1000;

/** A list of texts, which `parse` reads one by one and then all together. @param pattern the form of one */
export function parsed<Item extends string>(
  parse: (items: readonly string[]) => { values: Item[]; issues: readonly { message: string }[] },
  pattern: Record<string, unknown>,
  empty?: string,
) {
  let explained = 0;
  const messagesOf = (items: readonly string[]) => parse(items).issues.map(({ message }) => message);
  const item = textWith((given) => {
    const problems = explained < MAX_EXPLAINED ? messagesOf([given]) : [];
    explained += problems.length;
    return problems;
  }, pattern);
  return v.pipe(
    v.array(item),
    notEmpty(empty),
    json(leastItems(empty)),
    reads<string[], Item[]>((items) => {
      const { values, issues } = parse(items);
      return issues.length > 0 ? { refusal: messagesOf(items) } : { value: values };
    }),
  );
}

type Issue = v.BaseIssue<unknown>;
type Form = string | ((value: unknown) => string);

/**
 * A map with exactly these fields. A field that an unknown one may stand for is not reported as missing.
 * @param form the problem with any other value
 */
export function map<const Entries extends v.ObjectEntries>(
  entries: Entries,
  form: Form = `must be a map with fields of ${formatList(Object.keys(entries))}.`,
  isMeant: (value: Record<string, unknown>) => boolean = () => true,
): v.StrictObjectSchema<Entries, undefined> {
  const base = v.strictObject(entries);
  const fields = Object.keys(entries);
  return ownRun(base, (input, config) => {
    if (!isRecord(input) || !isMeant(input)) return wrong(input, form);
    const { issues, mayStand } = unknownFields(input, fields);
    const known = fields.filter((field) => input[field] !== undefined).map((field) => [field, input[field]]);
    const result = base['~run']({ value: Object.fromEntries(known) }, config);
    const isMissing = ({ type, path }: Issue) => type === base.type && path!.length === 1;
    const others = (result.issues ?? []).flatMap((issue) => {
      if (!isMissing(issue)) return [issue];
      const field = String(issue.path![0].key);
      const { remedy = '' } = (entries[field] as { about?: About }).about ?? {};
      return mayStand(field) ? [] : [{ ...issue, message: `is missing.${remedy}` }];
    });
    return outcome(result.typed && issues.length === 0, result.value, [...issues, ...others]);
  });
}

/** A map with arbitrary names. @param form the problem with any other value */
export function named<Value extends Schema>(
  key: v.GenericSchema<string>,
  value: Value,
  form: Form,
): v.RecordSchema<v.StringSchema<undefined>, Value, undefined> {
  return ownRun({ ...v.record(v.string(), value), key: key as v.StringSchema<undefined> }, (input, config) => {
    if (!isRecord(input)) return wrong(input, form);
    const read = Object.entries(input).map(([name, given]) => {
      const [ofName, ofValue] = [key['~run']({ value: name }, config), value['~run']({ value: given }, config)];
      const issues = [...within(ofName.issues, name, 'key'), ...within(ofValue.issues, name, 'value')];
      return { entry: [name, ofValue.value], issues, typed: ofName.typed && ofValue.typed };
    });
    return outcome(
      read.every(({ typed }) => typed),
      Object.fromEntries(read.map(({ entry }) => entry)),
      read.flatMap(({ issues }) => issues),
    );
  });
}

/** One of several forms: the one that fits, or comes closest. @param form the problem with any other value */
export function either<const Options extends v.UnionOptions>(
  options: Options,
  form: Form,
): v.UnionSchema<Options, undefined> {
  return ownRun(v.union(options), (value, config) => {
    const results = options.map((option) => option['~run']({ value }, config));
    const isOther = ({ issues }: (typeof results)[number]) =>
      issues?.every(({ kind, path }) => kind === 'schema' && !path);
    return results.find(({ issues }) => !issues) ?? results.find((result) => !isOther(result)) ?? wrong(value, form);
  });
}

type Result = v.OutputDataset<unknown, Issue>;

/** A schema of the library, for its types and its JSON Schema, with a check of our own. */
function ownRun<Base extends Schema>(base: Base, run: (value: unknown, config: v.Config<Issue>) => Result): Base {
  return { ...base, '~run': (dataset: v.UnknownDataset, config: v.Config<Issue>) => run(dataset.value, config) };
}

function outcome(typed: boolean, value: unknown, issues: Issue[]): Result {
  return { typed, value, ...(issues.length > 0 && { issues }) } as Result;
}

function wrong(value: unknown, form: Form): Result {
  return outcome(false, value, [issueOf(typeof form === 'string' ? form : form(value))]);
}

function issueOf(message: string): Issue {
  return { kind: 'schema', type: 'form', input: undefined, expected: null, received: '', message };
}

function within(issues: readonly Issue[] | undefined, key: string, origin: 'key' | 'value'): Issue[] {
  return (issues ?? []).map((issue) => ({ ...issue, path: [stepTo(key, origin), ...(issue.path ?? [])] }));
}

function stepTo(key: string | number, origin: 'key' | 'value' = 'value') {
  return { type: 'unknown' as const, origin: origin as 'value', input: undefined, key, value: undefined };
}

/**
 * The issues with unknown fields, and whether one of them may stand for a known one.
 * @param more a sentence after the list of fields
 */
export function unknownFields(value: Record<string, unknown>, fields: readonly string[], more = '') {
  const unknown = Object.keys(value).filter((field) => !fields.includes(field));
  const meant = unknown.map((field, index) => (index < MAX_EXPLAINED ? nearest(field, fields, 1)[0] : undefined));
  const issues = unknown.flatMap((field, index) => {
    const remedy =
      meant[index] === undefined
        ? `The fields here are ${formatList(fields)}.${more}`
        : `Did you mean "${meant[index]}"?`;
    return within([issueOf(`"${printable(field)}" is not a field. ${remedy}`)], field, 'key');
  });
  return { issues, unknown, meant, mayStand: (field: string) => meant.includes(undefined) || meant.includes(field) };
}

/** Reads a value by a schema. @param path its path in the document */
export function readBy<Output>(
  schema: Schema<Output>,
  value: unknown,
  path: DocumentPath,
): { output: Output } | { issues: DocumentIssue[] } {
  const { success, output, issues } = v.safeParse(schema, value, { message: messageOf });
  return success ? { output } : { issues: issues.map((issue) => located(issue, path)) };
}

const OF_TYPES: Readonly<Record<string, string>> = {
  string: 'must be text. Quote it if YAML reads it as another type.',
  boolean: 'must be true or false.',
  array: 'must be a list.',
};

function messageOf({ type }: Issue): string {
  return OF_TYPES[type] ?? 'must be another value.';
}

/**
 * An issue in our own form. A sentence without a subject gets the field or item as its subject; "{field}" becomes its
 * name.
 */
export function located({ message, path: steps = [] as never }: Issue, before: DocumentPath = []): DocumentIssue {
  const path = [...before, ...steps.map(({ key }) => key as string | number)];
  const last = steps.at(-1) as { origin?: string } | undefined;
  const name = printable(String(path.at(-1)));
  const subject = typeof path.at(-1) === 'number' ? 'An item of this list' : `The field "${name}"`;
  return {
    path,
    ...(last?.origin === 'key' && { ofField: true }),
    message: /^(?:must|is) /.test(message) ? `${subject} ${message}` : message.replace('{field}', () => name),
  };
}
