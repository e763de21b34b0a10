import { type AppliedKeys, applyDeclaration, revertApply, withoutDigestsIn } from './apply/apply.ts';
import type { DeclaredKey } from './apply/declaration.ts';
import { hasChanges } from './apply/plan.ts';
import { type PrunedEntries, pruneAuditLog } from './audit/prune.ts';
import { Activity, UsageRetention, writeActivity } from './authentication/activity.ts';
import { Authenticator, type CheckCounts, noChecks } from './authentication/authenticator.ts';
import type { Actor } from './authorization/principal.ts';
import { DELIVERY_OPTIONS, type SecretDelivery } from './changes/delivery.ts';
import { Transactions } from './changes/transactions.ts';
import { Consent } from './consent/consent.ts';
import { type CounterOf, Pace } from './consent/pace.ts';
import { type Health, type HealthOptions, lookAtHealth } from './health.ts';
import type { Catalog } from './permissions/catalog.ts';
import { KeyManagement, type ManagementOptions } from './management.ts';
import type { ProgressReport } from './progress.ts';
import { aFunction, checkOptions, options as optionsIn, orUndefined, yesOrNo } from './options.ts';
import { requirePastTime } from './time.ts';
import type { KeyCounts } from './repository.ts';
import { createSecret } from './secret/secret.ts';
import { Sessions } from './sessions.ts';
import { checkImport, type ImportReport } from './transfer/import.ts';
import { importKeys } from './transfer/import-keys.ts';
import { readImport } from './transfer/read-import.ts';
import { UnusedKeys } from './unused-keys.ts';

/** What the rules need from outside. */
export interface KeysOptions extends ManagementOptions, HealthOptions {
  /** See `AuthenticatorOptions`. */
  maxVerifiedKeys?: number | undefined;
  /** Makes a counter of what each source does, by a limit. */
  counterOf: CounterOf;
}

/** What services over the same store share in a process. */
interface Shared {
  activity: Activity;
  pace: Pace;
  counts: CheckCounts;
}

/** How keys are imported. */
export interface ImportKeysOptions {
  /** Only check whether they can be. */
  dryRun?: boolean;
  /** Is told how many keys are ready to be imported. */
  onProgress?: ProgressReport | undefined;
}

/** How declared keys are applied. */
export interface ApplyOptions {
  /** Delete keys that an earlier apply made and that are no longer declared. */
  prune?: boolean;
  /** Take over declared keys that another key created. Only the operator may. */
  adopt?: boolean;
  delivery?: SecretDelivery<AppliedKeys>;
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
  /** How applications get keys that people agree to. */
  readonly consent: Consent;
  /** The sessions of people who have signed in with keys. */
  readonly sessions: Sessions;
  /** The time by which it decides, in milliseconds since 1970. */
  readonly clock: () => number;
  readonly #options: KeysOptions;
  readonly #transactions: Transactions;
  readonly #shared: Shared;

  /** @param shared that of a service over the same store; see `withCatalog` */
  constructor(options: KeysOptions, shared?: Shared) {
    super(options);
    const { clock, schedule, counterOf } = options;
    const retention = new UsageRetention(options);
    this.#options = options;
    this.#transactions = new Transactions(options);
    this.#shared = shared ?? {
      activity: new Activity({
        clock,
        schedule,
        write: (batch) =>
          options.repository.write((writer) => writeActivity(writer, batch, { ...options, now: clock() })),
        afterUsage: () => retention.step(),
      }),
      pace: new Pace(counterOf),
      counts: noChecks(),
    };
    this.authenticator = new Authenticator({ ...options, ...this.#shared });
    this.consent = new Consent({ ...options, pace: this.#shared.pace });
    this.sessions = new Sessions(options);
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
   * Counts the keys by their status, for the operator. It reads through all of them, in slices.
   * @throws KeysError STORE_…
   */
  countKeys(): Promise<KeyCounts> {
    return this.#options.repository.count(this.#options.clock());
  }

  /**
   * Imports keys from JSON lines, for the operator: all of them, or none if one cannot be imported. With `dryRun` it
   * only checks whether they can be. The report has the outcome of each line.
   * @throws KeysError STORE_…; what reading the input throws
   */
  async importKeys(input: AsyncIterable<Uint8Array>, options: ImportKeysOptions = {}): Promise<ImportReport> {
    checkOptions<ImportKeysOptions>('keys.importKeys', options, {
      dryRun: yesOrNo,
      onProgress: orUndefined(aFunction()),
    });
    const { dryRun = false, onProgress } = options;
    const now = this.#options.clock();
    const lines = await readImport(input, { ...this.#options, now });
    if (dryRun) return checkImport(this.#options.repository, lines, { catalog: this.catalog, now });
    return importKeys(lines, { ...this.#options, transactions: this.#transactions, now, onProgress });
  }

  /**
   * Brings the keys to what is declared, in one transaction. Where nothing differs, nothing is written.
   * @throws DeclarationError; ValidationError; KeysError OPTION_INVALID, PRUNE_REFUSED; ForbiddenError; a STORE_ error;
   *   what `delivery` throws
   */
  async apply(declared: readonly DeclaredKey[], options: ApplyOptions, actor: Actor): Promise<AppliedKeys> {
    checkOptions<ApplyOptions>('keys.apply', options, {
      prune: yesOrNo,
      adopt: yesOrNo,
      delivery: optionsIn(DELIVERY_OPTIONS),
    });
    const { prune = false, adopt = false, delivery } = options;
    const { randomBytes, randomId } = this.#options;
    const checked = this.checkDeclared('keys.apply', declared);
    const plan = await this.planChecked(checked, { prune, adopt }, actor);
    if (!hasChanges(plan)) return { plan, created: [] };
    const newSecret = () => createSecret(randomBytes);
    return this.#transactions.runWithSecrets(
      actor,
      {
        run: (transaction) => applyDeclaration(transaction, checked, { prune, adopt, newSecret, newId: randomId }),
        present: withoutDigestsIn,
        revert: revertApply,
      },
      { delivery },
    );
  }

  /**
   * Disables the keys that were not used for as long as the policy says. It does so piece by piece, as it is asked for
   * the next one. Whoever enables one of them gives it as long again.
   * @returns how many keys of each piece were disabled
   * @throws KeysError STORE_…
   */
  disableUnused(): AsyncGenerator<number> {
    return new UnusedKeys(this.#options).disable();
  }

  /** Looks how the service and its store are. */
  health(): Promise<Health> {
    return lookAtHealth(this.#options);
  }

  /** Remembers the time, for the clocks of later programs: see `SteadyClock`. @throws KeysError STORE_… */
  async rememberTime(): Promise<void> {
    const { repository, clock } = this.#options;
    await repository.write((writer) => writer.rememberTime(clock()));
  }

  /**
   * Deletes the entries of the audit log that were written before a time, for the operator, and records that. The rest
   * can still be verified.
   * @param before as in `AuditRequest`
   * @returns what was deleted; undefined if there was nothing
   * @throws KeysError INPUT_INVALID, STORE_…
   */
  async pruneAuditLog(before: string): Promise<PrunedEntries | undefined> {
    const now = this.#options.clock();
    const time = requirePastTime(before, now);
    const { repository, operator } = this.#options;
    return repository.write((writer) => pruneAuditLog(writer, time, { now, operator }));
  }

  /**
   * Writes the recorded uses and refusals that are still in memory, at the end of the program.
   * @throws KeysError STORE_…
   */
  finishActivity(): Promise<void> {
    return this.#shared.activity.finish();
  }
}
