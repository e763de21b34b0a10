/** An error code: the exit code of a command, the answer of a server, and its section in `docs/errors.md`. */
export interface ErrorEntry {
  /** Exit code of a command that fails with it; null if no command does. Default: 1. */
  readonly exit?: number | null;
  /** HTTP status of a page, or of any answer except GraphQL. Default: 400. */
  readonly status?: number;
  /** Set if GraphQL answers carry it. A command with `--server` then fails with the same code. */
  readonly graphql?: true;
  /** False if the error on stderr has no link to its section. */
  readonly page?: false;
  /** One sentence. */
  readonly meaning: string;
  /** Common causes, each as a clause. */
  readonly causes: readonly string[];
  /** Remedy, in sentences. */
  readonly remedy: string;
  /** A remedy that is added to the message, in terms of flags or of the GraphQL schema. */
  readonly remedyIn?: { readonly flags?: string; readonly schema?: string };
}

/** An error code of a plugin. Each answer can carry it. */
export type AddedError = Omit<ErrorEntry, 'graphql' | 'page'>;

/** Error codes. Published codes, their exit codes and their statuses stay as they are. */
export type ErrorTable<Code extends string = string> = Readonly<Record<Code, ErrorEntry>>;

/** Declares error codes. */
export function defineErrors<Code extends string>(table: ErrorTable<Code>): ErrorTable<Code> {
  return table;
}

/** True for codes that a feature can have, such as `TEAM_MISSING`. Codes of Node begin with `ERR_`. */
export function isErrorCode(code: string): boolean {
  return /^(?!ERR_)[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(code) && code.length <= 60;
}
