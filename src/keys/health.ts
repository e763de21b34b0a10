import { isKeysError } from './errors.ts';
import type { KeyCounts, KeyRepository, StoreKind } from './repository.ts';

/** How the service and its store are. */
export interface Health {
  readonly store: StoreKind;
  /** In how many milliseconds the store has answered; undefined if it does not. */
  readonly answeredInMs: number | undefined;
  /** Whether this process is notified of the changes of other processes. If not, every request asks the store. */
  readonly hearsChanges: boolean;
  /** Whether searches of keys go by an index; undefined if the store does not tell. */
  readonly hasSearchIndex: boolean | undefined;
  /** By how many milliseconds the clock of the machine is behind the time that is used: see `SteadyClock`. */
  readonly clockBehindMs: number;
}

/** What a look at the health needs. */
export interface HealthOptions {
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
