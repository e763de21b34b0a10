import { isKeysError, MAX_SKEW_MS } from '../basics/index.ts';
import type { KeyCounts, KeyRepository, StoreKind } from '../repository/index.ts';

/** The state of the service and its store. */
export interface Health {
  readonly store: StoreKind;
  /** The store's response time in milliseconds; undefined if it does not answer. */
  readonly answeredInMs: number | undefined;
  /** True if other processes notify this one of changes. If not, every request asks the store. */
  readonly hearsChanges: boolean;
  /** See `StoreHealth.clockBehindMs`; 0 if the store does not answer. */
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

/** The time after which a store counts as not answering, in milliseconds. */
const MAX_WAIT_MS = 2000;

/** Checks the health of the service and its store. */
export class StoreHealth {
  readonly #options: HealthOptions;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Checks the service and its store. A store that does not answer is a result, not an error. */
  async health(): Promise<Health> {
    const { repository, schedule } = this.#options;
    const seen: { answeredInMs?: number; clockBehindMs?: number } = {};
    const began = performance.now();
    const look = async () => {
      await repository.check();
      seen.answeredInMs = performance.now() - began;
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
      clockBehindMs: seen.clockBehindMs ?? 0,
    };
  }

  /** Resolves when the store answers. @throws KeysError with a STORE_ code */
  check(): Promise<void> {
    return this.#options.repository.check();
  }

  /**
   * Counts the keys by status, for the operator, in slices, since it reads all of them.
   * @throws KeysError STORE_…
   */
  countKeys(): Promise<KeyCounts> {
    return this.#options.repository.count(this.#options.clock());
  }

  /**
   * How many milliseconds the clock is behind the newest entry of the audit log, if more than a minute; otherwise 0. A
   * clock that is behind would accept expired keys again.
   * @throws KeysError STORE_…
   */
  async clockBehindMs(): Promise<number> {
    const { repository, clock } = this.#options;
    const [newest] = await repository.auditLog.find({ order: 'newest', limit: 1 });
    const behindMs = (newest?.at ?? 0) - clock();
    return behindMs > MAX_SKEW_MS ? behindMs : 0;
  }
}
