/** One validation problem: a rule that a given value breaks. */
export interface Issue {
  /** Stable, as `ErrorCode`. */
  code:
    | 'NAME_INVALID'
    | 'DESCRIPTION_INVALID'
    | 'OWNER_INVALID'
    | 'TAG_INVALID'
    | 'ROLE_INVALID'
    | 'PERMISSION_INVALID'
    | 'NO_GRANTS'
    | 'EXPIRY_INVALID'
    | 'LIMIT_INVALID'
    | 'NETWORK_INVALID'
    | 'SECRET_INVALID'
    | 'INPUT_INVALID'
    | 'USAGE';
  /** A sentence that names the value; it never holds a secret. */
  message: string;
  /** The field of the request that it is about, if it is about one. */
  field?: string;
}

/** Every code that a `KeysError` can carry. Codes are stable: scripts compare them. */
export type ErrorCode =
  | Issue['code']
  | 'NAME_TAKEN'
  | 'NAME_CONFUSABLE'
  | 'SECRET_TAKEN'
  | 'PREFIX_TAKEN'
  | 'ID_TAKEN'
  | 'NOT_FOUND'
  | 'FORBIDDEN'
  | 'ROTATION_IN_PROGRESS'
  | 'ROTATION_NONE'
  | 'NOT_FOR_PEOPLE'
  | 'DECLARATION_INVALID'
  | 'CONFIG_INVALID'
  | 'CONFIG_INSECURE'
  | 'CONFIG_UNAVAILABLE'
  | 'PRUNE_REFUSED'
  | 'TAKEOVER_REFUSED'
  | 'CHAIN_TOO_LONG'
  | 'POLICY_VIOLATED'
  | 'REQUEST_DECIDED'
  | 'CONSENT_OFF'
  | 'TOO_MANY_REQUESTS'
  | 'OUTPUT_FAILED'
  | 'LIMIT_EXCEEDED'
  | 'SCHEMA_INVALID'
  | 'HOST_INVALID'
  | 'OPTION_INVALID'
  | 'GRAPHQL_UNSUPPORTED'
  | 'NODE_UNSUPPORTED'
  | 'DRIVER_UNSUPPORTED'
  | 'LISTEN_FAILED'
  | 'TLS_INVALID'
  | 'UNAUTHENTICATED'
  | 'RATE_LIMITED'
  | 'BUDGET_SPENT'
  | 'CREDENTIALS_INVALID'
  | 'SERVER_UNREACHABLE'
  | 'SERVER_INCOMPATIBLE'
  | 'SERVER_INSECURE'
  | 'SERVER_FAILED'
  | 'STORE_REQUIRED'
  | 'STORE_UNAVAILABLE'
  | 'STORE_LOCKED'
  | 'STORE_FULL'
  | 'STORE_READONLY'
  | 'STORE_INSECURE'
  | 'STORE_CORRUPT'
  | 'STORE_REPLACED'
  | 'STORE_FOREIGN'
  | 'STORE_NEWER'
  | 'STORE_OLDER'
  | 'STORE_NOT_EMPTY'
  | 'STORE_AUDIT_KEY'
  | 'STORE_FAILED'
  | 'EDGE_STALE'
  | 'BACKUP_EXISTS'
  | 'BACKUP_INVALID'
  | 'BACKUP_UNAVAILABLE'
  | 'RESTORE_BLIND'
  | 'RESTORE_OUTDATED';

const brand = Symbol.for('svc-api.keys-error');

/** An expected error: its message is meant for the user, and its code for the user's program. */
export class KeysError extends Error {
  override readonly name = 'KeysError';
  /** Tells what went wrong; stable between versions. */
  readonly code: ErrorCode;
  readonly [brand] = true;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Makes an error without a stack trace, which costs more than all the rest of a refusal. For errors that say by
 * themselves what is wrong, and for those that wrap another.
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
 * What was decided, or why not. A decision that may well be no is returned so; what ends an operation is thrown, as an
 * error with a code. It is told by `'refusal' in`, so that a yes, of which there are most, costs no object of its own.
 */
export type OrRefusal<Decided, Refusal = string> = Decided | { readonly refusal: Refusal };

/** Another key has this name. */
export class NameTakenError extends KeysError {
  /** Whether `overwrite` would help: a new key can replace the other one, a renamed key cannot. */
  readonly replaceable: boolean;

  constructor(name: string, replaceable: boolean) {
    super('NAME_TAKEN', `An API key named "${name}" already exists.`);
    this.replaceable = replaceable;
  }
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
 * Tells whether an error is a `KeysError`, even of another copy of this package: a host CLI and its plugin may each
 * load their own.
 * @example
 * try {
 *   await keys.create({ name: 'CI', roles: ['VIEWER'] }, { actor: OPERATOR });
 * } catch (error) {
 *   if (!isKeysError(error) || error.code !== 'NAME_TAKEN') throw error;
 * }
 */
export function isKeysError(error: unknown): error is KeysError {
  return typeof error === 'object' && error !== null && brand in error;
}

/** Throws what an `import()` of an optional package threw. With such a handler, bundlers leave out one that is missing. */
export function rethrow(error: unknown): never {
  throw error;
}

/** Whether an optional package is not installed, as Node or a bundler says it. */
export function isPackageMissing(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).endsWith('MODULE_NOT_FOUND');
}
