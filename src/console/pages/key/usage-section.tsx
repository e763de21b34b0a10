import { PERIOD_MS, startOf } from '../../../keys/usage/periods.ts';
import { BarPlot, type Bar } from '../../parts/bar-plot.tsx';
import { Empty } from '../../parts/notice.tsx';
import type { Visit } from '../../visit.tsx';
import type { KeyVisit } from './with-key.tsx';

const QUERY = `query Usage($id: ID!, $from: DateTime!, $by: UsagePeriod!) {
  apiKey(id: $id) { usage(from: $from, by: $by) { start accepted forbidden limited refused } }
}`;

/** How the requests of an hour or a day ended: see `ApiKeyUsage`. */
interface PeriodCounts {
  readonly start: string;
  readonly accepted: number;
  readonly forbidden: number;
  readonly limited: number;
  readonly refused: number;
}

const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'] as const;

/** What is plotted: the last so many hours or days. */
const VIEWS = {
  hour: { by: 'HOUR', count: 48, title: 'Last 48 hours' },
  day: { by: 'DAY', count: 90, title: 'Last 90 days' },
} as const;

/** The use of a key, an hour or a day a bar. */
export interface PlottedUsage {
  readonly view: keyof typeof VIEWS;
  readonly bars: readonly Bar[];
}

/** The use of a key in the view that the address asks for. @throws OperationFailed */
export async function askUsage(visit: Visit): Promise<PlottedUsage> {
  const view = visit.query('use') === 'day' ? 'day' : 'hour';
  const { by, count } = VIEWS[view];
  const first = startOf(by, visit.now) - (count - 1) * PERIOD_MS[by];
  const counted = await askPeriods(visit, first, by);
  const byStart = new Map(counted.map((period) => [Date.parse(period.start), period]));
  const bars = Array.from({ length: count }, (_, index) => {
    const start = first + index * PERIOD_MS[by];
    const period = byStart.get(start);
    return { label: formatLabel(start, by), values: OUTCOMES.map((outcome) => period?.[outcome] ?? 0) };
  });
  return { view, bars };
}

/** How the requests of the key in the address ended, by hours or days from a time on. @throws OperationFailed */
export async function askPeriods(visit: Visit, from: number, by: 'HOUR' | 'DAY'): Promise<readonly PeriodCounts[]> {
  const variables = { id: visit.param('id'), from: new Date(from).toISOString(), by };
  const { apiKey } = await visit.ask<{ apiKey: { usage: PeriodCounts[] } | null }>(QUERY, variables);
  return apiKey?.usage ?? [];
}

function formatLabel(start: number, by: 'HOUR' | 'DAY'): string {
  const text = new Date(start).toISOString();
  return by === 'DAY' ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

/** How a key was used. */
export function UsageSection({ here: { base }, usage: { view, bars } }: { here: KeyVisit; usage: PlottedUsage }) {
  const isEmpty = bars.every(({ values }) => values.every((value) => value === 0));
  return (
    <section aria-labelledby="use">
      <div class="head">
        <h2 id="use">Use</h2>
        <nav class="tabs" aria-label="Times of use">
          {(['hour', 'day'] as const).map((one) => (
            <a href={`${base}?use=${one}#use`} aria-current={one === view ? 'true' : undefined}>
              {VIEWS[one].title}
            </a>
          ))}
        </nav>
      </div>
      {isEmpty ? (
        <Empty title={`No request in the ${VIEWS[view].title.toLowerCase()}.`}>
          <p>Uses show here within seconds.</p>
        </Empty>
      ) : (
        <BarPlot title={VIEWS[view].title} period={view} series={OUTCOMES} bars={bars} />
      )}
    </section>
  );
}
