import { formatCount } from '../../parts/notice.tsx';
import { ChartArea, Column, NumberTable, sum, Times } from '../../parts/plot.tsx';
import type { Visit } from '../../visit.tsx';
import {
  addressOf,
  DAY_MS,
  fieldTime,
  type Filter,
  FILTER_ARGUMENTS,
  FILTER_VARIABLES,
  type FilterTimes,
  variablesOf,
} from './filter.ts';

const HOUR_MS = 3_600_000;

/** Periods to plot without a time filter, with the length of a bar. */
const PERIODS = {
  '24h': { title: '24 hours', barMs: HOUR_MS, bars: 24 },
  '7d': { title: '7 days', barMs: 6 * HOUR_MS, bars: 28 },
  '30d': { title: '30 days', barMs: DAY_MS, bars: 30 },
} as const;
type PeriodName = keyof typeof PERIODS;

/** Maximum number of bars of a day or more. */
const MAX_BARS = 31;

/** Bars of the same length, one after another. Times are milliseconds since 1970. */
interface Window {
  /** The period up to now; undefined if the filter sets the times. */
  readonly period: PeriodName | undefined;
  readonly start: number;
  readonly barMs: number;
  readonly bars: number;
}

/** Whole days around the times of the filter, by the hour for up to two days. */
function windowOf({ since, until }: FilterTimes, period: PeriodName, now: number): Window {
  if (since === undefined && until === undefined) {
    const { barMs, bars } = PERIODS[period];
    const end = (Math.floor(now / barMs) + 1) * barMs;
    return { period, start: end - bars * barMs, barMs, bars };
  }
  const last = until ?? Math.max(now, since! + 1);
  const first = since ?? last - 7 * DAY_MS;
  const start = Math.floor(first / DAY_MS) * DAY_MS;
  const days = Math.max(1, Math.ceil((last - start) / DAY_MS));
  const barMs = days <= 2 ? HOUR_MS : days <= 8 ? 6 * HOUR_MS : Math.ceil(days / MAX_BARS) * DAY_MS;
  return { period: undefined, start, barMs, bars: Math.ceil((days * DAY_MS) / barMs) };
}

interface Bar {
  readonly start: number;
  readonly accepted: number;
  readonly refused: number;
}

/** Bars of the chart; `complete` if no entry is left out. */
export interface Histogram {
  readonly window: Window;
  readonly bars: readonly Bar[];
  readonly complete: boolean;
}

const QUERY = `query Counts($since: DateTime!, $until: DateTime!, $by: UsagePeriod!, ${FILTER_VARIABLES}) {
  auditCounts(since: $since, until: $until, by: $by, ${FILTER_ARGUMENTS}) { complete counts { start entries refused } }
}`;

interface Answer {
  complete: boolean;
  counts: { start: string; entries: number; refused: number }[];
}

/** Counts the entries that match a filter, over time. @throws OperationFailed */
export async function askHistogram(visit: Visit, filter: Filter, times: FilterTimes): Promise<Histogram> {
  const asked = visit.query('plot') ?? '';
  const window = windowOf(times, Object.hasOwn(PERIODS, asked) ? (asked as PeriodName) : '24h', visit.now);
  const { start, barMs, bars } = window;
  const { complete, counts } = await visit.ask<Answer>(QUERY, {
    since: new Date(start).toISOString(),
    until: new Date(start + bars * barMs).toISOString(),
    by: barMs < DAY_MS ? 'HOUR' : 'DAY',
    ...variablesOf(filter),
  });
  const sums = Array.from({ length: bars }, (_, index) => ({ start: start + index * barMs, accepted: 0, refused: 0 }));
  for (const { start: at, entries, refused } of counts) {
    const sum = sums[Math.floor((Date.parse(at) - start) / barMs)];
    if (!sum) continue;
    sum.accepted += entries - refused;
    sum.refused += refused;
  }
  return { window, bars: sums, complete };
}

/** The outcomes of entries, with the colours and patterns of those of requests. */
const OUTCOMES = ['accepted', 'refused'] as const;

/** Bars that filter the log by their time, and a table with the same links. */
export function HistogramPlot({
  root,
  filter,
  times: { since, until },
  histogram: { window, bars, complete },
}: {
  root: string;
  filter: Filter;
  times: FilterTimes;
  histogram: Histogram;
}) {
  const { start, barMs, period } = window;
  const highest = Math.max(1, ...bars.map(({ accepted, refused }) => accepted + refused));
  const isIn = ({ start: at }: Bar) => at + barMs > (since ?? -Infinity) && at < (until ?? Infinity);
  const shown = bars.filter(isIn);
  const [accepted, refused] = OUTCOMES.map((outcome) => sum(shown.map((bar) => bar[outcome]))) as [number, number];
  const linkTo = ({ start: at }: Bar) =>
    addressOf(root, { ...filter, since: fieldTime(at), until: fieldTime(at + barMs) });
  const wordsOf = (bar: Bar) => `${timeText(bar.start, barMs)}, ${countsOf(bar)}`;
  const ends = [start, start + Math.floor(bars.length / 2) * barMs, start + bars.length * barMs];
  return (
    <figure class="histogram">
      <figcaption>
        <span>
          <strong>
            {complete ? '' : 'At least '}
            {formatCount(accepted + refused, 'entry', 'entries')}
          </strong>
          {refused > 0 && <span class="refused"> {refused.toLocaleString('en')} refused</span>}
          <span class="faint">{` · ${period ? `last ${PERIODS[period].title}` : spanText(shown, barMs)}`}</span>
        </span>
        <PeriodLinks root={root} filter={filter} period={period} />
      </figcaption>
      <div data-histogram>
        <ChartArea role="group" label="Entries over time" columns={bars.length} outcomes={OUTCOMES} height={88}>
          {bars.map((bar, index) => (
            <a href={linkTo(bar)} tabindex={-1} class={isIn(bar) ? 'column' : 'column out'} aria-label={wordsOf(bar)}>
              <Column bar={bar} index={index} outcomes={OUTCOMES} top={highest} label={wordsOf(bar)} />
            </a>
          ))}
        </ChartArea>
      </div>
      <Times labels={ends.map((end) => timeText(end, barMs))} />
      {!complete && <p class="help">Only the newest 50,000 entries of this time are counted.</p>}
      <NumberTable
        columns={['Done', 'Refused']}
        rows={bars.map((bar) => ({
          label: timeText(bar.start, barMs),
          href: linkTo(bar),
          values: OUTCOMES.map((outcome) => bar[outcome]),
        }))}
      />
    </figure>
  );
}

function PeriodLinks({ root, filter, period }: { root: string; filter: Filter; period: PeriodName | undefined }) {
  const anyTime = { ...filter, since: '', until: '' };
  return (
    <nav class="tabs" aria-label="Period of the chart">
      {Object.entries(PERIODS).map(([name, { title }]) => (
        <a href={addressOf(root, anyTime, { plot: name })} aria-current={name === period ? 'true' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

function countsOf({ accepted, refused }: Bar): string {
  return `${formatCount(accepted, 'entry', 'entries')}${refused > 0 ? `, ${refused.toLocaleString('en')} refused` : ''}`;
}

/** `Jan 31, 12:00`, or only the day if bars are days. */
function timeText(time: number, barMs: number): string {
  const date = new Date(time);
  const day = date.toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
  return barMs < DAY_MS ? `${day}, ${date.toISOString().slice(11, 16)}` : day;
}

/** From the first bar to the end of the last. */
function spanText(bars: readonly Bar[], barMs: number): string {
  const [first, last] = [bars.at(0), bars.at(-1)];
  if (!first || !last) return 'no time';
  const end = last.start + barMs;
  if (barMs < DAY_MS) return `${timeText(first.start, barMs)} to ${timeText(end, barMs)}`;
  return first.start + DAY_MS === end
    ? timeText(first.start, barMs)
    : `${timeText(first.start, barMs)} to ${timeText(end - 1, barMs)}`;
}
