import type { Reply } from '../../http/replies.ts';
import { inTurns } from '../../keys/turns.ts';

/** What is passed on and has not ended. */
export interface OpenExchange {
  /** The reply to it if it may not go on, as things are now. */
  readonly refusedNow: () => Reply | undefined | Promise<Reply | undefined>;
  /** @param refusal undefined where it could not be found out whether it may go on */
  end(refusal: Reply | undefined): void;
}

/** How often is looked whether what is open may go on: so a key ends what it has begun within a second. */
const CHECK_MS = 500;

/** Ends what is open once its key does: when that is deleted, disabled, narrowed or expires, or routes change. */
export class OpenExchanges {
  readonly #open = new Set<OpenExchange>();
  #isChecking = false;

  /** @returns a function that forgets it, once it has ended */
  add(exchange: OpenExchange): () => void {
    this.#open.add(exchange);
    if (!this.#isChecking) this.#checkSoon();
    return () => void this.#open.delete(exchange);
  }

  #checkSoon(): void {
    this.#isChecking = true;
    setTimeout(() => void this.#check(), CHECK_MS).unref();
  }

  async #check(): Promise<void> {
    const asked: Promise<void>[] = [];
    for await (const exchange of inTurns([...this.#open])) {
      if (!this.#open.has(exchange)) continue;
      // Mostly it is known at once. Where the store must be asked, it is asked about all of them together.
      const settle = (refusal: Reply | undefined) => {
        // It may take a while until its connection has closed.
        if (refusal && this.#open.delete(exchange)) exchange.end(refusal);
      };
      try {
        const refusal = exchange.refusedNow();
        if (refusal instanceof Promise) asked.push(refusal.then(settle).catch(() => this.#endUnknown(exchange)));
        else settle(refusal);
      } catch {
        this.#endUnknown(exchange);
      }
    }
    await Promise.all(asked);
    if (this.#open.size > 0) this.#checkSoon();
    else this.#isChecking = false;
  }

  /** Where nobody can say whether it may go on, it may not; others are looked at all the same. */
  #endUnknown(exchange: OpenExchange): void {
    this.#open.delete(exchange);
    exchange.end(undefined);
  }
}
