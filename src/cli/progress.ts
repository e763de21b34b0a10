import type { ProgressReport } from '../keys/basics/index.ts';
import { TERMINATING_SIGNALS } from './signals.ts';
import { DEFAULT_COLUMNS, type Terminal } from './terminal.ts';

/** The duration below which work shows no progress, in milliseconds. */
const QUIET_MS = 500;
/** How often a line on a terminal is redrawn, and how often a line is printed elsewhere, in milliseconds. */
const REDRAW_MS = 100;
const LINE_MS = 5000;

const [MIN_BAR, MAX_BAR] = [10, 30];

/** The units of progress. */
export type Unit = 'keys' | 'entries' | 'rows' | 'bytes';

type ProgressTerminal = Pick<Terminal, 'canRedraw' | 'errorColumns' | 'status'>;

/**
 * Shows the progress of a long command on stderr: as a bar on a terminal, elsewhere as a line every five seconds. The
 * work never waits for it: output that a stopped terminal does not accept is dropped.
 */
export class Progress {
  readonly #terminal: ProgressTerminal;
  readonly #now: () => number;
  #shownAt: number;
  readonly #quietUntil: number;
  #isDrawn = false;
  readonly #interrupted = (signal: NodeJS.Signals) => {
    this.end();
    // Without other listeners, the signal ends the process as usual. Listeners that only exist because of this one,
    // such as waits for a reader, have been removed by then.
    queueMicrotask(() => {
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  };

  /** @param now the time in milliseconds of any clock */
  constructor(terminal: ProgressTerminal, now: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#now = now;
    this.#shownAt = now();
    this.#quietUntil = this.#shownAt + QUIET_MS;
  }

  /** A part of the work, such as "Copying" rows. */
  of(verb: string, unit: Unit): ProgressReport {
    return async (done, total) => {
      const now = this.#now();
      const { canRedraw, errorColumns = DEFAULT_COLUMNS } = this.#terminal;
      if (now < this.#quietUntil || now - this.#shownAt < (canRedraw ? REDRAW_MS : LINE_MS)) return;
      this.#shownAt = now;
      const text = `${verb} ${formatAmount(done, total, unit)}`;
      const percent = total === undefined ? undefined : computePercent(done, total);
      if (!canRedraw) return this.#terminal.status(`${text}${percent === undefined ? '' : ` (${percent}%)`}.`);
      if (!this.#isDrawn) for (const signal of TERMINATING_SIGNALS) process.on(signal, this.#interrupted);
      this.#isDrawn = true;
      this.#terminal.status(lineOf(text, percent, errorColumns));
    };
  }

  /** Clears the line. */
  end(): void {
    for (const signal of TERMINATING_SIGNALS) process.off(signal, this.#interrupted);
    if (this.#isDrawn) this.#terminal.status('');
    this.#isDrawn = false;
  }
}

/** Shows progress while `work` runs, and clears it afterwards in any case. */
export async function withProgress<Result>(
  terminal: ProgressTerminal,
  work: (progress: Progress) => Promise<Result>,
): Promise<Result> {
  const progress = new Progress(terminal);
  try {
    return await work(progress);
  } finally {
    progress.end();
  }
}

/** A line that is narrower than the terminal, so that it never wraps. */
function lineOf(text: string, percent: number | undefined, columns: number): string {
  if (percent === undefined) return text.slice(0, columns - 1);
  const shown = `${String(percent).padStart(3)}%  ${text}`;
  const width = Math.min(MAX_BAR, columns - 1 - shown.length - '[] '.length);
  if (width < MIN_BAR) return shown.slice(0, columns - 1);
  const filled = Math.round((width * percent) / 100);
  return `[${'#'.repeat(filled)}${'-'.repeat(width - filled)}] ${shown}`;
}

function computePercent(done: number, total: number): number {
  return total === 0 ? 100 : Math.min(100, Math.floor((done / total) * 100));
}

function formatAmount(done: number, total: number | undefined, unit: Unit): string {
  const number = (count: number) => (unit === 'bytes' ? megabytes(count) : count.toLocaleString('en-US'));
  const amount = total === undefined ? number(done) : `${number(done)} of ${number(total)}`;
  return unit === 'bytes' ? `${amount} MB` : `${amount} ${unit}`;
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
