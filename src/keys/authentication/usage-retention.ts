import { UNIT_MS } from '../basics/index.ts';
import type { Parts } from '../changes/index.ts';
import { firstKept, USAGE } from '../key/index.ts';
import type { KeyWriter } from '../repository/index.ts';
import { pauseAfter } from './pieces.ts';

/** Rows changed by one transaction. Between two, others can write to a file. */
const STEP_ROWS = { sqlite: 2000, postgres: 20_000 } as const;
/** How often the usage of deleted keys is searched for, in milliseconds. */
const SWEEP_MS = UNIT_MS.d;

/**
 * Limits how much usage is kept: hours become days, old days are removed, and so is the usage of deleted keys. It works
 * in small steps after usage was written, and looks for work once an hour. Several servers can do so at the same time.
 */
export class UsageRetention {
  readonly #options: Pick<Parts, 'repository' | 'clock'>;
  /** In milliseconds since 1970. */
  #nextAt = 0;
  #nextSweepAt = 0;
  /** The position of a sweep. */
  #sweptTo: string | undefined;
  #isRunning = false;

  constructor(options: Pick<Parts, 'repository' | 'clock'>) {
    this.#options = options;
  }

  /** Does all due work, step by step. @throws KeysError STORE_… */
  async run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      for (let isDone = false; !isDone;) {
        const began = performance.now();
        isDone = await this.step();
        if (!isDone) await pauseAfter(began);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /** Does the next step, if there is one. @returns true if it was the last one for now @throws KeysError STORE_… */
  async step(): Promise<boolean> {
    const { repository, clock } = this.#options;
    const now = clock();
    if (now < this.#nextAt) return true;
    this.#nextAt = now + UNIT_MS.h;
    const rows = STEP_ROWS[repository.kind];
    const bounds = { hoursFrom: firstKept('HOUR', now), daysFrom: firstKept('DAY', now), rows };
    const write = (work: (writer: KeyWriter) => Promise<boolean>) => repository.write(work, { counts: true });
    const isCondensed = await write((writer) => writer.port(USAGE).condense(bounds));
    const isDone = isCondensed && (now < this.#nextSweepAt || (await this.#sweep(rows, write)));
    if (!isDone) this.#nextAt = now;
    else if (now >= this.#nextSweepAt) this.#nextSweepAt = now + SWEEP_MS;
    return isDone;
  }

  /** Looks through the next keys. @returns true if there are no more */
  async #sweep(
    rows: number,
    write: (work: (writer: KeyWriter) => Promise<boolean>) => Promise<boolean>,
  ): Promise<boolean> {
    const { ids, next } = await this.#options.repository.port(USAGE).ofDeleted(this.#sweptTo);
    if (ids.length > 0 && !(await write((writer) => writer.port(USAGE).forget(ids, rows)))) return false;
    this.#sweptTo = next;
    return next === undefined;
  }
}
