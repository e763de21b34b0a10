import { Declarations } from '../apply/index.ts';
import {
  Activity,
  Authenticator,
  type CheckCounts,
  noChecks,
  Sessions,
  UsageRetention,
  writeActivity,
} from '../authentication/index.ts';
import { AuditAccess } from '../authorization/index.ts';
import { isKeysError, methodsOf } from '../basics/index.ts';
import { Containments, Foresight, Leaks, Transactions, UnusedKeys } from '../changes/index.ts';
import { Consent, type ConsentOptions } from '../consent/index.ts';
import { Usage } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type { KeyCounts, KeyRepository, StoreKind } from '../repository/index.ts';
import { Transfer } from '../transfer/index.ts';
import { KeyManagement } from './management.ts';

/** What the rules need from outside. */
export interface KeysOptions extends Omit<FeatureParts, 'transactions'> {
  /** See `AuthenticatorOptions`. */
  maxVerifiedKeys?: number | undefined;
}

/** What services over the same store share in a process. */
interface Shared {
  activity: Activity;
  counts: CheckCounts;
}

/** With all features, which the constructor adds. */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- the constructor assigns them
export interface KeysService extends Features {}

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
  readonly #options: KeysOptions;
  readonly #shared: Shared;

  /** @param shared that of a service over the same store; see `withCatalog` */
  constructor(options: KeysOptions, shared?: Shared) {
    const parts = { ...options, transactions: new Transactions(options) };
    super(parts);
    Object.assign(this, featuresOf(parts));
    const { clock, schedule } = options;
    const retention = new UsageRetention(options);
    this.#options = options;
    this.#shared = shared ?? {
      activity: new Activity({
        clock,
        schedule,
        write: (batch) =>
          options.repository.write((writer) => writeActivity(writer, batch, { ...options, now: clock() })),
        afterUsage: () => retention.step(),
      }),
      counts: noChecks(),
    };
    this.authenticator = new Authenticator({ ...options, ...this.#shared });
    this.clock = clock;
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
    return [{ ...this.#options, catalog }, this.#shared];
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

/** How the service and its store are. */
export interface Health {
  readonly store: StoreKind;
  /** In how many milliseconds the store has answered; undefined if it does not. */
  readonly answeredInMs: number | undefined;
  /** Whether changes of other processes are heard. If not, every request asks the store. */
  readonly hearsChanges: boolean;
  /** Whether searches of keys go by an index; undefined if the store does not tell. */
  readonly hasSearchIndex: boolean | undefined;
  /** By how many milliseconds the clock of the machine is behind the time that is used: see `SteadyClock`. */
  readonly clockBehindMs: number;
}

/** What a look at the health needs. */
interface HealthOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
  /** See `SteadyClock.behind`. Default: the clock is right. */
  clockBehindMs?: (() => number) | undefined;
}

/** A store that takes longer to answer does not, in milliseconds. */
const MAX_WAIT_MS = 2000;

/** How the service and its store are. */
export class StoreHealth {
  readonly #options: HealthOptions;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Looks how the service and its store are. A store that does not answer is a result, not an error. */
  async health(): Promise<Health> {
    const { repository, schedule, clockBehindMs } = this.#options;
    const seen: { answeredInMs?: number; hasSearchIndex?: boolean } = {};
    const began = performance.now();
    const look = async () => {
      await repository.check();
      seen.answeredInMs = performance.now() - began;
      seen.hasSearchIndex = await repository.hasSearchIndex();
    };
    const looked = look().catch((error: unknown) => {
      if (!isKeysError(error)) throw error;
    });
    await Promise.race([looked, new Promise<void>((resolve) => schedule(resolve, MAX_WAIT_MS))]);
    return {
      store: repository.kind,
      answeredInMs: seen.answeredInMs,
      hearsChanges: repository.revision() !== undefined,
      hasSearchIndex: seen.hasSearchIndex,
      clockBehindMs: Math.max(0, clockBehindMs?.() ?? 0),
    };
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  checkStore(): Promise<void> {
    return this.#options.repository.check();
  }

  /**
   * Counts the keys by their status, for the operator. It reads through all of them, in slices.
   * @throws KeysError STORE_…
   */
  countKeys(): Promise<KeyCounts> {
    return this.#options.repository.count(this.#options.clock());
  }

  /** Remembers the time, for the clocks of later programs: see `SteadyClock`. @throws KeysError STORE_… */
  async rememberTime(): Promise<void> {
    const { repository, clock } = this.#options;
    await repository.write((writer) => writer.rememberTime(clock()));
  }
}

/** What features are built from. */
type FeatureParts = ConsentOptions & HealthOptions;

/** What can be done beside reading and changing keys one by one. */
export interface Features
  extends AuditAccess, Containments, Declarations, Foresight, Leaks, StoreHealth, Transfer, UnusedKeys, Usage {
  /** How applications get keys that people agree to. */
  readonly consent: Consent;
  /** The sessions of people who have signed in with keys. */
  readonly sessions: Sessions;
}

/** Builds all features: this is the one place that knows them. */
function featuresOf(parts: FeatureParts): Features {
  return Object.assign(
    { consent: new Consent(parts), sessions: new Sessions(parts) },
    methodsOf(
      new AuditAccess(parts),
      new Containments(parts),
      new Declarations(parts),
      new Foresight(parts),
      new Leaks(parts),
      new StoreHealth(parts),
      new Transfer(parts),
      new UnusedKeys(parts),
      new Usage(parts),
    ),
  );
}
