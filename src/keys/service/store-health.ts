import { isKeysError, MAX_SKEW_MS } from '../basics/index.ts';
import type { KeyCounts, KeyRepository, StoreKind } from '../repository/index.ts';

/** How the service and its store are. */
export interface Health {
  readonly store: StoreKind;
  /** In how many milliseconds the store has answered; undefined if it does not. */
  readonly answeredInMs: number | undefined;
  /** Tells whether other processes notify this one of changes. If not, every request asks the store. */
  readonly hearsChanges: boolean;
  /** Whether searches of keys go by an index; undefined if the store does not tell. */
  readonly hasSearchIndex: boolean | undefined;
  /** See `StoreHealth.clockBehindMs`; 0 if the store does not tell. */
  readonly clockBehindMs: number;
}

/** Options of `StoreHealth`. */
export interface HealthOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
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
    const { repository, schedule } = this.#options;
    const seen: { answeredInMs?: number; hasSearchIndex?: boolean; clockBehindMs?: number } = {};
    const began = performance.now();
    const look = async () => {
      await repository.check();
      seen.answeredInMs = performance.now() - began;
      seen.hasSearchIndex = await repository.hasSearchIndex();
      seen.clockBehindMs = await this.clockBehindMs();
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
      clockBehindMs: seen.clockBehindMs ?? 0,
    };
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  check(): Promise<void> {
    return this.#options.repository.check();
  }

  /**
   * Counts the keys by their status, for the operator. It reads through all of them, in slices.
   * @throws KeysError STORE_…
   */
  countKeys(): Promise<KeyCounts> {
    return this.#options.repository.count(this.#options.clock());
  }

  /**
   * By how many milliseconds the clock is behind the newest entry of the audit log, if that is more than a minute;
   * otherwise 0. Then keys that have expired would be accepted again.
   * @throws KeysError STORE_…
   */
  async clockBehindMs(): Promise<number> {
    const { repository, clock } = this.#options;
    const [newest] = await repository.auditLog.find({ order: 'newest', limit: 1 });
    const behindMs = (newest?.at ?? 0) - clock();
    return behindMs > MAX_SKEW_MS ? behindMs : 0;
  }
}
