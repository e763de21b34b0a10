import type { RequestNotes } from './request-notes.ts';
import type { Log } from '../log.ts';

/** The period during which repetitions are only counted. */
const PERIOD_MS = 60_000;

/** Calls `work` at the end of the present period. It must not keep the process alive. */
type AtPeriodEnd = (work: () => void) => void;

/** Work waiting for the end of a period. */
const open = new Set<() => void>();

/** Calls `work` after a minute, or when the process ends before that without being killed by a signal. */
export const atPeriodEnd: AtPeriodEnd = (work) => {
  // One listener for all: a host can have many middlewares.
  if (open.size === 0) process.on('exit', endAll);
  const end = () => {
    clearTimeout(timer);
    open.delete(end);
    if (open.size === 0) process.off('exit', endAll);
    work();
  };
  const timer = setTimeout(end, PERIOD_MS).unref();
  open.add(end);
};

function endAll(): void {
  for (const end of open) end();
}

/** The log's fields about a refused request. */
export interface Refused {
  reason: string;
  /** Details, if there are few reasons. */
  detail?: string;
  /** The public id of the key, if it has one. */
  prefix?: string | undefined;
  /** The permissions that were missing. */
  missing?: readonly string[];
  /** The client's address, if it is known. */
  address?: string | undefined;
}

/** A kind of refusal, and how many are not logged yet. */
interface CountedRefusal {
  message: string;
  refused: Refused;
  count: number;
}

/** How many kinds of refusals, for one reason and address, are logged separately in a period. */
const MAX_KINDS_OF_SOURCE = 5;
/** The number of reasons and addresses with separate kinds. */
const MAX_SOURCES = 20;

/**
 * Logs refused requests: each kind once in a period, and its repetitions as one line with their `count` at its end. If
 * there are too many kinds, they are counted by reason and address, and then by reason, so that the number of lines is
 * bounded, whatever clients send.
 */
export class RefusalLog {
  readonly #log: Log;
  readonly #atPeriodEnd: AtPeriodEnd;
  #counted = new Map<string, CountedRefusal>();
  #kinds = new Map<string, number>();

  constructor(log: Log, schedule: AtPeriodEnd = atPeriodEnd) {
    this.#log = log;
    this.#atPeriodEnd = schedule;
  }

  /** @param notes those of the request, whose id appears in the line that is logged at once */
  add(message: string, refused: Refused, notes?: Pick<RequestNotes, 'id' | 'details'>): void {
    if (notes?.details) {
      notes.details.reason = { event: message, ...refused };
      notes.details.prefix ??= refused.prefix;
    }
    if (this.#counted.size === 0) this.#atPeriodEnd(() => this.finish());
    const counted = this.#counted.get(keyOf(message, refused));
    if (counted) return void (counted.count += 1);
    const { reason, address } = refused;
    const source = keyOf(message, { reason, address });
    const kinds = this.#kinds.get(source) ?? 0;
    if (kinds === 0 && this.#kinds.size >= MAX_SOURCES) return this.#count(message, { reason });
    if (kinds >= MAX_KINDS_OF_SOURCE) return this.#count(message, { reason, address });
    this.#kinds.set(source, kinds + 1);
    this.#counted.set(keyOf(message, refused), { message, refused, count: 0 });
    this.#log.info(notes === undefined ? refused : { ...refused, requestId: notes.id }, message);
  }

  /** Ends the period by logging counted repetitions. */
  finish(): void {
    const counted = this.#counted;
    [this.#counted, this.#kinds] = [new Map(), new Map()];
    for (const { message, refused, count } of counted.values())
      if (count > 0) this.#log.info({ ...refused, count }, message);
  }

  #count(message: string, refused: Refused): void {
    const key = keyOf(message, refused);
    const counted = this.#counted.get(key) ?? { message, refused, count: 0 };
    counted.count += 1;
    this.#counted.set(key, counted);
  }
}

function keyOf(message: string, refused: Refused): string {
  return JSON.stringify([message, refused]);
}

/** How many kinds of failures are logged separately in a period; the others are logged as `various`. */
const MAX_KINDS = 20;
const VARIOUS = 'various';

/**
 * Logs failures of the store or an upstream: each kind once in a period, at once and with its cause, and its
 * repetitions as one line with their `count` at the period's end. An outage writes few lines, however many requests it
 * fails.
 */
export class FailureLog {
  readonly #log: Log;
  readonly #atPeriodEnd: AtPeriodEnd;
  readonly #message: string;
  /** The number of unlogged failures of each kind. */
  #counts = new Map<string, number>();

  constructor(log: Log, schedule: AtPeriodEnd = atPeriodEnd, message = 'the store did not answer') {
    this.#log = log;
    this.#atPeriodEnd = schedule;
    this.#message = message;
  }

  /** Adds a failed request. @param requestId its id, for the line that is logged at once */
  add(error: unknown, requestId?: string): void {
    if (this.#counts.size === 0) this.#atPeriodEnd(() => this.finish());
    const kind = this.#kindOf(error);
    const count = this.#counts.get(kind);
    this.#counts.set(kind, count === undefined ? 0 : count + 1);
    if (count === undefined)
      this.#log.error({ err: error, ...(requestId !== undefined && { requestId }) }, this.#message);
  }

  /** Ends the period by logging counted repetitions. */
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
