import {
  ACTIONS,
  addVocabulary,
  type HostResource,
  HOST_ACTIONS,
  HOST_RESOURCES,
  invalidAction,
  problemOfAddedResource,
  type Vocabulary,
  withOwn,
} from '../permissions/index.ts';
import {
  addErrors,
  aFunction,
  anyNumber,
  type AddedError,
  type FeatureOfErrors,
  formatList,
  hasControlCharacters,
  inTime,
  isErrorCode,
  isKeysError,
  KeysError,
  kindOf,
  list,
  oneOf,
  options,
  orNull,
  printable,
  recordOf,
  required,
  type Rule,
  suggestion,
  text,
  yesOrNo,
} from '../basics/index.ts';

/** Properties of each field of a plugin. */
interface AnyAddedField {
  /** The name that people see, such as `Team`. */
  readonly label: string;
  /** A sentence for flags, forms and schemas. */
  readonly help: string;
  /** A value as flags and prompts show it. Default: text. */
  readonly example?: string;
  /** True if prompts for a new key ask for it. */
  readonly asked?: boolean;
  /** True if an empty value removes it. Default: a change can replace it, but not remove it. */
  readonly removable?: boolean;
  /** True if keys are selected by it. Keys that had a value before are found once they change. */
  readonly filter?: boolean;
}

/** One line of text. */
export interface LineField extends AnyAddedField {
  readonly kind: 'line';
  /** Its most characters, at most 1,000, or 500 with a filter. Default: 200. */
  readonly max?: number;
}

/** A text of several lines. */
export interface TextField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'text';
  /** Its most characters, at most 4,000. Default: 1,000. */
  readonly max?: number;
}

/** The numbers that a field takes. */
export interface NumberRange {
  /** True for whole numbers of at most 32 bits. Default: decimal numbers as well. */
  readonly integer?: boolean;
  readonly min?: number;
  readonly max?: number;
}

/** A number. */
export interface NumberField extends AnyAddedField, NumberRange {
  readonly kind: 'number';
}

/** One of a fixed set of words. */
export interface ChoiceField extends AnyAddedField {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** Yes or no; null without a value. */
export interface FlagField extends AnyAddedField {
  readonly kind: 'flag';
}

/** A day or a time, kept as a time in UTC. */
export interface TimeField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'time';
}

/** A JSON object, which svc-api does not interpret. */
export interface JsonField extends Omit<AnyAddedField, 'filter'> {
  readonly kind: 'json';
  /** Its most bytes as JSON, at most 4,096. Default: 4,096. */
  readonly bytes?: number;
}

/** A list of lines, numbers or choices, each once. */
export type ListField = AnyAddedField & {
  readonly kind: 'list';
  /** The most items, at most 100. Default: 16. */
  readonly items?: number;
} & (
    | {
        /** Default: line. */
        readonly of?: 'line';
        /** The most characters of a line, at most 1,000, or 500 with a filter. Default: 200. */
        readonly max?: number;
      }
    | ({ readonly of: 'number' } & NumberRange)
    | { readonly of: 'choice'; readonly values: readonly string[] }
  );

/** A field that a plugin adds to each key. */
export type AddedField =
  | LineField
  | TextField
  | NumberField
  | ChoiceField
  | ListField
  | FlagField
  | TimeField
  | JsonField;

/** The fields that a feature adds, by their names in JSON, YAML and GraphQL: `costCentre` has the flag `--cost-centre`. */
export type AddedFields = Readonly<Record<string, AddedField>>;

/** A field as it is registered, with its id in stores. */
export type RegisteredField = AddedField & { readonly id: string };

/** An identity that a key without a secret stands for: a few texts, which a feature of svc-api sets. */
export interface Identity<Value> {
  /** Identifies the field in stores. Never change or reuse it. */
  readonly id: number;
  /** A sentence about the field. */
  readonly help: string;
  /** The name of its type in GraphQL, and a sentence about that. */
  readonly type: { readonly name: string; readonly help: string };
  /** Its texts, each with a sentence about it. */
  readonly parts: Readonly<Record<keyof Value, string>>;
  /** The parts that identify it. */
  readonly identifiedBy: readonly (keyof Value & string)[];
  /** The parts that name it, that for display first. */
  readonly names: readonly (keyof Value & string)[];
  /** A value in one line. */
  readonly textOf: (value: Value) => string;
}

/** A counter or a gauge of a feature. */
export interface AddedMetric {
  /** It begins with the name of the package in the form of metrics: `svc_api_team_` for `svc-api-team`. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: readonly string[];
  /** The present values of this process, each with its labels. The values of several processes are added up. */
  readonly read: () => Iterable<MeasuredValue> | Promise<Iterable<MeasuredValue>>;
}

/** A value of a metric, with its labels. */
export type MeasuredValue = readonly [value: number, labels?: Readonly<Record<string, string>>];

/** Members of a feature that are read here. */
export interface FeatureOfFields extends Vocabulary {
  /** Its name. That of a plugin is the name of its package: it identifies values in stores, so never change it. */
  readonly name: string;
  /** The names of the features that it uses. */
  readonly needs?: readonly string[];
  /** Fields of keys, by their names. */
  readonly fields?: AddedFields;
  /** Its counters and gauges at `/metrics`. */
  readonly metrics?: readonly AddedMetric[];
}

const features: FeatureOfFields[] = [];
const fields = new Map<string, RegisteredField & { feature: string }>();
let failure: unknown;
let isClosed = false;
let isInUse = false;
let chosen: ReadonlySet<string> | undefined;

/**
 * The features of plugins, each after those that it needs.
 * @param own the names of all features of svc-api
 * @throws KeysError FEATURE_INVALID, which names the feature and the problem
 */
export function addedFeatures(own: readonly string[]): readonly FeatureOfFields[] {
  isInUse = true;
  const ordered: FeatureOfFields[] = [];
  const there = new Set(own.filter(isChosen));
  const add = (feature: FeatureOfFields, asked: readonly string[]): void => {
    if (ordered.includes(feature)) return;
    const { name, needs = [] } = feature;
    if (own.includes(name)) throw invalidFeature(name, 'A feature of svc-api has this name. Rename the package.');
    if (asked.includes(name)) {
      const between = asked.slice(1);
      const through = between.length > 0 ? ` through ${formatList(between)}` : '';
      throw invalidFeature(name, `It needs itself${through}.`);
    }
    for (const needed of needs) {
      const other = features.find((each) => each.name === needed);
      if (other) add(other, [...asked, name]);
      if (!there.has(needed)) {
        const close = suggestion(needed, [...there]);
        throw invalidFeature(
          name,
          `It needs the feature "${printable(needed)}", which does not exist. ${close}`.trim(),
        );
      }
    }
    there.add(name);
    ordered.push(feature);
  };
  for (const feature of features) add(feature, []);
  return ordered;
}

/** Features of svc-api, each with the features that it needs. Those come before it. */
export type KnownFeatures = Readonly<Record<string, readonly string[]>>;

/**
 * Chooses features of svc-api, and those that they need. Without a call, all are chosen.
 * @param by the subject of an error
 * @throws KeysError FEATURE_INVALID for an unknown name, and once features are in use
 */
export function chooseFeatures(names: readonly string[], known: KnownFeatures, by: string): void {
  const unknown = names.find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    const close = suggestion(unknown, Object.keys(known));
    const problem = `${by} chooses the feature "${printable(unknown)}", which svc-api does not have.`;
    throw new KeysError('FEATURE_INVALID', `${problem} ${close}`.trim());
  }
  if (isInUse)
    throw new KeysError(
      'FEATURE_INVALID',
      'Features were chosen too late. They are in use already: choose them before svc-api is imported, ' +
        'in a module without a top-level await.',
    );
  const all = new Set(names);
  for (const [name, needs] of Object.entries(known).toReversed())
    if (all.has(name)) for (const needed of needs) all.add(needed);
  chosen = all;
}

/** True for a feature of svc-api that was chosen. */
export function isChosen(name: string): boolean {
  return chosen?.has(name) ?? true;
}

/** True for a feature of a plugin. */
export function isAdded({ name }: { readonly name: string }): boolean {
  return features.some((feature) => feature.name === name);
}

/** The fields that were added. After the first call, none can be added: types, flags and tables are built from them. */
export function addedFields(): ReadonlyMap<string, RegisteredField> {
  isClosed = true;
  return fields;
}

/** A feature with the permissions that its operations need. */
interface WithOperations {
  readonly name: string;
  readonly operations?: Readonly<Record<string, { readonly needs: string }>>;
}

/** It has no members but those that have a rule here. */
type Only<Given, Ruled> = Partial<Record<Exclude<keyof NonNullable<Given>, keyof Ruled>, never>>;

/**
 * Adds the fields of features, all of them or none.
 * @param isTaken true if svc-api already uses this name or flag
 * @throws KeysError FEATURE_INVALID, which names the feature and the field
 */
export function addFields<Given extends FeatureOfFields & { readonly onKeys?: object }>(
  given: readonly (Given &
    Only<Given, typeof MEMBERS> & { readonly onKeys?: Only<Given['onKeys'], typeof LISTENER> })[],
  isTaken: (name: string, flag: string) => boolean,
): void {
  const known = new Map(fields);
  const names = new Set(features.map(({ name }) => name));
  const resources = new Map<string, Exclude<HostResource, string>>();
  const actions = new Set<string>();
  const read = given.map(readFeature);
  for (const { name, fields: own = {}, resources: ofFeature = [], actions: added = [], metrics = [] } of read) {
    const invalid = (problem: string) => invalidFeature(name, problem);
    if (names.has(name)) throw invalid('Another feature has this name.');
    names.add(name);
    requireMetrics(name, metrics);
    for (const resource of ofFeature) {
      const given = typeof resource === 'string' ? { name: resource } : resource;
      const problem = problemOfAddedResource(given, [...resources.keys()]);
      if (problem !== undefined) throw invalid(problem);
      resources.set(given.name, given);
    }
    const problemOfAction = added.map(invalidAction).find((each) => each !== undefined);
    if (problemOfAction !== undefined) throw invalid(`Its action is not allowed: ${problemOfAction}`);
    for (const action of added) actions.add(action);
    for (const [field, description] of Object.entries(own)) {
      if (!FIELD_NAME.test(field) || field in Object.prototype)
        throw invalid(
          `Its field "${printable(field)}" has no valid name, such as costCentre: a lower-case letter, then letters ` +
            'and digits, 2 to 40 characters in all, without "no" or "where" as the first word.',
        );
      const other = Array.from(known.keys()).find((each) => each.toLowerCase() === field.toLowerCase());
      if (other !== undefined)
        throw invalid(
          `${known.get(other)!.feature} has a field "${other}" as well. Rename or uninstall one of the two.`,
        );
      if (isTaken(field, kebab(field)))
        throw invalid(`Its field "${field}" has a name that svc-api uses itself. Give it another one.`);
      known.set(field, { ...description, id: `${name}.${field}`, feature: name });
    }
  }
  const possible = [...ACTIONS, ...[...features, ...read].flatMap(({ actions: of = [] }) => of.flatMap(withOwn))];
  for (const { name, operations = {} } of read as readonly WithOperations[])
    for (const [operation, { needs }] of Object.entries(operations)) {
      const action = needs.split(':')[1]!;
      if (!(possible as readonly string[]).includes(action)) {
        const close = suggestion(action, possible);
        throw invalidFeature(
          name,
          `Its operation "${operation}" needs ${needs}, but "${action}" is not an action. ${close}`.trim(),
        );
      }
    }
  if (isInUse || (isClosed && known.size > fields.size))
    throw new KeysError(
      'FEATURE_INVALID',
      `${formatList(read.map(({ name }) => name))}: added too late. ` +
        'Features are in use already: add them before svc-api is imported, in a module without a top-level await.',
    );
  for (const [name, field] of known) fields.set(name, field);
  features.push(...read);
  addVocabulary([...resources.values()], [...actions]);
}

/** Registers the error codes of features. @throws KeysError FEATURE_INVALID for a code that is taken */
export function gatherErrors(all: readonly FeatureOfErrors[]): void {
  addErrors(all, isAdded, (name, code, by = 'svc-api itself') =>
    invalidFeature(name, `Its error code ${printable(code)} is one of ${by}. Give it another one.`),
  );
}

/** Keeps the error that adding features failed with, for `requireFeatures`. */
export function featuresFailed(error: unknown): void {
  failure = error;
}

/** Throws if features could not be added, because values of their fields would be lost. @throws that error */
export function requireFeatures(): void {
  if (failure !== undefined) throw failure;
}

/** An error that names a feature. */
export function invalidFeature(name: string, problem: string, cause?: unknown): KeysError {
  return new KeysError('FEATURE_INVALID', `The feature ${printable(name)} is invalid. ${problem}`, { cause });
}

/** An error that names what of a plugin failed while it ran, such as a step or a port. */
export function failedFeature(name: string, part: string, cause: unknown): KeysError {
  const reason = printable(cause instanceof Error ? cause.message : String(cause), 300);
  return new KeysError('FEATURE_FAILED', `The ${part} of ${printable(name)} failed: ${reason}`, { cause });
}

/** How long a plugin can take to load a part of it, or to start its work, in milliseconds. Others wait meanwhile. */
const WORK_MS = 10_000;

/**
 * Does work of a feature. That of a plugin has a time limit.
 * @throws KeysError FEATURE_INVALID in place of another error, if it is one of a plugin
 */
export async function workOf<Result>(
  feature: { readonly name: string },
  member: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  if (!isAdded(feature)) return work();
  return inNameOf(feature.name, `Its "${member}" failed`, () => inTime(work(), WORK_MS));
}

/** Does work in the name of a feature. @throws KeysError FEATURE_INVALID in place of an error without a code */
export async function inNameOf<Result>(
  feature: string,
  failed: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isKeysError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidFeature(feature, `${failed}: ${printable(reason, 300)}`, error);
  }
}

/** A name in the spelling of flags and columns. */
export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

const MAX_TEXT = 300;

function textUpTo(most: number): Rule<string> {
  return (value, name) =>
    text(value, name) ??
    ((value as string).length > most || hasControlCharacters(value as string)
      ? `must be one line of at most ${most} characters.`
      : undefined);
}

/** A sentence, or a name, of a plugin. */
export const words = textUpTo(MAX_TEXT);

function whole(min: number, max: number): Rule<number> {
  return (value, name) =>
    anyNumber(value, name) ??
    (Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `is ${value as number}. It must be a whole number from ${min} to ${max}.`);
}

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

/** A package's name, as npm has it. */
const PACKAGE_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
/** Names that GraphQL, JSON and flags accept. `no-` and `where-` are prefixes of generated flags. */
const FIELD_NAME = /^(?!(?:no|where)[A-Z])[a-z][A-Za-z0-9]{1,39}$/;

/** The name of a package with "_" in the place of other characters. */
export function snake(name: string): string {
  return name.replaceAll(/[^a-z0-9]+/g, '_').replace(/^_/, '');
}

/** The problem of the name of a check. */
function problemOfCheck(name: string, feature: string, all: readonly { readonly name: string }[]): string | undefined {
  const own = snake(feature).toUpperCase();
  if ((name !== own && !name.startsWith(`${own}_`)) || !/^[A-Z][A-Z0-9_]{1,99}$/.test(name))
    return `Its check "${printable(name)}" must be named "${own}", or begin with "${own}_", and contain only capital letters, digits and "_".`;
  return all.filter((each) => each.name === name).length > 1 ? `It has two checks "${name}".` : undefined;
}

/** Checks the names of metrics of a plugin. @throws KeysError FEATURE_INVALID */
export function requireMetrics(feature: string, metrics: readonly AddedMetric[]): void {
  const problem = metrics.map((metric) => problemOf(metric, feature, metrics)).find((each) => each);
  if (problem !== undefined) throw invalidFeature(feature, problem);
}

/** The problem of the name or of a label of a metric. */
function problemOf(
  { name, labels = [] }: AddedMetric,
  feature: string,
  all: readonly AddedMetric[],
): string | undefined {
  const prefix = `${snake(feature)}_`;
  if (!name.startsWith(prefix) || !/^[a-z][a-z0-9_]{2,99}$/.test(name))
    return `Its metric "${printable(name)}" must begin with "${prefix}", and contain only lower-case letters, digits and "_".`;
  if (all.filter((each) => each.name === name).length > 1) return `It has two metrics "${name}".`;
  const label = labels.find((each) => !/^[a-z][a-z0-9_]{0,39}$/.test(each));
  return label === undefined
    ? undefined
    : `Its metric "${name}" has a label "${printable(label)}", which is not a valid name.`;
}

const LISTENER = {
  refuses: aFunction(),
  changing: aFunction(),
  changed: aFunction(),
  deleted: aFunction(),
  replacing: aFunction(),
  restoring: aFunction(),
  issued: aFunction(),
  rules: recordOf(aFunction()),
};

/** Names that GraphQL and JavaScript functions accept. */
const OPERATION_NAME = /^[a-z][A-Za-z0-9]{1,59}$/;
const PERMISSION = /^[A-Z][A-Z0-9_]{0,63}:[A-Z][A-Z0-9_]{0,63}$/;

const operations = recordOf(
  options<Record<'root' | 'does' | 'needs' | 'run', unknown>>({
    root: required(oneOf('Query', 'Mutation')),
    does: required(words),
    needs: required((value) =>
      typeof value === 'string' && PERMISSION.test(value)
        ? undefined
        : 'must be a permission, such as WIKI:UPDATE_ANY.',
    ),
    run: required(aFunction()),
  }),
);

const operationsRule: Rule<object> = (value, path) => {
  const wrong = operations(value, path) ?? undefined;
  const misnamed =
    wrong === undefined ? Object.keys(value as object).find((name) => !OPERATION_NAME.test(name)) : undefined;
  return misnamed === undefined
    ? wrong
    : `Its operation "${printable(misnamed)}" has no valid name, such as approveDeploy: a lower-case letter, then letters and digits.`;
};

/** The members of a feature, with their rules. Types of other rooms are not checked here. */
const MEMBERS = {
  name: required(text),
  needs: list(text),
  fields: recordOf((value, path) => ruleOfField(value, path)),
  errors: recordOf((value, path) => ruleOfError(value, path)),
  onKeys: options<Partial<Record<keyof typeof LISTENER, unknown>>>(LISTENER),
  store: aFunction(),
  operations: operationsRule,
  remote: aFunction(),
  schema: aFunction(),
  routes: aFunction(),
  background: aFunction(),
  resources: HOST_RESOURCES,
  actions: HOST_ACTIONS,
  metrics: list(
    options<AddedMetric>({
      name: required(text),
      kind: required(oneOf('counter', 'gauge')),
      help: required(words),
      labels: list(text),
      read: required(aFunction()),
    }),
  ),
  config: options<{ sections: unknown }>({ sections: required(recordOf(aFunction())) }),
  notices: recordOf(aFunction()),
  checks: list(options<Record<'name' | 'run', unknown>>({ name: required(text), run: required(aFunction()) })),
};

/** A problem by rules of options, in the words for properties of a feature. */
export function asProperties(problem: string): string {
  return problem
    .replaceAll('an option', 'a property')
    .replaceAll(/\boption/gi, 'property')
    .replaceAll('propertys', 'properties');
}

/** A copy of a feature that fits the rules: the getters of a plugin can fail later. */
function readFeature(given: unknown): FeatureOfFields {
  if (typeof given !== 'object' || given === null)
    throw new KeysError('FEATURE_INVALID', `A feature is ${kindOf(given)}. It must be an object with a name.`);
  const { name } = given as { name?: unknown };
  if (typeof name !== 'string' || !PACKAGE_NAME.test(name))
    throw new KeysError('FEATURE_INVALID', 'A feature has no valid "name". It is that of its package.');
  try {
    requireRules(name, given);
    return { ...given } as FeatureOfFields;
  } catch (error) {
    throw isKeysError(error) ? error : unreadable(name, error);
  }
}

/** An error of a plugin whose feature cannot be read, because a getter throws. */
export function unreadable(plugin: string, cause: unknown): KeysError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return invalidFeature(plugin, `It cannot be read: ${printable(reason, 300)}`, cause);
}

/** @throws KeysError FEATURE_INVALID */
function requireRules(name: string, given: object): void {
  const problem = options<Partial<Record<keyof typeof MEMBERS, unknown>>>(MEMBERS)(given, 'feature');
  if (problem !== undefined) throw invalidFeature(name, asProperties(problem.replaceAll('"feature.', '"')));
  if ('operations' in given && !('schema' in given))
    throw invalidFeature(name, 'It has "operations" without a "schema", which has their root fields.');
  const { checks = [] } = given as { checks?: readonly { readonly name: string }[] };
  const problemOfChecks = checks.map((check) => problemOfCheck(check.name, name, checks)).find((each) => each);
  if (problemOfChecks !== undefined) throw invalidFeature(name, problemOfChecks);
}

const STATUS = whole(400, 599);
const SENTENCE = textUpTo(1000);

const ERROR = options<AddedError>({
  exit: orNull(whole(1, 125)),
  status: STATUS,
  meaning: required(SENTENCE),
  causes: required(list(SENTENCE, 1)),
  remedy: required(SENTENCE),
  remedyIn: options<NonNullable<AddedError['remedyIn']>>({ flags: SENTENCE, schema: SENTENCE }),
});

const ruleOfError: Rule<AddedError> = (value, path) => {
  const code = path.slice(path.lastIndexOf('.') + 1);
  if (isErrorCode(code)) return ERROR(value, path);
  return `Its error code "${code}" is not valid. Write it as TEAM_MISSING: words in capital letters, joined by "_".`;
};

const ruleOfField: Rule<AddedField> = (value, path) => {
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
  const trimmed = new Set(values.map((word) => word.trim()));
  if (trimmed.size < values.length || values.some((word) => !trimmed.has(word)))
    return 'values that are equal, or have spaces around them.';
  return isListed && values.some((word) => /[,;]/.test(word))
    ? 'values with a comma or semicolon, which separates items.'
    : undefined;
}
