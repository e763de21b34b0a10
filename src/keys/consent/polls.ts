/** How long an application waits from one question for its key to the next, in seconds (RFC 8628, section 3.2). */
export const POLL_SECONDS = 5;
const STEP_MS = POLL_SECONDS * 1000;
/** Others answer a little later than they were asked. */
const TOLERANCE_MS = 500;
const MAX_POLLS = 10_000;

/** When applications asked last, by the digests of their codes, in the memory of this process. */
export class Polls {
  readonly #polls = new Map<string, { at: number; intervalMs: number }>();

  /** Counts a question. @returns whether it came too early: from then on the application waits longer */
  isTooEarly(digest: string, now: number): boolean {
    const last = this.#polls.get(digest);
    const isEarly = last !== undefined && now - last.at < last.intervalMs - TOLERANCE_MS;
    const intervalMs = (last?.intervalMs ?? STEP_MS) + (isEarly ? STEP_MS : 0);
    // The oldest goes first.
    this.#polls.delete(digest);
    this.#polls.set(digest, { at: now, intervalMs });
    if (this.#polls.size > MAX_POLLS) this.#polls.delete(this.#polls.keys().next().value!);
    return isEarly;
  }

  forget(digest: string): void {
    this.#polls.delete(digest);
  }
}
