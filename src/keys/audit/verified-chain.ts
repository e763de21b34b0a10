import { setTimeout as delay } from 'node:timers/promises';
import type { AuditPosition } from './audit-entry.ts';
import type { AuditReader } from './audit-reader.ts';
import { CHAIN_START } from './chain.ts';
import { type Failure, isRecorded, notLast, verifyPage } from './verify.ts';

/** How far the log is verified. */
export interface ChainState {
  /** The last entry that is verified, and when it was written, in milliseconds since 1970; null before the first. */
  verified: (AuditPosition & { at: number }) | null;
  /** The number of the newest entry. */
  newest: number;
  /** The problem of the entry after it; null as long as there is none. */
  failure: Failure | null;
}

/** The pause between two pages, for other work, in milliseconds. */
const REST_MS = 40;

/**
 * The part of the log that this process has verified. It remembers its position: each call of `state` verifies a page,
 * and the rest follows page by page in the background. Passed entries are not read again, so that a later change of
 * them shows only in a full verification.
 */
export class VerifiedChain {
  readonly #log: AuditReader;
  #position: (AuditPosition & { at: number | null }) | undefined;
  #start = 0;
  #piece: Promise<ChainState> | undefined;
  #isRunning = false;

  constructor(log: AuditReader) {
    this.#log = log;
  }

  /** Verifies the next page and returns the progress. @throws KeysError STORE_… */
  async state(): Promise<ChainState> {
    const state = await this.#next();
    if (!this.#isDone(state)) void this.#run();
    return state;
  }

  /** Runs until nothing is left or the store stops answering; the next call of `state` starts it again. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      do await delay(REST_MS, undefined, { ref: false });
      while (!this.#isDone(await this.#next()));
    } catch {
      // The next call of `state` reports the error.
    } finally {
      this.#isRunning = false;
    }
  }

  /** Concurrent calls share a page. */
  #next(): Promise<ChainState> {
    return (this.#piece ??= this.#verify().finally(() => (this.#piece = undefined)));
  }

  async #verify(): Promise<ChainState> {
    for (;;) {
      const start = await this.#log.start();
      if (start && start.number !== this.#start && !(await isRecorded(start, this.#log)))
        return this.#stateAt(start.number, { broken: start.number, reason: 'was not deleted by svc-api' });
      this.#start = start?.number ?? 0;
      if (!this.#position || this.#position.number < this.#start)
        this.#position = { number: this.#start, hash: start?.hash ?? CHAIN_START, at: null };
      const state = await this.#verifyFrom(this.#position);
      // A failure after a pruning may only be an entry that was pruned during the check.
      if (!state.failure || (await this.#log.start())?.number === start?.number) return state;
    }
  }

  async #verifyFrom(position: AuditPosition & { at: number | null }): Promise<ChainState> {
    const head = (await this.#log.head()) ?? position;
    if (head.number < position.number)
      return this.#stateAt(head.number, { broken: position.number, reason: 'is missing: the log ends before it' });
    if (position.number < head.number) {
      const page = await verifyPage(position, head, this.#log);
      if (!('hash' in page)) return this.#stateAt(head.number, page);
      this.#position = { number: page.number, hash: page.hash, at: page.entries.at(-1)!.at };
    }
    const { number, hash } = this.#position!;
    return this.#stateAt(head.number, number === head.number && hash !== head.hash ? notLast(number) : null);
  }

  #isDone({ newest, failure }: ChainState): boolean {
    return failure !== null || (this.#position?.number ?? 0) >= newest;
  }

  #stateAt(newest: number, failure: Failure | null): ChainState {
    const { at = null, ...position } = this.#position ?? { number: 0, hash: CHAIN_START };
    return { verified: at === null ? null : { ...position, at }, newest, failure };
  }
}
