import type { KeyObject } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Port } from '../keys/port.ts';
import type { NotificationReport } from '../keys/repository.ts';
import type { KeyRow, Tables } from './tables.ts';

/** The supported databases, for the few places where their SQL differs. */
export type DialectName = 'sqlite' | 'postgres';

/** Whether a store must exist when it is opened or, beyond that, need no migration. */
export type MustExist = boolean | 'migrated';

/** Work to do in one transaction. It calls `keysChanged` with the ids of those that it changes or deletes. */
export type WriteWork<Result> = (
  transaction: Kysely<Tables>,
  keysChanged: (ids: readonly string[]) => void,
) => Promise<Result>;

/** How to run a write transaction. */
export interface WriteOptions {
  /** Whether the work takes access away: on a full disk, it may use room that the store keeps for that. */
  revokes?: boolean;
}

/** The row of the key that has a secret, or had it once: then with the public id of that secret. */
export type KeyRowBySecret = KeyRow & { rotated_public_id?: string };

/** What was found by the digest of a secret: the row of its key, if there is one, and those of its parent keys. */
export interface FoundRow {
  row: KeyRowBySecret | undefined;
  ancestors: readonly KeyRow[];
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
  /**
   * Finds the key that has a secret with this digest, or had it once; undefined where that takes waiting, or fails:
   * then `run` can.
   */
  findByDigest?(digest: string): FoundRow | undefined;
  /** See `KeyRepository.revision`. */
  revision(): number | undefined;
  /** See `KeyRepository.keysChangedSince`. */
  keysChangedSince(revision: number): readonly string[] | 'any';
  /** See `KeyRepository.watchHearing`. */
  watchHearing(report: NotificationReport): void;
  close(): Promise<void>;
}

/** By what a feature's port reads. */
export interface Reading {
  readonly connection: Connection;
  /** In a transaction, what it sees. */
  readonly run: Connection['run'];
  /** The key of the audit log, if it has one. */
  readonly auditKey: KeyObject | undefined;
}

/** By what it changes something, in a transaction. */
export interface Writing {
  readonly db: Kysely<Tables>;
  readonly dialect: DialectName;
  readonly auditKey: KeyObject | undefined;
  /** Is told which keys are changed or deleted. */
  readonly keysChanged: (ids: readonly string[]) => void;
}

/** How the store does what a feature asks of it. */
export interface PortOfStore<Reader, Writer extends Reader> {
  readonly port: Port<Reader, Writer>;
  readonly read: (by: Reading) => Reader;
  /** What a transaction does besides; undefined for what is never asked in one, or changes nothing. */
  readonly write?: (by: Writing) => Omit<Writer, keyof Reader>;
  /** The same as `read` where there is no store, at a location. */
  readonly empty: (location: string) => Reader;
  /** Is told which keys were deleted. */
  readonly deleted?: (by: Writing, ids: readonly string[]) => Promise<void>;
}

/** Any port of the store. */
export type AnyPortOfStore = PortOfStore<unknown, unknown>;

/** A port of the store, of which only the feature knows more. */
export function portOfStore<Reader, Writer extends Reader>(port: PortOfStore<Reader, Writer>): AnyPortOfStore {
  return port;
}
