import type { Log } from '../log.ts';
import { type AtPeriodEnd, atPeriodEnd } from './periods.ts';

/** How many kinds of failures are told apart in a period; the others are logged as `various`. */
const MAX_KINDS = 20;
const VARIOUS = 'various';

/**
 * Logs failures of the store, or of an upstream, in sums: each kind once in a period, at once and with its cause, and
 * its repetitions as one line with their `count` at the period's end. So an outage writes few lines, however many
 * requests it fails.
 */
export class FailureLog {
  readonly #log: Log;
  readonly #atPeriodEnd: AtPeriodEnd;
  readonly #message: string;
  /** How many failures of each kind were not logged yet. */
  #counts = new Map<string, number>();

  constructor(log: Log, schedule: AtPeriodEnd = atPeriodEnd, message = 'the store did not answer') {
    this.#log = log;
    this.#atPeriodEnd = schedule;
    this.#message = message;
  }

  /** A request has failed. @param requestId its id, for the line that says it at once */
  add(error: unknown, requestId?: string): void {
    if (this.#counts.size === 0) this.#atPeriodEnd(() => this.finish());
    const kind = this.#kindOf(error);
    const count = this.#counts.get(kind);
    this.#counts.set(kind, count === undefined ? 0 : count + 1);
    if (count === undefined)
      this.#log.error({ err: error, ...(requestId !== undefined && { requestId }) }, this.#message);
  }

  /** Ends the period: logs what was only counted. */
  finish(): void {
    const counts = this.#counts;
    this.#counts = new Map();
    for (const [code, count] of counts) if (count > 0) this.#log.error({ code, count }, this.#message);
  }

  #kindOf(error: unknown): string {
    const { code, name = 'unknown' } = error as { code?: unknown; name?: string };
    const kind = typeof code === 'string' ? code : name;
    return this.#counts.has(kind) || this.#counts.size < MAX_KINDS ? kind : VARIOUS;
  }
}
