import { POLICY_ENTRIES, VerifiedChain } from '../audit/index.ts';
import {
  Activity,
  type ActivityWriters,
  Authenticator,
  type CheckCounts,
  noChecks,
  Upkeep,
  writeEvents,
  writeUses,
} from '../authentication/index.ts';
import { type Actor, AuditAccess } from '../authorization/index.ts';
import { madeOnce, type Port, UNIT_MS } from '../basics/index.ts';
import { type Parts, PermittedChanges, type Transaction, Transactions } from '../changes/index.ts';
import { type ApiKey, USE, type UseTotals } from '../key/index.ts';
import { KeyLists } from '../lists/index.ts';
import type { Catalog } from '../permissions/index.ts';
import { type KeyWriter, USED_TOKENS } from '../repository/index.ts';
import { KeyManagement } from './management.ts';
import { type HealthOptions, StoreHealth } from './store-health.ts';

export interface KeysOptions extends Omit<Parts & HealthOptions, 'transactions'> {
  /** Milliseconds of a monotonic clock. Default: `performance.now`. */
  elapsed?: (() => number) | undefined;
  /** See `AuthenticatorOptions`. */
  maxVerifiedKeys?: number | undefined;
  /** Writers of activity. Default: the repository, which then also limits the usage that is kept. */
  activityWriters?: ActivityWriters | undefined;
}

/** How long it is remembered that a named batch was written. */
const REPORTED_MS = UNIT_MS.h;

/** Writes activity to the repository. */
function activityIn(options: KeysOptions): ActivityWriters & { afterUse: () => Promise<void> } {
  const { repository, clock } = options;
  const upkeep = new Upkeep(options);
  const once =
    (name: string | undefined, now: number, work: (writer: KeyWriter) => Promise<void>) =>
    async (writer: KeyWriter): Promise<boolean> => {
      const isNew = name === undefined || (await writer.port(USED_TOKENS).use(name, now + REPORTED_MS, now));
      if (isNew) await work(writer);
      return isNew;
    };
  return {
    writeUse: (uses, name) => {
      const now = clock();
      return repository.write(
        once(name, now, (writer) => writeUses(writer, uses, options.listeners)),
        { counts: true },
      );
    },
    writeEvents: (events, name) => {
      const now = clock();
      return repository.write(once(name, now, (writer) => writeEvents(writer, events, { ...options, now })));
    },
    afterUse: () => upkeep.run(),
  };
}

/** The parts for the rules of features. */
export type FeatureParts = KeysOptions &
  Omit<Shared, 'ends'> & {
    transactions: Transactions;
  };

/** Parts that all services over the same store share in a process. */
interface Shared {
  activity: Activity;
  counts: CheckCounts;
  chain: VerifiedChain;
  /** A part of a feature, by its class. */
  shared: <Part>(part: new (options: SharedParts) => Part) => Part;
  /** Ends the work of such parts. */
  ends: (() => Promise<void>)[];
}

/** The parts for those of features that services over the same store share. */
export interface SharedParts extends KeysOptions {
  activity: Activity;
  activityWriters: ActivityWriters;
  /** Has work done before the store is closed. */
  onClose: (end: () => Promise<void>) => void;
}

/** The parts of the first service over a store. */
function createShared(options: KeysOptions): Shared {
  const { clock, schedule, repository } = options;
  const activityWriters = options.activityWriters ?? activityIn(options);
  const activity = new Activity({ clock, schedule, ...activityWriters });
  const ends: Shared['ends'] = [];
  const parts: SharedParts = { ...options, activity, activityWriters, onClose: (end) => void ends.push(end) };
  return {
    activity,
    counts: noChecks(),
    chain: new VerifiedChain(repository.auditLog),
    shared: madeOnce((part: new (options: SharedParts) => unknown) => new part(parts)) as Shared['shared'],
    ends,
  };
}

/**
 * The symbol by which functions of the library find the service of an open key store, even one opened by another copy
 * of the package.
 */
export const SERVICE: unique symbol = Symbol.for('svc-api.service');

/**
 * The rules for reading, creating, changing and deleting keys. Both the command line and GraphQL use it, so they cannot
 * differ.
 */
export class KeysService extends KeyManagement {
  /**
   * Authenticates secrets, without a promise if a key was verified before. It does not enforce networks, limits and
   * permissions, and counts no use: `bearerAuth` and `OpenKeys.check` do.
   */
  readonly authenticator: Authenticator;
  /** The clock for decisions, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly #parts: FeatureParts;
  readonly #feature = madeOnce((rules: new (parts: FeatureParts) => unknown) => new rules(this.#parts));
  readonly #shared: Shared;

  /** @param shared that of a service over the same store; see `withCatalog` */
  constructor(options: KeysOptions, shared?: Shared) {
    const transactions = new Transactions(options);
    super({ ...options, transactions });
    this.#shared = shared ?? createShared(options);
    this.#parts = { ...options, ...this.#shared, transactions };
    this.authenticator = new Authenticator({ ...options, ...this.#shared });
    this.clock = options.clock;
  }

  /** The audit log, limited to the entries that each actor is allowed to read. */
  get audit(): AuditAccess {
    return this.feature(AuditAccess);
  }

  /** The changes that would be refused, found out in advance. */
  get permittedChanges(): PermittedChanges {
    return this.feature(PermittedChanges);
  }

  /** Lists of keys for people. */
  get lists(): KeyLists {
    return this.feature(KeyLists);
  }

  /** The health of the store. */
  get store(): StoreHealth {
    return this.feature(StoreHealth);
  }

  /** The ids of those of these keys that the policy has disabled and that are still disabled. @throws KeysError STORE_… */
  async disabledByPolicy(keys: readonly ApiKey[]): Promise<Set<string>> {
    const disabled = keys.filter(({ disabledAt }) => disabledAt !== null);
    return disabled.length === 0 ? new Set() : this.#parts.repository.port(POLICY_ENTRIES).disabled(disabled);
  }

  /** How much keys were used, by their ids; those that never were are left out. @throws KeysError STORE_… */
  useOf(ids: readonly string[]): Promise<Map<string, UseTotals>> {
    return this.#parts.repository.port(USE).totals(ids);
  }

  /** The rules of a feature over this store, by their class. They are made on first use. */
  feature<Rules>(rules: new (parts: FeatureParts) => Rules): Rules {
    return this.#feature(rules) as Rules;
  }

  /** Gives read access to a port, such as one of a plugin for its endpoints and operations. */
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Reader {
    return this.#parts.repository.port(port);
  }

  /**
   * Writes by ports in one transaction, such as those of a plugin in its operations. If `work` throws, nothing is written.
   * `transaction.caller` is the actor as it is inside: its grants can have changed since it was authenticated.
   * @throws KeysError FORBIDDEN for an actor that is no longer valid; a STORE_ error; errors of `work`
   */
  write<Result>(work: (transaction: Transaction) => Promise<Result>, actor: Actor): Promise<Result> {
    return this.#parts.transactions.run(actor, work);
  }

  /** Returns the service itself. */
  get [SERVICE](): this {
    return this;
  }

  /**
   * A service over the same store with another catalog. Work in progress finishes with the present catalog; verified
   * keys are looked up again with the other one, since their permissions may differ.
   */
  withCatalog(catalog: Catalog): KeysService {
    return new KeysService(...this.partsWith(catalog));
  }

  /** The constructor arguments of a service over the same store with another catalog. */
  protected partsWith(catalog: Catalog): ConstructorParameters<typeof KeysService> {
    return [{ ...this.#parts, catalog }, this.#shared];
  }

  /** The number of uses that are not written yet. */
  get unwrittenUses(): number {
    return this.#shared.activity.unwrittenUses;
  }

  /**
   * Writes the recorded uses and refusals that are still in memory, when the program ends.
   * @throws KeysError STORE_…
   */
  finishActivity(): Promise<void> {
    return this.#shared.activity.finish();
  }

  /** Ends the work of features over this store, before it is closed. */
  async endFeatures(): Promise<void> {
    for (const end of this.#shared.ends.splice(0)) await end();
  }
}
