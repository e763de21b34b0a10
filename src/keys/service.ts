import { Activity, UsageRetention, writeActivity } from './authentication/activity.ts';
import { Authenticator, type CheckCounts, noChecks } from './authentication/authenticator.ts';
import { Transactions } from './changes/transactions.ts';
import { Declarations } from './apply/declarations.ts';
import { AuditAccess } from './authorization/audit-access.ts';
import { Containments } from './changes/contain.ts';
import { Foresight } from './changes/foresight.ts';
import { Leaks } from './changes/note-leak.ts';
import { Consent, type ConsentOptions } from './consent/consent.ts';
import { type HealthOptions, StoreHealth } from './health.ts';
import { Usage } from './key/usage.ts';
import { KeyManagement } from './management.ts';
import type { Catalog } from './permissions/catalog.ts';
import { Sessions } from './sessions.ts';
import { Transfer } from './transfer/transfer.ts';
import { UnusedKeys } from './unused-keys.ts';

/** What the rules need from outside. */
export interface KeysOptions extends Omit<ConsentOptions & HealthOptions, 'transactions'> {
  /** See `AuthenticatorOptions`. */
  maxVerifiedKeys?: number | undefined;
}

/** What services over the same store share in a process. */
interface Shared {
  activity: Activity;
  counts: CheckCounts;
}

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
  /** The audit log, as far as each may read it. */
  readonly audit: AuditAccess;
  /** How applications get keys that people agree to. */
  readonly consent: Consent;
  /** What keys did to others, and how that is undone. */
  readonly containments: Containments;
  /** Brings keys to what is declared. */
  readonly declarations: Declarations;
  /** What would be refused, told beforehand. */
  readonly foresight: Foresight;
  /** What scanners have found. */
  readonly leaks: Leaks;
  /** The sessions of people who have signed in with keys. */
  readonly sessions: Sessions;
  /** How the store answers. */
  readonly store: StoreHealth;
  /** Exports and imports keys. */
  readonly transfer: Transfer;
  /** The keys that the policy disables, as they were not used. */
  readonly unusedKeys: UnusedKeys;
  /** How often keys were used, and for what. */
  readonly usage: Usage;
  /** The time by which it decides, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly #options: KeysOptions;
  readonly #shared: Shared;

  /** @param shared that of a service over the same store; see `withCatalog` */
  constructor(options: KeysOptions, shared?: Shared) {
    const parts = { ...options, transactions: new Transactions(options) };
    super(parts);
    this.audit = new AuditAccess(parts);
    this.consent = new Consent(parts);
    this.containments = new Containments(parts);
    this.declarations = new Declarations(parts);
    this.foresight = new Foresight(parts);
    this.leaks = new Leaks(parts);
    this.sessions = new Sessions(parts);
    this.store = new StoreHealth(parts);
    this.transfer = new Transfer(parts);
    this.unusedKeys = new UnusedKeys(parts);
    this.usage = new Usage(parts);
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
