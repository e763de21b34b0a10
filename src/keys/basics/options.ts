import { KeysError } from './errors.ts';
import { suggestion } from './nearest.ts';
import { formatList, printable } from './text.ts';

/** Checks an option. Returns the problem as the end of a sentence; undefined if there is none. */
export interface Rule<Value> {
  (value: unknown, name: string): string | undefined;
  /** For the compiler alone: the type of accepted values. */
  readonly accepts?: Value;
  readonly isRequired?: boolean;
  /** True if the option can be given as undefined, which counts as left out. */
  readonly takesUndefined?: boolean;
}

/** The rule of each option. Missing, misnamed and mistyped rules are type errors. */
export type Rules<Options> = {
  readonly [Name in keyof Options]-?: Rule<Exclude<Options[Name], undefined>> &
    (object extends Pick<Options, Name> ? unknown : { readonly isRequired: true });
};

/**
 * Refuses options with unknown names, with the value undefined, or with invalid values. An option read from elsewhere
 * is often undefined by mistake, which would silently turn off the protection that it configures.
 * @param caller the function they were given to, such as `openKeys`
 * @param what the subject of an error if they are not an object
 * @throws KeysError OPTION_INVALID
 */
export function checkOptions<Options>(
  caller: string,
  options: unknown,
  rules: Rules<Options>,
  what = 'The options are',
): void {
  const problem = problemIn(options, rules as Rules<Record<string, unknown>>, what);
  if (problem !== undefined) throw invalidOption(caller, problem);
}

/** The error for invalid options. @param problem a sentence */
export function invalidOption(caller: string, problem: string): KeysError {
  return new KeysError('OPTION_INVALID', `${caller}: ${problem}`);
}

/** The options without those that are undefined, for callers with rules of their own for missing ones. */
export function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}

function problemIn(
  options: unknown,
  rules: Rules<Record<string, unknown>>,
  what: string,
  path = '',
): string | undefined {
  const names = Object.keys(rules);
  if (!isObject(options)) return `${what} ${kindOf(options)}. Give an object with ${formatList(names)}.`;
  // An inherited property would be checked but not used, or used but not checked.
  if (!isPlain(options)) return `${what} an object of a class. Give a plain object with ${formatList(names)}.`;
  const shown = (name: string) => `"${path}${printable(name)}"`;
  const remedy = (name: string) => (suggestion(name, names) || `The options are ${formatList(names)}.`).trim();
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) return `${shown(name)} is not an option. ${remedy(name)}`;
    if (value === undefined && !rules[name]!.takesUndefined)
      return `The option ${shown(name)} is undefined. Leave it out, or give it a value.`;
  }
  for (const [name, rule] of Object.entries(rules)) {
    const { [name]: value } = options;
    if (value === undefined && rule.isRequired) return `The option ${shown(name)} is missing.`;
    const problem = value === undefined ? undefined : rule(value, `${path}${name}`);
    if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `The option ${shown(name)} ${problem}`;
  }
  return undefined;
}

/** A rule for values that satisfy a test. @param what the end of "must be …" */
function mustBe<Value>(what: string, isRight: (value: unknown) => boolean): Rule<Value> {
  return (value) =>
    isRight(value) ? undefined : `is ${typeof value === 'number' ? value : kindOf(value)}. It must be ${what}.`;
}

/** Text that is not empty. */
export const text: Rule<string> = (value) =>
  typeof value === 'string' && value.trim() === ''
    ? 'is empty. Leave it out, or give it a value.'
    : mustBe('text', (given) => typeof given === 'string')(value, '');
/** Any text, even empty, for options that are checked further elsewhere. */
export const anyText: Rule<string> = mustBe('text', (value) => typeof value === 'string');
/** Text, or a date. */
export const textOrDate: Rule<string | Date> = mustBe(
  'text or a Date',
  (value) => typeof value === 'string' || value instanceof Date,
);
/** A UUID as it is written, in lower case: RFC 9562, section 4. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const uuid: Rule<string> = mustBe('a UUID', (value) => typeof value === 'string' && UUID.test(value));
export const yesOrNo: Rule<boolean> = mustBe('true or false', (value) => typeof value === 'boolean');
export const anyNumber: Rule<number> = mustBe('a number', (value) => typeof value === 'number');
/** A number of at least 0. Infinity is refused. */
export const amount: Rule<number> = mustBe(
  'a number of at least 0',
  (value) => typeof value === 'number' && value >= 0,
);
/** A whole number of at least 0. Infinity is refused. */
export const count: Rule<number> = mustBe(
  'a whole number of at least 0',
  (value) => value === Infinity || (Number.isInteger(value) && (value as number) >= 0),
);
/** A duration that Node's timers accept. */
export const duration: Rule<number> = mustBe(
  'a number of milliseconds from 0 to 2147483647',
  (value) => typeof value === 'number' && value >= 0 && value <= 2_147_483_647,
);
/** An object whose property names are chosen by the caller. */
export function recordOf<Value>(rule: Rule<Value>): Rule<Readonly<Record<string, Value>>> {
  return (value, name) => {
    if (!isObject(value) || !isPlain(value)) return `is ${kindOf(value)}. It must be a plain object.`;
    for (const [key, item] of Object.entries(value)) {
      const problem = rule(item, `${name}.${printable(key)}`);
      if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `has "${printable(key)}", which ${problem}`;
    }
    return undefined;
  };
}
/** Any value, for options that are checked elsewhere. */
// oxlint-disable-next-line typescript/no-explicit-any -- it fits each type
export const anything: Rule<any> = () => undefined;

/** An object with these members, of a type that is checked elsewhere. */
export function having<Value>(what: string, ...members: (keyof Value & string)[]): Rule<Value> {
  return mustBe(
    what,
    (value) =>
      (typeof value === 'object' || typeof value === 'function') &&
      value !== null &&
      members.every((member) => member in value),
  );
}

// oxlint-disable-next-line typescript/no-explicit-any -- a function of any type
export function aFunction<Value extends (...values: any[]) => unknown>(): Rule<Value> {
  return mustBe('a function', (value) => typeof value === 'function');
}

/** One of these words. */
export function oneOf<const Word extends string | boolean>(...words: readonly Word[]): Rule<Word> {
  const texts = words.map((word) => (typeof word === 'string' ? `"${word}"` : `${word}`));
  return (value) => {
    if (words.includes(value as Word)) return undefined;
    const candidates = words.flatMap((word) => (typeof word === 'string' ? [word] : []));
    const close = typeof value === 'string' ? suggestion(value, candidates) : '';
    const shown = typeof value === 'string' ? `"${printable(value)}"` : kindOf(value);
    return `is ${shown}. ${close}It must be ${formatList(texts, 'or')}.`;
  };
}

/** A list whose items follow a rule. @param least the minimum number of items */
export function list<Item>(rule: Rule<Item>, least = 0): Rule<readonly Item[]> {
  return (value, name) => {
    if (!Array.isArray(value)) return `is ${kindOf(value)}. It must be a list.`;
    if (value.length < least) return 'is an empty list. Leave it out, or give it an item.';
    for (const [index, item] of value.entries()) {
      const problem = rule(item, `${name}[${index}]`);
      if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `has an item that ${problem}`;
    }
    return undefined;
  };
}

/** Options within an option. */
export function options<Options>(rules: Rules<Options>): Rule<Options> {
  return (value, name) =>
    problemIn(value, rules as Rules<Record<string, unknown>>, `The option "${name}" is`, `${name}.`);
}

/** A value checked by `read`, which throws if it is invalid. */
export function readBy<Value>(read: (value: Value) => unknown, rule: Rule<Value>): Rule<Value> {
  return (value, name) => {
    const problem = rule(value, name);
    if (problem !== undefined) return problem;
    try {
      read(value as Value);
      return undefined;
    } catch (error) {
      return `is not valid: ${(error as Error).message}`;
    }
  };
}

/** A value of the rule, or null. */
export function orNull<Value>(rule: Rule<Value>): Rule<Value | null> {
  return (value, name) => (value === null ? undefined : rule(value, name));
}

/** Non-empty text, or a value of the rule. */
export function textOr<Value>(rule: Rule<Value>): Rule<string | Value> {
  return (value, name) => (typeof value === 'string' ? text(value, name) : rule(value, name));
}

/** An option that must be given. */
export function required<Value>(rule: Rule<Value>): Rule<Value> & { readonly isRequired: true } {
  return Object.assign((value: unknown, name: string) => rule(value, name), { isRequired: true as const });
}

/** An option that can be undefined, because callers pass on a value that may be missing. */
export function orUndefined<Value>(rule: Rule<Value>): Rule<Value> {
  return Object.assign((value: unknown, name: string) => rule(value, name), { takesUndefined: true });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('then' in value);
}

/** True if an object inherits only from `Object.prototype`, of any realm. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The kind of a value in words, without the value itself. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value === undefined) return 'undefined';
  if (typeof (value as { then?: unknown }).then === 'function') return 'a promise, which is not awaited';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
