import type { Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** The kinds of databases, for the few places where their SQL differs. */
export type DialectName = 'sqlite' | 'postgres';

/** What is done in one transaction. It says so where it changes a key: what is only counted leaves the revision as it is. */
export type WriteWork<Result> = (transaction: Kysely<Tables>, changed: () => void) => Promise<Result>;

/** What the repository needs of an open database, of whatever kind. Errors come as those that users see. */
export interface Connection {
  readonly dialect: DialectName;
  /** The absolute path, or the URL without its password. */
  readonly location: string;
  /** Whether there was no store before. */
  readonly created: boolean;
  /** Reads. @throws KeysError STORE_… */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in one transaction, which no other writer can come between. It may be run again where nothing of it has
   * been written. @throws KeysError STORE_…
   */
  write<Result>(work: WriteWork<Result>): Promise<Result>;
  /** See `KeyRepository.revision`. */
  revision(): number | undefined;
  close(): Promise<void>;
}
