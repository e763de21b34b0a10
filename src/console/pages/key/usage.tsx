import {
  groupPermissions,
  type Permission,
  PermissionSet,
  type ResourceActions,
} from '../../../keys/permissions/index.ts';
import { PERIOD_MS, startOf } from '../../../keys/key/index.ts';
import { OperationFailed } from '../../operations.ts';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import { chosenIn, FIELDS, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { Empty, Problem, Warning, formatCount } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { Pages, Visit } from '../../visit.tsx';
import { grantedTo, type ShownKey } from './shown-key.ts';
import { BackToKey, type KeyVisit, withKey } from './with-key.tsx';

/** A column of a plot. */
interface Bar {
  /** What it stands for, such as a day. */
  readonly label: string;
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
function BarPlot({
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
async function askPeriods(visit: Visit, from: number, by: 'HOUR' | 'DAY'): Promise<readonly PeriodCounts[]> {
  const variables = { id: visit.param('id'), from: new Date(from).toISOString(), by };
  const { apiKey } = await visit.ask<{ apiKey: { usage: PeriodCounts[] } | null }>(QUERY, variables);
  return apiKey?.usage ?? [];
}

function formatLabel(start: number, by: 'HOUR' | 'DAY'): string {
  const text = new Date(start).toISOString();
  return by === 'DAY' ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

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

const DAY_MS = 86_400_000;
const LOOKED_BACK_DAYS = 90;
const TRUSTED_DAYS = 7;

/** Whether there is something to remove from a key, and something to leave. */
export function canNarrow(key: ShownKey): boolean {
  const suggested = findSuggested(key);
  return suggested.length > 0 && suggested.toSorted().join() !== key.grants.toSorted().join();
}

function findSuggested({ suggestedRoles, suggestedPermissions }: ShownKey): string[] {
  return [...suggestedRoles, ...permissionsOf(suggestedPermissions)];
}

/** What a key loses if it keeps only what it has used. */
function findLosses(key: ShownKey): ResourceActions[] {
  const lost = new Set(permissionsOf(key.excessPermissions));
  const kept = permissionsOf(key.effectivePermissions).filter((permission) => !lost.has(permission)) as Permission[];
  return groupPermissions(grantedTo(key).missingFrom(new PermissionSet(kept)));
}

/** Why the use of the key that the address names may not show all that it needs. @throws OperationFailed */
async function askWarning(visit: Visit): Promise<string | undefined> {
  const counted = await askPeriods(visit, visit.now - LOOKED_BACK_DAYS * DAY_MS, 'DAY');
  const first = counted.find(({ accepted, forbidden }) => accepted + forbidden > 0);
  if (!first) return `It was not used in the last ${LOOKED_BACK_DAYS} days.`;
  if (Date.parse(first.start) > visit.now - TRUSTED_DAYS * DAY_MS)
    return (
      `It has been used for less than ${TRUSTED_DAYS} days. ` +
      'What it does once a week or once a month is missing from what it has used.'
    );
  return undefined;
}

const UPDATE = `mutation Narrow($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }`;

/** Adds the page that removes the permissions that a key never used. */
export function addNarrowing(pages: Pages): void {
  pages.get(
    'keys/:id/narrow',
    withKey((here) => showNarrowing(here), 'UPDATE'),
  );
  pages.post(
    'keys/:id/narrow',
    withKey(async (here) => {
      const { visit, shown } = here;
      // Those that were shown: what the key has used since is not among them, and is asked about again.
      const chosen = chosenIn(await visit.form());
      if ([...chosen.roles, ...chosen.permissions].toSorted().join() !== findSuggested(shown).toSorted().join())
        return showNarrowing(here, 'The key has used something else meanwhile. Look again at what it would lose.', 409);
      try {
        await visit.ask(UPDATE, { input: { id: shown.id, ...grantsInputOf(chosen) } });
      } catch (error) {
        if (error instanceof OperationFailed) return showNarrowing(here, error.reason, error.pageStatus);
        throw error;
      }
      return visit.seeOther(`keys/${shown.id}?done=narrowed`);
    }, 'UPDATE'),
  );
}

async function showNarrowing(here: KeyVisit, problem?: string, status = 200): Promise<Response> {
  const { visit, shown } = here;
  const warning = canNarrow(shown) ? await askWarning(visit) : undefined;
  return visit.page(`Narrow ${shown.name}`, <NarrowPage here={here} warning={warning} problem={problem} />, status);
}

function NarrowPage({
  here,
  warning,
  problem,
}: {
  here: KeyVisit;
  warning: string | undefined;
  problem: string | undefined;
}) {
  const { shown, base } = here;
  return (
    <div class="medium">
      <BackToKey here={here} />
      <h1>Narrow it to what it uses</h1>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {canNarrow(shown) ? (
        <>
          {warning !== undefined && <Warning>{warning}</Warning>}
          <Outcome here={here} />
          <form method="post" action={`${base}/narrow`} class="actions">
            <OnceOnly />
            {shown.suggestedRoles.map((role) => (
              <input type="hidden" name={FIELDS.role} value={role} />
            ))}
            {permissionsOf(shown.suggestedPermissions).map((permission) => (
              <input type="hidden" name={FIELDS.permission} value={permission} />
            ))}
            <button class="primary">Remove the rest</button>
            <a class="button" href={base}>
              Cancel
            </a>
          </form>
        </>
      ) : (
        <Empty title="There is nothing to narrow.">
          <p>
            {findSuggested(shown).length === 0
              ? 'The key has used none of its permissions, and needs at least one. Disable or delete it instead.'
              : 'The key has used all that it was granted.'}
          </p>
        </Empty>
      )}
    </div>
  );
}

function Outcome({ here: { shown } }: { here: KeyVisit }) {
  const loss = findLosses(shown);
  const lostRoles = shown.roles.filter((role) => !shown.suggestedRoles.includes(role));
  return (
    <>
      <p class="help">
        Its grants are replaced by the fewest that allow all that it has ever used: permissions, and the roles that it
        has granted to other keys, as only a key that holds a role may grant it. What it has used in the last seconds
        may not be counted yet. You can grant more again later, as far as your key may.
      </p>
      <h2>It keeps</h2>
      <Roles of={shown.suggestedRoles} />
      <PermissionGroups of={shown.suggestedPermissions} />
      <h2>It loses</h2>
      <Roles of={lostRoles} />
      {shown.unknownGrants.length > 0 && <p>{`${shown.unknownGrants.join(', ')}, not declared here any more`}</p>}
      <details open={loss.length <= 10}>
        <summary>{formatCount(permissionsOf(loss).length, 'permission')}</summary>
        <PermissionGroups of={loss} />
      </details>
    </>
  );
}

function Roles({ of: roles }: { of: readonly string[] }) {
  if (roles.length === 0) return null;
  return (
    <p>
      {roles.length === 1 ? 'The role ' : 'The roles '}
      {roles.map((role) => (
        <code>{role} </code>
      ))}
    </p>
  );
}
