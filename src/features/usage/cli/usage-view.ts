import { type Column, GAP } from '../../../cli/output.ts';
import type { Terminal } from '../../../cli/terminal.ts';
import type { KeyName } from '../../../keys/service/index.ts';
import { formatTime } from '../../../keys/basics/index.ts';
import { NO_REQUESTS, type OutcomeCounts, OUTCOMES, type Period, PERIOD_MS, sumOf } from '../../../keys/key/index.ts';
import type { UsedTool } from '../suggest.ts';
import type { PeriodUsage, UsageByPeriod } from '../usage.ts';

/** Width of a plot in columns, and whether the terminal shows more than ASCII. */
type PlotSpace = Pick<Terminal, 'columns' | 'showsUnicode'>;

/** Characters for values by height: eighths of a line, or characters of increasing density. */
const [BLOCKS, ASCII] = ['▁▂▃▄▅▆▇█', '.:-=+*#@'];

/** Values per column of a plot. */
function valuesAColumn(count: number, columns: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, columns)));
}

/**
 * Draws counts in one line, as high as they are compared with the highest; none are blank. Where there are more than
 * columns, as many neighbours as necessary are drawn together, the last ones of all in full columns.
 */
export function plot(values: readonly number[], { columns, showsUnicode }: PlotSpace): string {
  const size = valuesAColumn(values.length, columns);
  const sums: number[] = [];
  for (let end = values.length; end > 0; end -= size)
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, value) => sum + value, 0));
  const marks = showsUnicode ? BLOCKS : ASCII;
  const highest = Math.max(...sums);
  return sums.map((sum) => (sum > 0 ? marks[Math.ceil((sum / highest) * marks.length) - 1] : ' ')).join('');
}

/** The use of a key as JSON: a closed list of fields. Times are in RFC 3339 format, in UTC. */
export function usageJson({ id, name }: KeyName, { by, from, to, periods }: UsageByPeriod) {
  return {
    id,
    name,
    by,
    since: formatTime(from),
    until: formatTime(to),
    totals: totalsOf(periods),
    /** The hours or days with requests, the oldest first. */
    periods: periods.map(({ start, ...counts }) => ({ start: formatTime(start), ...counts })),
  };
}

export type UsageJson = ReturnType<typeof usageJson>;

/** A tool that a key has called, as JSON. */
export function toolJson({ name, lastUsedAt }: UsedTool) {
  return { name, lastUsedAt: formatTime(lastUsedAt) };
}

export const TOOL_COLUMNS: readonly Column[] = [{ title: 'TOOL' }, { title: 'LAST USED' }];

export const USAGE_COLUMNS: readonly Column[] = ['start', ...OUTCOMES].map((name) => ({ title: name.toUpperCase() }));

/** An hour or day as the cells of a row. */
export function usageRow({ start, ...counts }: PeriodUsage): string[] {
  return [formatTime(start), ...OUTCOMES.map((outcome) => String(counts[outcome]))];
}

const HEAD = ['', 'total', 'most'];
/** Minimum width of a plot, before lines get wider than the terminal. */
const MIN_PLOT = 8;

/** The use of a key as lines for a terminal: for each outcome how many, how many at most, and when. */
export function usagePlot(
  { by, from, to, periods }: UsageByPeriod,
  { columns: total, showsUnicode }: PlotSpace,
): string {
  const totals = totalsOf(periods);
  const cells = OUTCOMES.map((outcome) => {
    const most = Math.max(...periods.map((period) => period[outcome]));
    return [outcome, String(totals[outcome]), String(most)];
  });
  const widths = HEAD.map((_, index) => Math.max(...[HEAD, ...cells].map((row) => row[index]!.length)));
  const line = (row: readonly string[]) =>
    row.map((cell, index) => (index === 0 ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!))).join(GAP);
  const columns = Math.max(MIN_PLOT, total - line(HEAD).length - GAP.length);
  const length = PERIOD_MS[by];
  const starts = Array.from({ length: (to - from) / length }, (_, index) => from + index * length);
  const byStart = new Map(periods.map((period) => [period.start, period]));
  const size = valuesAColumn(starts.length, columns);
  const unit = by.toLowerCase();
  return [
    `${timeText(from, by)} to ${timeText(to, by)}, UTC`,
    `a column is ${size === 1 ? `${by === 'HOUR' ? 'an' : 'a'} ${unit}` : `${size} ${unit}s`}`,
    line(HEAD).trimEnd(),
    ...OUTCOMES.map((outcome, index) => {
      const values = starts.map((start) => byStart.get(start)?.[outcome] ?? 0);
      return `${line(cells[index]!)}${GAP}${plot(values, { columns, showsUnicode })}`.trimEnd();
    }),
  ].join('\n');
}

/** `2030-12-31 23:00`, or `2030-12-31` for a day. */
function timeText(time: number, by: Period): string {
  const text = formatTime(time);
  return by === 'DAY' ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

function totalsOf(periods: readonly PeriodUsage[]): OutcomeCounts {
  return periods.reduce<OutcomeCounts>(sumOf, NO_REQUESTS);
}
