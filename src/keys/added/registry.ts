import { addErrors, type FeatureOfErrors, formatList, KeysError, printable, suggestion } from '../basics/index.ts';
import {
  ACTIONS,
  addVocabulary,
  type HostResource,
  invalidAction,
  problemOfAddedResource,
  withOwn,
} from '../permissions/index.ts';
import { invalidFeature } from './failures.ts';
import type { FeatureOfFields } from './feature-of-fields.ts';
import type { RegisteredField } from './field-types.ts';
import { requireMetrics } from './metrics.ts';
import { kebab } from './names.ts';
import { type LISTENER, type MEMBERS, readFeature } from './rules.ts';

/** Names that GraphQL, JSON and flags accept. `no-` and `where-` are prefixes of generated flags. */
const FIELD_NAME = /^(?!(?:no|where)[A-Z])[a-z][A-Za-z0-9]{1,39}$/;

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
        const problem = own.includes(needed)
          ? 'was not chosen. Choose it as well.'
          : `does not exist. ${suggestion(needed, [...there])}`;
        throw invalidFeature(name, `It needs the feature "${printable(needed)}", which ${problem}`.trim());
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
  requireActions(read);
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

/** Checks the permissions of operations. @throws KeysError FEATURE_INVALID for an action that nothing declares */
function requireActions(given: readonly (FeatureOfFields & WithOperations)[]): void {
  const possible = [...ACTIONS, ...[...features, ...given].flatMap(({ actions: of = [] }) => of.flatMap(withOwn))];
  for (const { name, operations = {} } of given)
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
