/** One rule that a given value breaks. `message` is a sentence that names the value; it never holds a secret. */
export interface Issue {
  code:
    | 'NAME_INVALID'
    | 'DESCRIPTION_INVALID'
    | 'ROLE_INVALID'
    | 'PERMISSION_INVALID'
    | 'NO_GRANTS'
    | 'EXPIRY_INVALID'
    | 'SECRET_INVALID'
    | 'INPUT_INVALID'
    | 'USAGE';
  message: string;
}

/** Every code that a `KeysError` can carry. Codes are stable: scripts compare them. */
export type ErrorCode =
  | Issue['code']
  | 'NAME_TAKEN'
  | 'SECRET_TAKEN'
  | 'PREFIX_TAKEN'
  | 'ID_TAKEN'
  | 'NOT_FOUND'
  | 'FORBIDDEN'
  | 'ROTATION_IN_PROGRESS'
  | 'ROTATION_NONE'
  | 'DECLARATION_INVALID'
  | 'PRUNE_REFUSED'
  | 'OUTPUT_FAILED'
  | 'LIMIT_EXCEEDED'
  | 'SCHEMA_INVALID'
  | 'LISTEN_FAILED'
  | 'STORE_UNAVAILABLE'
  | 'STORE_LOCKED'
  | 'STORE_FULL'
  | 'STORE_READONLY'
  | 'STORE_CORRUPT'
  | 'STORE_FOREIGN'
  | 'STORE_NEWER'
  | 'STORE_NOT_EMPTY'
  | 'STORE_FAILED';

const brand = Symbol.for('svc-api.keys-error');

/** An error that was foreseen: its message is meant for the user, and its code for the user's program. */
export class KeysError extends Error {
  override readonly name = 'KeysError';
  readonly code: ErrorCode;
  readonly [brand] = true;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Another key has the name. */
export class NameTakenError extends KeysError {
  /** Whether it can be replaced by the same request: a new key can take its place, a changed one cannot. */
  readonly replaceable: boolean;

  constructor(name: string, replaceable: boolean) {
    super('NAME_TAKEN', `An API key named "${name}" already exists.`);
    this.replaceable = replaceable;
  }
}

/** Some values break rules: `issues` has all of them, and `code` is the first one's. */
export class ValidationError extends KeysError {
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
 * Tells whether an error is a `KeysError`, also one of another copy of this package: a host CLI and a plugin of it may
 * each have theirs.
 */
export function isKeysError(error: unknown): error is KeysError {
  return typeof error === 'object' && error !== null && brand in error;
}
