import { isKeysError } from './errors.ts';
import type { KeyRepository, StoreKind } from './repository.ts';

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
export interface HealthOptions {
  repository: KeyRepository;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
  /** See `SteadyClock.behind`. Default: the clock is right. */
  clockBehindMs?: (() => number) | undefined;
}

/** A store that takes longer to answer does not, in milliseconds. */
const MAX_WAIT_MS = 2000;

/** Looks how the service and its store are. A store that does not answer is a result, not an error. */
export async function lookAtHealth({ repository, schedule, clockBehindMs }: HealthOptions): Promise<Health> {
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
