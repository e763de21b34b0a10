import type { Kysely } from 'kysely';
import type { HearingReport } from '../keys/repository.ts';
import type { Tables } from './tables.ts';

/** The supported databases, for the few places where their SQL differs. */
export type DialectName = 'sqlite' | 'postgres';

/** Work to do in one transaction. It calls `keysChanged` when it changes a key, which changes the revision. */
export type WriteWork<Result> = (transaction: Kysely<Tables>, keysChanged: () => void) => Promise<Result>;

/** How to run a write transaction. */
export interface WriteOptions {
  /** Whether the work takes access away: on a full disk, it may use room that the store keeps for that. */
  revokes?: boolean;
}

/** An open database of any dialect, as the repository uses it. Its errors are meant for users. */
export interface Connection {
  readonly dialect: DialectName;
  /** The absolute path, or the URL without its password. */
  readonly location: string;
  /** Whether opening it has created the store. */
  readonly created: boolean;
  /** Runs `work` outside a transaction, to read. @throws KeysError STORE_… */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in one transaction, exclusive of other writers. It may run several times, the earlier ones rolled back.
   * @throws KeysError STORE_…
   */
  write<Result>(work: WriteWork<Result>, options?: WriteOptions): Promise<Result>;
  /** See `KeyRepository.revision`. */
  revision(): number | undefined;
  /** See `KeyRepository.watchHearing`. */
  watchHearing(report: HearingReport): void;
  close(): Promise<void>;
}
