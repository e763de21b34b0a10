import { VerifiedChain } from '../audit/index.ts';
import {
  Activity,
  type ActivityWriters,
  Authenticator,
  type CheckCounts,
  noChecks,
  UsageRetention,
  writeEvents,
} from '../authentication/index.ts';
import { AuditAccess } from '../authorization/index.ts';
import { type Limit, UNIT_MS } from '../basics/index.ts';
import { type Parts, PermittedChanges, Transactions, UnusedKeys } from '../changes/index.ts';
import { type EdgeReport, EdgeReports, Edges } from '../feed/index.ts';
import { type ApiKey, appliedLimits, USAGE, Usage } from '../key/index.ts';
import { KeyLists } from '../lists/index.ts';
import type { Catalog } from '../permissions/index.ts';
import { type KeyWriter, USED_TOKENS } from '../repository/index.ts';
import { KeyManagement } from './management.ts';
import { type HealthOptions, StoreHealth } from './store-health.ts';

/** What the rules need from outside. */
export interface KeysOptions extends Omit<Parts & HealthOptions, 'transactions'> {
  /** Milliseconds since any moment, which nobody can set. Default: `performance.now`. */
  elapsed?: (() => number) | undefined;
  /** See `AuthenticatorOptions`. */
  maxVerifiedKeys?: number | undefined;
  /** Where activity is written, and kept within bounds. Default: the repository, and here. */
  activityWriters?: ActivityWriters | undefined;
}

/** For how long it is remembered that something was written once. */
const REPORTED_MS = UNIT_MS.h;

/** Writes activity to the repository. */
function activityIn(options: KeysOptions): ActivityWriters & { afterUsage: () => Promise<void> } {
  const { repository, clock } = options;
  const retention = new UsageRetention(options);
  const once =
    (name: string | undefined, now: number, work: (writer: KeyWriter) => Promise<void>) =>
    async (writer: KeyWriter): Promise<boolean> => {
      const isNew = name === undefined || (await writer.port(USED_TOKENS).use(name, now + REPORTED_MS, now));
      if (isNew) await work(writer);
      return isNew;
    };
  return {
    writeUsage: (usage, name) => {
      const now = clock();
      return repository.write(
        once(name, now, (writer) => writer.port(USAGE).add(usage)),
        { counts: true },
      );
    },
    writeEvents: (events, name) => {
      const now = clock();
      return repository.write(once(name, now, (writer) => writeEvents(writer, events, { ...options, now })));
    },
    afterUsage: () => retention.run(),
  };
}

/** The parts that the rules of features are made of. */
export type FeatureParts = KeysOptions &
  Shared & {
    transactions: Transactions;
    /** A part of a feature that services over the same store share, by its class. */
    shared: <Part>(part: new (options: KeysOptions) => Part) => Part;
  };

/** What services over the same store share in a process. */
interface Shared {
  activity: Activity;
  counts: CheckCounts;
  chain: VerifiedChain;
  edges: Edges;
  reports: EdgeReports;
  /** The parts of features, by their classes. */
  made: Map<unknown, unknown>;
}

/**
 * Where the functions of the library find the service behind an open key store, also one that another copy of the
 * package has opened.
 */
export const SERVICE: unique symbol = Symbol.for('svc-api.service');

/**
 * The rules for reading, creating, changing and deleting keys. The command line and GraphQL both go through it, so that
 * neither can differ.
 */
export class KeysService extends KeyManagement {
  /**
   * Tells whose secrets they are, without a promise where a key was verified before. By itself it enforces no network,
   * no limit and no permission, and counts no use: `bearerAuth` and `OpenKeys.check` do.
   */
  readonly authenticator: Authenticator;
  /** The time by which it decides, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly #parts: FeatureParts;
  readonly #features = new Map<unknown, unknown>();
  readonly #shared: Shared;

  /** @param shared that of a service over the same store; see `withCatalog` */
  constructor(options: KeysOptions, shared?: Shared) {
    const transactions = new Transactions(options);
    super({ ...options, transactions });
    const { clock, schedule } = options;
    const writers = options.activityWriters ?? activityIn(options);
    const activity = shared?.activity ?? new Activity({ clock, schedule, ...writers });
    const refused = (...refusal: Parameters<Activity['refused']>) => activity.refused(...refusal);
    this.#shared = shared ?? {
      activity,
      edges: new Edges({ repository: options.repository, clock }),
      reports: new EdgeReports({ clock, refused, ...writers }),
      counts: noChecks(),
      chain: new VerifiedChain(options.repository.auditLog),
      made: new Map(),
    };
    const { made } = this.#shared;
    this.#parts = { ...options, ...this.#shared, transactions, shared: (part) => madeOnce(made, part, options) };
    this.authenticator = new Authenticator({ ...options, ...this.#shared });
    this.clock = clock;
  }

  /** The audit log, as far as each may read it. */
  get audit(): AuditAccess {
    return this.feature(AuditAccess);
  }

  /** The servers that answer without a store, as this process tells them of changes. */
  get edges(): Edges {
    return this.#shared.edges;
  }

  /** Writes what the edge of a key reports, as far as it can be true: see `EdgeReports`. @throws KeysError STORE_… */
  takeReport(report: EdgeReport, edge: Pick<ApiKey, 'id' | 'name'>): Promise<void> {
    return this.#shared.reports.take(report, edge, this.#parts.catalog);
  }

  /** The limits of those of some keys that are there, by their ids. @throws KeysError STORE_… */
  async ownLimitsOf(ids: readonly string[]): Promise<Map<string, readonly Limit[]>> {
    const { repository, catalog } = this.#parts;
    const found = await repository.findBy('id', ids);
    return new Map(found.map(({ id, limits }) => [id, appliedLimits(limits, catalog.defaultLimits)]));
  }

  /** What would be refused, told beforehand. */
  get permittedChanges(): PermittedChanges {
    return this.feature(PermittedChanges);
  }

  /** Keys as people look through them. */
  get lists(): KeyLists {
    return this.feature(KeyLists);
  }

  /** How the store answers. */
  get store(): StoreHealth {
    return this.feature(StoreHealth);
  }

  /** The keys that the policy disables, as they were not used. */
  get unusedKeys(): UnusedKeys {
    return this.feature(UnusedKeys);
  }

  /** How often keys were used, and for what. */
  get usage(): Usage {
    return this.feature(Usage);
  }

  /** The rules of a feature over this store, by their class. They are made when they are first needed. */
  feature<Rules>(rules: new (parts: FeatureParts) => Rules): Rules {
    return madeOnce(this.#features, rules, this.#parts);
  }

  /** A service stands for itself. */
  get [SERVICE](): this {
    return this;
  }

  /**
   * A service over the same store with another catalog. What this one has in hand is finished by its own catalog; keys
   * that it has verified are looked up again by the other one, since what they may do may have changed.
   */
  withCatalog(catalog: Catalog): KeysService {
    return new KeysService(...this.partsWith(catalog));
  }

  /** What a service over the same store with another catalog is made of. */
  protected partsWith(catalog: Catalog): ConstructorParameters<typeof KeysService> {
    return [{ ...this.#parts, catalog }, this.#shared];
  }

  /** How many uses of keys are not written yet. */
  get unwrittenUses(): number {
    return this.#shared.activity.unwrittenUses;
  }

  /**
   * Writes the recorded uses and refusals that are still in memory, at the end of the program.
   * @throws KeysError STORE_…
   */
  finishActivity(): Promise<void> {
    return this.#shared.activity.finish();
  }
}

/** The one of a class, which is made when it is first needed. */
function madeOnce<Made, From>(all: Map<unknown, unknown>, of: new (from: From) => Made, from: From): Made {
  let made = all.get(of) as Made | undefined;
  if (made === undefined) all.set(of, (made = new of(from)));
  return made;
}
