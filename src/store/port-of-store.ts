import { Kysely } from 'kysely';
import type { KeyObject } from 'node:crypto';
import { failedFeature, isAdded } from '../keys/added/index.ts';
import { isKeysError, type Port, printable } from '../keys/basics/index.ts';
import type { Connection, DialectName } from './connection.ts';
import type { FeatureTables, Tables, TablesOfFeature } from './tables.ts';

/** Gives a feature's port read access. */
export interface Reading {
  readonly connection: Connection;
  /** Inside a transaction, it sees that transaction's state. */
  readonly run: Connection['run'];
  /** The key of the audit log, if it has one. */
  readonly auditKey: KeyObject | undefined;
}

/** Gives a feature's port write access, in a transaction. */
export interface Writing {
  readonly db: Kysely<Tables>;
  readonly dialect: DialectName;
  readonly auditKey: KeyObject | undefined;
  /** Called with the ids of changed and deleted keys. */
  readonly keysChanged: (ids: readonly string[]) => void;
}

/** The store's implementation of a feature's port. */
interface PortOfStore<Reader, Writer extends Reader> {
  readonly port: Port<Reader, Writer>;
  readonly read: (by: Reading) => Reader;
  /** Gives write access in a transaction; undefined for ports that change nothing. */
  readonly write?: (by: Writing) => Omit<Writer, keyof Reader>;
  /** Removes rows related to pruned audit entries: at most this many from before a time. @returns how many */
  readonly forgetBefore?: (by: Writing, before: number, limit: number) => Promise<number>;
}

/** Any port of the store. */
export type AnyPortOfStore = PortOfStore<unknown, unknown>;

/** Everything that a feature keeps in a store. */
export interface StoreOfFeature extends TablesOfFeature {
  /** The ports that its rules ask for. */
  readonly ports?: readonly AnyPortOfStore[];
}

/** The parts of a feature in a store, with its name. */
export type FeatureInStore = FeatureTables & StoreOfFeature;

/** The ports of features. */
export function portsOf(features: readonly FeatureInStore[]): AnyPortOfStore[] {
  return features.flatMap(({ feature, ports = [] }) =>
    isAdded({ name: feature }) ? ports.map((port) => portOfPlugin(feature, port)) : ports,
  );
}

/** A port of a plugin. Work of it that fails names it, unless the database fails. */
export function portOfPlugin(plugin: string, given: AnyPortOfStore): AnyPortOfStore {
  const named = ({ run, ...by }: Reading): Reading => ({
    ...by,
    run: (work) =>
      run(async (db) => {
        try {
          return await work(db);
        } catch (error) {
          if (isKeysError(error) || by.connection.isFailure(error)) throw error;
          throw failedFeature(plugin, `port ${printable(String(given.port.name))}`, error);
        }
      }),
  });
  return { ...given, read: (by) => given.read(named(by)) };
}

/** Types a port of the store. */
export function portOfStore<Reader, Writer extends Reader>(port: PortOfStore<Reader, Writer>): AnyPortOfStore {
  return port;
}
