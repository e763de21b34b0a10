import { UNIT_MS } from '../basics/index.ts';
import type { Parts } from '../changes/index.ts';
import { USE } from '../key/index.ts';
import type { KeyWriter } from '../repository/index.ts';
import { pauseAfter } from './pieces.ts';

/** Rows changed by one transaction. Between two, others can write to a file. */
const STEP_ROWS = { sqlite: 2000, postgres: 20_000 } as const;
/** How often the use of deleted keys is searched for, in milliseconds. */
const SWEEP_MS = UNIT_MS.d;

type UpkeepOptions = Pick<Parts, 'repository' | 'clock' | 'listeners'>;

/**
 * Limits how much is kept about the use of keys: old rows are summed up or removed, and so is the use of deleted keys. It
 * works in small steps after uses were written, and looks for work once an hour. Several servers can do so at the same
 * time.
 */
export class Upkeep {
  readonly #options: UpkeepOptions;
  /** In milliseconds since 1970. */
  #nextAt = 0;
  #nextSweepAt = 0;
  /** The position of a sweep. */
  #sweptTo: string | undefined;
  #isRunning = false;

  constructor(options: UpkeepOptions) {
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
    const { repository, clock, listeners } = this.#options;
    const now = clock();
    if (now < this.#nextAt) return true;
    this.#nextAt = now + UNIT_MS.h;
    const rows = STEP_ROWS[repository.kind];
    const condense = listeners.flatMap(({ condensing }) => condensing ?? []);
    const isCondensed =
      condense.length === 0 ||
      (await this.#write((writer) => areDone(condense, (condensing) => condensing(writer, now, rows))));
    const isDone = isCondensed && (now < this.#nextSweepAt || (await this.#sweep(rows)));
    if (!isDone) this.#nextAt = now;
    else if (now >= this.#nextSweepAt) this.#nextSweepAt = now + SWEEP_MS;
    return isDone;
  }

  /** Looks through the next keys. @returns true if there are no more */
  async #sweep(rows: number): Promise<boolean> {
    const { repository, listeners } = this.#options;
    const { ids, next } = await repository.port(USE).ofDeleted(this.#sweptTo);
    const forget = listeners.flatMap(({ forgetting }) => forgetting ?? []);
    if (ids.length > 0) {
      const isForgotten = await this.#write(async (writer) => {
        await writer.port(USE).lock(ids);
        const isLast = await areDone(forget, (forgetting) => forgetting(writer, ids, rows));
        // Last, as the deleted keys are found by it.
        if (isLast) await writer.port(USE).forget(ids);
        return isLast;
      });
      if (!isForgotten) return false;
    }
    this.#sweptTo = next;
    return next === undefined;
  }

  #write(work: (writer: KeyWriter) => Promise<boolean>): Promise<boolean> {
    return this.#options.repository.write(work, { counts: true });
  }
}

/** Does a step of each listener. @returns true if each was the last one */
async function areDone<Step>(steps: readonly Step[], run: (step: Step) => Promise<boolean>): Promise<boolean> {
  let done = true;
  for (const step of steps) done = (await run(step)) && done;
  return done;
}
