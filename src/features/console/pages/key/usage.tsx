import {
  groupPermissions,
  type Permission,
  PermissionSet,
  type ResourceActions,
} from '../../../../keys/permissions/index.ts';
import { OperationFailed, orFailed } from '../../operations.ts';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import { withoutIncluded } from '../../../../keys/permissions/index.ts';
import { chosenIn, FIELDS, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { Empty, Problem, Warning, formatCount, LinkButton, BackLink } from '../../parts/notice.tsx';
import { type Bar, barsOf, firstStart, OUTCOMES, type PeriodCounts, UsePlot } from '../../parts/plot.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { Pages, Visit } from '../../visit.tsx';
import { askOfKey, grantedTo, type ShownKey } from './shown-key.ts';
import { type KeyVisit, withKey } from './with-key.tsx';

const USAGE = '{ usage(from: $from, by: $by) { start accepted forbidden limited refused } }';

/** What is plotted: the last so many hours or days. */
const VIEWS = {
  hour: { by: 'HOUR', count: 48, title: 'Last 48 hours' },
  day: { by: 'DAY', count: 90, title: 'Last 90 days' },
} as const;

/** The use of a key, an hour or a day a bar. */
interface PlottedUsage {
  readonly view: keyof typeof VIEWS;
  readonly bars: readonly Bar[];
}

/** The use of a key in the view that the address asks for. @throws OperationFailed */
export async function askUsage(visit: Visit): Promise<PlottedUsage> {
  const view = visit.query('use') === 'day' ? 'day' : 'hour';
  const { by, count } = VIEWS[view];
  const counted = await askPeriods(visit, firstStart(by, count, visit.now), by);
  return { view, bars: barsOf(counted, by, count, visit.now) };
}

/** How the requests of the key in the address ended, by hours or days from a time on. @throws OperationFailed */
async function askPeriods(visit: Visit, from: number, by: 'HOUR' | 'DAY'): Promise<readonly PeriodCounts[]> {
  const variables = { from: new Date(from).toISOString(), by };
  const declared = '$from: DateTime!, $by: UsagePeriod!';
  const apiKey = await askOfKey<{ usage: PeriodCounts[] }>(visit, USAGE, declared, variables);
  return apiKey?.usage ?? [];
}

export function UsageSection({ here: { base }, usage: { view, bars } }: { here: KeyVisit; usage: PlottedUsage }) {
  const isEmpty = bars.every((bar) => OUTCOMES.every((outcome) => bar[outcome] === 0));
  return (
    <section aria-labelledby="use" class="card">
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
        <UsePlot title={VIEWS[view].title} bars={bars} />
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
  pages.get('keys/:id/narrow', withKey(showNarrowing, 'UPDATE'));
  pages.post('keys/:id/narrow', withKey(narrow, 'UPDATE'));
}

async function narrow(here: KeyVisit): Promise<Response> {
  const { visit, shown } = here;
  // Those that were shown: what the key has used since is not among them, and is asked about again.
  const chosen = chosenIn(await visit.form());
  if ([...chosen.roles, ...chosen.permissions].toSorted().join() !== findSuggested(shown).toSorted().join())
    return showNarrowing(here, 'The key has used something else meanwhile. Look again at what it would lose.', 409);
  const done = await orFailed(visit.ask(UPDATE, { input: { id: shown.id, ...grantsInputOf(chosen) } }));
  if (done instanceof OperationFailed) return showNarrowing(here, done.reason, done.pageStatus);
  return visit.seeOther(`keys/${shown.id}?done=narrowed`);
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
      <BackLink to={base}>{shown.name}</BackLink>
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
            <LinkButton to={base}>Cancel</LinkButton>
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
        <summary>{formatCount(withoutIncluded(permissionsOf(loss)).length, 'permission')}</summary>
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
