/** A column of a plot. */
export interface Bar {
  /** What it stands for, such as a day. */
  readonly label: string;
  /** A number for each series. */
  readonly values: readonly number[];
}

/** How high a plot is, in units of its own. It is as wide as 10 units a bar. */
const HEIGHT = 100;
const STEP = 10;
/** What is more than nothing is seen. */
const LEAST = 1.5;

/**
 * Stacked bars, with what each series is by pattern as well as by colour, and the same numbers as a table.
 * @param period what a bar is, such as `hour`
 * @param series at most four names, which are classes of the style sheet
 */
export function BarPlot({
  title,
  period,
  series,
  bars,
}: {
  title: string;
  period: string;
  series: readonly string[];
  bars: readonly Bar[];
}) {
  const totals = series.map((_, index) => sum(bars.map(({ values }) => values[index]!)));
  const highest = Math.max(...bars.map(({ values }) => sum(values)));
  return (
    <figure class="plot">
      <figcaption class="legend">
        {series.map((name, index) => (
          <span>
            <svg width="12" height="12" aria-hidden="true">
              <rect width="12" height="12" fill={`url(#plot-${name})`} />
            </svg>
            {` ${name} ${formatted(totals[index]!)}`}
          </span>
        ))}
        <span class="faint">{`at most ${formatted(highest)} in one ${period}, UTC`}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title}: ${series.map((name, index) => `${formatted(totals[index]!)} ${name}`).join(', ')}`}
        viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`}
        preserveAspectRatio="none"
        height="120"
        width="100%"
      >
        <defs>
          {series.map((name, index) => (
            <Pattern name={name} kind={index} />
          ))}
        </defs>
        {bars.map((bar, index) => (
          <Column bar={bar} x={index * STEP} series={series} highest={highest} />
        ))}
      </svg>
      <div class="ends" aria-hidden="true">
        <span>{bars[0]?.label}</span> <span>{bars.at(-1)?.label}</span>
      </div>
      <NumberTable title={title} series={series} bars={bars} />
    </figure>
  );
}

/** Plain, diagonal lines, horizontal lines, a grid. */
const LINES = [undefined, 'M0 6 6 0M-1 1 1-1M5 7 7 5', 'M0 3H6', 'M0 3H6M3 0V6'] as const;

function Pattern({ name, kind }: { name: string; kind: number }) {
  return (
    <pattern id={`plot-${name}`} class={name} width="6" height="6" patternUnits="userSpaceOnUse">
      <rect width="6" height="6" fill="currentColor" fill-opacity={LINES[kind] ? '0.3' : '1'} />
      {LINES[kind] && <path d={LINES[kind]} fill="none" stroke="currentColor" stroke-width="1.6" />}
    </pattern>
  );
}

function Column({
  bar: { label, values },
  x,
  series,
  highest,
}: {
  bar: Bar;
  x: number;
  series: readonly string[];
  highest: number;
}) {
  if (sum(values) === 0) return null;
  let top = HEIGHT;
  return (
    <g>
      <title>{`${label}: ${series.map((name, index) => `${formatted(values[index]!)} ${name}`).join(', ')}`}</title>
      <rect x={x} y="0" width={STEP} height={HEIGHT} fill="transparent" />
      {values.map((value, index) => {
        if (value === 0) return null;
        // Room is left for what is made to be seen.
        const height = Math.max(LEAST, (value / highest) * (HEIGHT - series.length * LEAST));
        top -= height;
        return (
          <rect
            x={x + 1}
            y={top.toFixed(2)}
            width={STEP - 2}
            height={height.toFixed(2)}
            fill={`url(#plot-${series[index]})`}
          />
        );
      })}
    </g>
  );
}

function NumberTable({ title, series, bars }: { title: string; series: readonly string[]; bars: readonly Bar[] }) {
  return (
    <details>
      <summary>The same as numbers</summary>
      <div class="scroll" role="region" aria-label={title} tabindex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">From, UTC</th>
              {series.map((name) => (
                <th scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {bars
              .filter(({ values }) => sum(values) > 0)
              .map(({ label, values }) => (
                <tr>
                  <th scope="row">{label}</th>
                  {values.map((value) => (
                    <td class="number">{formatted(value)}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function formatted(count: number): string {
  return count.toLocaleString('en');
}
