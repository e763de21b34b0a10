import { Activity, UsageRetention, writeActivity } from './authentication/activity.ts';
import { Authenticator, type CheckCounts, noChecks } from './authentication/authenticator.ts';
import { Transactions } from './changes/transactions.ts';
import { type FeatureParts, type Features, featuresOf } from './features.ts';
import { KeyManagement } from './management.ts';
import type { Catalog } from './permissions/catalog.ts';

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
