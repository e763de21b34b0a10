import type { ServerResponse } from 'node:http';

/** After a turn with so few answers, each is sent at once: its reader works on it meanwhile. */
const FEW = 4;
/** How long an answer waits at most while others are made, in milliseconds. */
const MAX_WAIT_MS = 1;

/**
 * Sends the answers of a busy server at the end of the turn of the event loop in which they are made, together: the
 * system wakes their reader, often one proxy, once for all that are sent in a row. To wake it for each can take longer
 * than to make most answers.
 */
export class AnswersOfTurn {
  readonly #now: () => number;
  /** How many were made in this turn, and in the latest before it that had any. */
  #made = 0;
  #madeBefore = 0;
  #waiting: (() => void)[] = [];
  /** When the first of them was made. */
  #since = 0;

  /** @param now in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Sends an answer now or soon. Nothing is sent to a client that has gone by then. */
  add(outgoing: ServerResponse, send: () => void): void {
    const sendIfWanted = () => {
      try {
        if (!outgoing.destroyed) send();
      } catch {
        outgoing.destroy();
      }
    };
    if (this.#isBusy()) this.#wait(sendIfWanted);
    else sendIfWanted();
  }

  /** An answer that somebody else sends, when it is to be sent. */
  hold<Answer>(answer: Answer): Answer | Promise<Answer> {
    return this.#isBusy() ? new Promise((resolve) => this.#wait(() => resolve(answer))) : answer;
  }

  /** Counts an answer. Whether it waits. */
  #isBusy(): boolean {
    if (this.#made === 0) setImmediate(this.#endTurn);
    this.#made += 1;
    return this.#madeBefore > FEW;
  }

  #wait(send: () => void): void {
    const now = this.#now();
    if (this.#waiting.length === 0) this.#since = now;
    this.#waiting.push(send);
    if (now - this.#since >= MAX_WAIT_MS) this.#sendWaiting();
  }

  readonly #endTurn = (): void => {
    this.#madeBefore = this.#made;
    this.#made = 0;
    this.#sendWaiting();
  };

  #sendWaiting(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (const send of all) send();
  }
}

/** Those of this process. */
export const answersOfTurn = new AnswersOfTurn();
