import { Kysely } from 'kysely';
import type { KeyObject } from 'node:crypto';
import { failedFeature, isAdded } from '../keys/added/index.ts';
import { isKeysError, type Port, printable } from '../keys/basics/index.ts';
import type { Connection, DialectName } from './connection.ts';
import type { StoreClock } from './limit-store.ts';
import type { FeatureTables, Tables, TablesOfFeature } from './tables.ts';

/** Gives a feature's port read access. */
export interface Reading {
  readonly connection: Connection;
  /** Inside a transaction, it sees that transaction's state. */
  readonly run: Connection['run'];
  /** The key of the audit log, if it has one. */
  readonly auditKey: KeyObject | undefined;
  /** The clock that all processes of the store share. */
  readonly clock: StoreClock;
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
  const { port, read, write, forgetBefore } = given;
  const named = <Given extends unknown[], Result>(
    work: (...given: Given) => Promise<Result>,
    // Writing in the store looks for failures of the database itself.
    isFailure: (error: unknown) => boolean = () => false,
  ) =>
    async function (this: unknown, ...values: Given): Promise<Result> {
      try {
        return await work.apply(this, values);
      } catch (error) {
        if (isKeysError(error) || isFailure(error)) throw error;
        throw failedFeature(plugin, `port ${printable(String(port.name))}`, error);
      }
    };
  return {
    port,
    read: ({ connection, run, ...by }) =>
      read({ ...by, connection, run: (work) => run(named(work, (error) => connection.isFailure(error))) }),
    ...(write && {
      write: (by: Writing) =>
        Object.fromEntries(
          Object.entries(write(by)).map(([name, work]) => [name, named(work as () => Promise<unknown>)]),
        ),
    }),
    ...(forgetBefore && { forgetBefore: named(forgetBefore) }),
  };
}

/** Types a port of the store. */
export function portOfStore<Reader, Writer extends Reader>(port: PortOfStore<Reader, Writer>): AnyPortOfStore {
  return port;
}
