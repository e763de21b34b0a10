import { inTurns } from '../../keys/turns.ts';

/** What is passed on and has not ended. */
export interface OpenExchange {
  /** Whether it may still go on. */
  isAllowed(): boolean | Promise<boolean>;
  end(): void;
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
      const allowed = isAllowed(exchange);
      if (allowed instanceof Promise) asked.push(allowed.then((is) => endUnless(is, exchange)));
      else endUnless(allowed, exchange);
    }
    await Promise.all(asked);
    if (this.#open.size > 0) this.#checkSoon();
    else this.#isChecking = false;
  }
}

/** Whether it may go on. Where that cannot be found out, it may not; others are looked at all the same. */
function isAllowed(exchange: OpenExchange): boolean | Promise<boolean> {
  try {
    const allowed = exchange.isAllowed();
    return allowed instanceof Promise ? allowed.catch(() => false) : allowed;
  } catch {
    return false;
  }
}

function endUnless(isAllowed: boolean, exchange: OpenExchange): void {
  if (!isAllowed) exchange.end();
}
