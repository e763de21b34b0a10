import type { Child } from 'hono/jsx';
import { Empty, formatNumber } from './notice.tsx';

/** Outcomes of requests: accepted, and the kinds of refusal. */
const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'] as const;
const [ACCEPTED, ...REFUSALS] = OUTCOMES;
type Outcome = (typeof OUTCOMES)[number];

/** Explanations of the outcomes. */
const MEANINGS: Readonly<Record<Outcome, string>> = {
  accepted: 'answered',
  forbidden: 'the key lacked a permission, or was used from an address that it does not allow',
  limited: 'over a limit',
  refused: 'the key was disabled or expired, or its secret was no longer valid',
};

/** Outcomes of the requests of an hour or a day: see `ApiKeyUsage`. */
export type PeriodCounts = Readonly<Record<Outcome, number>> & { readonly start: string };

/** A column of a plot: an hour or a day. */
export type Bar = Readonly<Record<Outcome, number>> & {
  /** Its start in UTC. */
  readonly label: string;
};

const HOUR_MS = 3_600_000;
const PERIODS = { HOUR: HOUR_MS, DAY: 24 * HOUR_MS } as const;

/** Start of the first of a number of hours or days up to now, in milliseconds since 1970. */
export function firstStart(by: keyof typeof PERIODS, count: number, now: number): number {
  return Math.floor(now / PERIODS[by]) * PERIODS[by] - (count - 1) * PERIODS[by];
}

/** A column for each hour or day up to now, including those without requests. */
export function barsOf(counted: readonly PeriodCounts[], by: keyof typeof PERIODS, count: number, now: number): Bar[] {
  const byStart = new Map(counted.map((period) => [Date.parse(period.start), period]));
  const first = firstStart(by, count, now);
  return Array.from({ length: count }, (_, index) => {
    const start = first + index * PERIODS[by];
    const text = new Date(start).toISOString();
    const label = by === 'DAY' ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
    const { accepted = 0, forbidden = 0, limited = 0, refused = 0 } = byStart.get(start) ?? {};
    return { label, accepted, forbidden, limited, refused };
  });
}

/** Accepted and refused requests of all columns. */
export function totalsOf(bars: readonly Bar[]): { accepted: number; refused: number } {
  return { accepted: sum(bars.map((bar) => bar[ACCEPTED])), refused: sum(bars.map(refusalsOf)) };
}

function refusalsOf(bar: Bar): number {
  return sum(REFUSALS.map((outcome) => bar[outcome]));
}

/** Height of a chart and width of a column, in its own units. */
const HEIGHT = 100;
const STEP = 10;
/** Minimum height of a bar, so that small numbers stay visible. */
const LEAST = 2;
/** Number of times below a plot. */
const MAX_TIMES = 5;

/**
 * Requests over time. Refused ones have a chart of their own, since there are few of them. Tooltips show the numbers of a
 * column, and a table has all of them.
 */
export function UsePlot({ title, period, bars }: { title: string; period: string; bars: readonly Bar[] }) {
  if (bars.every((bar) => bar.accepted + refusalsOf(bar) === 0))
    return (
      <Empty title={`No requests in the ${period}.`}>
        <p>Requests appear here within seconds.</p>
      </Empty>
    );
  const isRefused = bars.some((bar) => refusalsOf(bar) > 0);
  return (
    <figure class="plot">
      <Legend outcomes={[ACCEPTED]} bars={bars} />
      <Chart title={title} outcomes={[ACCEPTED]} bars={bars} height={140} />
      {isRefused && (
        <>
          <Legend outcomes={REFUSALS} bars={bars} />
          <Chart title={`${title}: not accepted`} outcomes={REFUSALS} bars={bars} height={70} />
        </>
      )}
      <Times labels={fewLabels(bars)} />
      {!isRefused && <p class="help">All requests were accepted.</p>}
      <NumberTable
        columns={OUTCOMES}
        rows={bars.map((bar) => ({ label: bar.label, values: OUTCOMES.map((outcome) => bar[outcome]) }))}
      />
    </figure>
  );
}

function Legend({ outcomes, bars }: { outcomes: readonly Outcome[]; bars: readonly Bar[] }) {
  return (
    <figcaption class="legend">
      {outcomes.map((outcome) => (
        <span title={MEANINGS[outcome]}>
          <svg width="12" height="12" aria-hidden="true">
            <rect width="12" height="12" fill={`url(#plot-${outcome})`} />
          </svg>
          {` ${outcome} `}
          <strong>{formatNumber(sum(bars.map((bar) => bar[outcome])))}</strong>
        </span>
      ))}
    </figcaption>
  );
}

function Chart({
  title,
  outcomes,
  bars,
  height,
}: {
  title: string;
  outcomes: readonly Outcome[];
  bars: readonly Bar[];
  height: number;
}) {
  const top = roundUp(Math.max(...bars.map((bar) => sum(outcomes.map((outcome) => bar[outcome])))));
  const said = outcomes.map((outcome) => `${formatNumber(sum(bars.map((bar) => bar[outcome])))} ${outcome}`);
  return (
    <div class="chart">
      <div class="axis" aria-hidden="true">
        <span>{formatNumber(top)}</span>
        <span>{formatNumber(top / 2)}</span>
        <span>0</span>
      </div>
      <ChartArea
        role="img"
        label={`${title}: ${said.join(', ')}`}
        columns={bars.length}
        outcomes={outcomes}
        height={height}
      >
        {[0, HEIGHT / 2].map((y) => (
          <line class="grid" x1="0" x2={bars.length * STEP} y1={y} y2={y} />
        ))}
        {bars.map((bar, index) => (
          <g class="column">
            <Column bar={bar} index={index} outcomes={outcomes} top={top} label={labelOf(bar)} />
          </g>
        ))}
      </ChartArea>
    </div>
  );
}

function labelOf(bar: Bar): string {
  return `${bar.label} UTC: ${OUTCOMES.map((outcome) => `${formatNumber(bar[outcome])} ${outcome}`).join(', ')}`;
}

/** The area of a chart, as wide as the page, with the patterns of its outcomes. */
export function ChartArea({
  role,
  label,
  columns,
  outcomes,
  height,
  children,
}: {
  role: 'img' | 'group';
  label: string;
  columns: number;
  outcomes: readonly Outcome[];
  height: number;
  children?: Child;
}) {
  return (
    <svg
      role={role}
      aria-label={label}
      viewBox={`0 0 ${columns * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
      height={height}
      width="100%"
    >
      <defs>
        {outcomes.map((outcome) => (
          <Pattern outcome={outcome} />
        ))}
      </defs>
      {children}
    </svg>
  );
}

/** The next number that is easy to read on an axis, as is its half. */
function roundUp(value: number): number {
  if (value <= 2) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power);
  return steps.find((step) => step >= value && step % 2 === 0)!;
}

/** Plain, diagonal lines, horizontal lines, a grid. */
const LINES: Readonly<Record<Outcome, string | undefined>> = {
  accepted: undefined,
  forbidden: 'M0 6 6 0M-1 1 1-1M5 7 7 5',
  limited: 'M0 3H6',
  refused: 'M0 3H6M3 0V6',
};

function Pattern({ outcome }: { outcome: Outcome }) {
  const lines = LINES[outcome];
  return (
    <pattern id={`plot-${outcome}`} class={outcome} width="6" height="6" patternUnits="userSpaceOnUse">
      <rect width="6" height="6" fill="currentColor" fill-opacity={lines ? '0.3' : '1'} />
      {lines && <path d={lines} fill="none" stroke="currentColor" stroke-width="1.6" />}
    </pattern>
  );
}

/** The numbers of a column, one on top of the other. @param label its tooltip */
export function Column<Name extends Outcome>({
  bar,
  index,
  outcomes,
  top,
  label,
}: {
  bar: Readonly<Record<Name, number>>;
  index: number;
  outcomes: readonly Name[];
  /** The number at the top of the chart. */
  top: number;
  label: string;
}) {
  const x = index * STEP;
  let y = HEIGHT;
  return (
    <>
      <title>{label}</title>
      <rect class="under" x={x} y="0" width={STEP} height={HEIGHT} />
      {outcomes.map((outcome) => {
        if (bar[outcome] === 0) return null;
        // Leaves room for bars of minimum height.
        const height = Math.max(LEAST, (bar[outcome] / top) * (HEIGHT - outcomes.length * LEAST));
        y -= height;
        return (
          <rect x={x + 1} y={y.toFixed(2)} width={STEP - 2} height={height.toFixed(2)} fill={`url(#plot-${outcome})`} />
        );
      })}
    </>
  );
}

/** A few times, far enough apart to read. */
function fewLabels(bars: readonly Bar[]): string[] {
  return Array.from({ length: MAX_TIMES }, (_, index) => {
    const { label } = bars[Math.round((index / (MAX_TIMES - 1)) * (bars.length - 1))]!;
    return label.length > 10 ? label.slice(5) : label;
  });
}

/** Times below a chart. */
export function Times({ labels }: { labels: readonly string[] }) {
  return (
    <div class="times" aria-hidden="true">
      {labels.map((label) => (
        <span>{label}</span>
      ))}
    </div>
  );
}

/** The numbers of a chart, the newest first, without the times that have none. */
export function NumberTable({
  columns,
  rows,
}: {
  columns: readonly string[];
  rows: readonly { readonly label: string; readonly href?: string; readonly values: readonly number[] }[];
}) {
  return (
    <details>
      <summary>Show as table</summary>
      <table class="numbers">
        <thead>
          <tr>
            <th scope="col">From, UTC</th>
            {columns.map((name) => (
              <th scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows
            .filter(({ values }) => sum(values) > 0)
            .toReversed()
            .map(({ label, href, values }) => (
              <tr>
                <th scope="row">{href === undefined ? label : <a href={href}>{label}</a>}</th>
                {values.map((value) => (
                  <td class="number">{formatNumber(value)}</td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </details>
  );
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
