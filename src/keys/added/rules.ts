import {
  type AddedError,
  aFunction,
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
  text,
} from '../basics/index.ts';
import { HOST_ACTIONS, HOST_RESOURCES } from '../permissions/index.ts';
import { invalidFeature, unreadable } from './failures.ts';
import type { FeatureOfFields } from './feature-of-fields.ts';
import { ruleOfField } from './field-rules.ts';
import type { AddedMetric } from './metrics.ts';
import { snake } from './names.ts';
import { textUpTo, whole, words } from './text-rules.ts';

/** A package's name, as npm has it. */
const PACKAGE_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/** The problem of the name of a check. */
function problemOfCheck(name: string, feature: string, all: readonly { readonly name: string }[]): string | undefined {
  const own = snake(feature).toUpperCase();
  if ((name !== own && !name.startsWith(`${own}_`)) || !/^[A-Z][A-Z0-9_]{1,99}$/.test(name))
    return `Its check "${printable(name)}" must be named "${own}", or begin with "${own}_", and contain only capital letters, digits and "_".`;
  return all.filter((each) => each.name === name).length > 1 ? `It has two checks "${name}".` : undefined;
}

/** The steps of `onKeys`, with their rules. */
export const LISTENER = {
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
export const MEMBERS = {
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

/** A copy of a feature that fits the rules: the getters of a plugin can fail later. @throws KeysError FEATURE_INVALID */
export function readFeature(given: unknown): FeatureOfFields {
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
