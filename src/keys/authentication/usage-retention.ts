import { USAGE } from '../key/usage.ts';
import type { KeyRepository } from '../repository.ts';
import { UNIT_MS } from '../time.ts';
import { firstKept } from '../usage/periods.ts';

/** What keeping use within bounds needs from outside. */
export interface UsageRetentionOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** How much one transaction does, in rows: others write in between. */
const PASS_ROWS = 2000;

/**
 * Bounds what is kept of the use of keys: hours become days, and days are removed. It does so in small steps, each when
 * use was written, and looks once an hour whether there is something to do. Several servers may do so at once.
 */
export class UsageRetention {
  readonly #options: UsageRetentionOptions;
  /** In milliseconds since 1970. */
  #nextAt = 0;

  constructor(options: UsageRetentionOptions) {
    this.#options = options;
  }

  /** Does the next step, if there is one. @throws KeysError STORE_… */
  async step(): Promise<void> {
    const { repository, clock } = this.#options;
    const now = clock();
    if (now < this.#nextAt) return;
    this.#nextAt = now + UNIT_MS.h;
    const bounds = { hoursFrom: firstKept('HOUR', now), daysFrom: firstKept('DAY', now), rows: PASS_ROWS };
    const isDone = await repository.write((writer) => writer.port(USAGE).condense(bounds));
    if (!isDone) this.#nextAt = now;
  }
}
