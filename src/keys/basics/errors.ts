import { errorEntry, type ERRORS, type VALUE_ERRORS } from './error-codes/index.ts';

/** One validation problem: a rule that a given value breaks. */
export interface Issue {
  /** Stable, as `ErrorCode`. */
  code: keyof typeof VALUE_ERRORS;
  /** A sentence that names the value; it never holds a secret. */
  message: string;
  /** The field of the request that is wrong, if there is one. */
  field?: string;
}

/** A code of a `KeysError`: one of the core, or of a feature. Codes are stable: scripts compare them. */
export type ErrorCode = keyof typeof ERRORS | (string & Record<never, never>);

const brand = Symbol.for('svc-api.keys-error');

/** An expected error, with a message for the user and a code for the user's program. */
export class KeysError extends Error {
  override readonly name = 'KeysError';
  /** The kind of error, stable between versions. */
  readonly code: ErrorCode;
  readonly [brand] = true;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Makes an error without a stack trace, which would cost more than the rest of a refusal. For errors whose message says
 * enough, and for those that wrap another.
 */
export function withoutStackTrace<Value>(make: () => Value): Value {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/**
 * A decision, or why it was refused. A refusal that is part of normal operation is returned like this; errors that end
 * an operation are thrown. `'refusal' in` tells the two apart, so that the frequent case, a yes, needs no object of its
 * own.
 */
export type OrRefusal<Decided, Refusal = string> = Decided | { readonly refusal: Refusal };

/** Another key has this name. */
export class NameTakenError extends KeysError {
  /** True if `overwrite` would help: a new key can replace the other one, but renaming cannot. */
  readonly replaceable: boolean;

  constructor(name: string, replaceable: boolean) {
    super('NAME_TAKEN', `An API key named "${name}" already exists.`);
    this.replaceable = replaceable;
  }
}

/** The remedy in terms of flags or of the GraphQL schema; undefined if the message says everything. */
export function remedyIn(terms: 'flags' | 'schema', error: KeysError): string | undefined {
  if ('replaceable' in error && error.replaceable === false) return 'Choose another name.';
  return errorEntry(error.code)?.remedyIn?.[terms];
}

/** Invalid values. The code is that of the first issue. */
export class ValidationError extends KeysError {
  /** All of them, at least one. */
  readonly issues: readonly Issue[];

  constructor(issues: readonly [Issue, ...Issue[]]) {
    super(issues[0].code, issues.map((issue) => issue.message).join('\n'));
    this.issues = issues;
  }
}

/** Throws a `ValidationError` with all the issues, if there are any. */
export function assertValid(issues: readonly Issue[]): void {
  const [first, ...rest] = issues;
  if (first) throw new ValidationError([first, ...rest]);
}

/**
 * True for a `KeysError`, even of another copy of this package: a host CLI and its plugin may each load their own. Also
 * true for an error with a code of a plugin, so that plugins need not import svc-api to throw it.
 * @example
 * try {
 *   await keys.create({ name: 'CI', roles: ['VIEWER'] }, { actor: OPERATOR });
 * } catch (error) {
 *   if (!isKeysError(error) || error.code !== 'NAME_TAKEN') throw error;
 * }
 */
export function isKeysError(error: unknown): error is KeysError {
  if (typeof error !== 'object' || error === null) return false;
  return (
    brand in error || (error instanceof Error && 'code' in error && errorEntry(String(error.code))?.isAdded === true)
  );
}

/**
 * Throws the error of an `import()` of an optional package. With this handler, bundlers accept that the package is
 * missing.
 */
export function rethrow(error: unknown): never {
  throw error;
}

/** True if the error says that an optional package is not installed, from Node or from a bundler. */
export function isPackageMissing(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).endsWith('MODULE_NOT_FOUND');
}
