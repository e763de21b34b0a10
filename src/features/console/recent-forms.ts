/** The answer to a form, in a shape that can be sent between processes. */
export interface FormAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** An answered form. */
export interface AnsweredForm {
  /** Undefined if its process has ended. */
  readonly answer: FormAnswer | undefined;
  /** The form has changed something; other answers are not kept. */
  readonly isDone: boolean;
}

/** Repeats the first answer for a form that is sent again. */
export interface SentForms {
  /**
   * Does the work of a form, unless it is in progress or was done within the last minute.
   * @param id unguessable id of the form and its session
   * @returns the answer to the first form with this id, if known
   */
  once(id: string, work: () => Promise<AnsweredForm>): Promise<FormAnswer | undefined>;
}

/** Time that an answer is kept, in milliseconds. */
const KEPT_MS = 60_000;
/** Maximum number of answers kept, and of their characters; the oldest are dropped. */
const MAX_KEPT = 500;
const MAX_LENGTH = 8_000_000;

/** Keeps answers in memory only, because some contain a secret. */
export class RecentForms implements SentForms {
  readonly #clock: () => number;
  readonly #running = new Map<string, Promise<FormAnswer | undefined>>();
  /** The oldest one first. */
  readonly #kept = new Map<string, { readonly answer: FormAnswer; readonly at: number }>();
  #length = 0;

  /** @param clock milliseconds since 1970 */
  constructor(clock: () => number = Date.now) {
    this.#clock = clock;
  }

  once(id: string, work: () => Promise<AnsweredForm>): Promise<FormAnswer | undefined> {
    this.#forgetOld();
    const kept = this.#kept.get(id);
    if (kept) return Promise.resolve(kept.answer);
    const known = this.#running.get(id);
    if (known) return known;
    const running = this.#run(id, work);
    this.#running.set(id, running);
    return running;
  }

  async #run(id: string, work: () => Promise<AnsweredForm>): Promise<FormAnswer | undefined> {
    try {
      const { answer, isDone } = await work();
      if (answer && isDone) this.#keep(id, answer);
      return answer;
    } finally {
      this.#running.delete(id);
    }
  }

  #keep(id: string, answer: FormAnswer): void {
    this.#kept.set(id, { answer, at: this.#clock() });
    this.#length += answer.text.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT && this.#length <= MAX_LENGTH) break;
      this.#forget(oldest);
    }
    // Runs even if no other form is sent.
    setTimeout(() => this.#forgetOld(), KEPT_MS).unref();
  }

  #forgetOld(): void {
    const now = this.#clock();
    for (const [id, { at }] of this.#kept) if (Math.abs(now - at) >= KEPT_MS) this.#forget(id);
  }

  #forget(id: string): void {
    this.#length -= this.#kept.get(id)?.answer.text.length ?? 0;
    this.#kept.delete(id);
  }
}
