import {
  groupPermissions,
  type Permission,
  PermissionSet,
  type ResourceActions,
  withoutIncluded,
} from '../../../../keys/permissions/index.ts';
import { OperationFailed, orFailed } from '../../operations.ts';
import { PermissionGroups } from '../../parts/grants-picker.tsx';
import { HiddenFields } from '../../parts/field.tsx';
import { chosenIn, FIELDS, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import { Card, Panel } from '../../parts/layout.tsx';
import { Empty, Problem, Warning, formatCount, LinkButton } from '../../parts/notice.tsx';
import { type Bar, barsOf, firstStart, type PeriodCounts, UsePlot } from '../../parts/plot.tsx';
import { Codes } from '../../permission-words.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { Pages, Visit } from '../../visit.tsx';
import { askOfKey, grantedTo, type ShownKey } from './shown-key.ts';
import { type KeyVisit, withKey } from './with-key.tsx';

const USAGE = '{ usage(from: $from, by: $by) { start accepted forbidden limited refused } }';

/** The periods that can be plotted. */
const VIEWS = {
  hour: { by: 'HOUR', count: 48, title: 'Last 48 hours' },
  day: { by: 'DAY', count: 90, title: 'Last 90 days' },
} as const;

/** The usage of a key, with a bar for each hour or day. */
interface PlottedUsage {
  readonly view: keyof typeof VIEWS;
  readonly bars: readonly Bar[];
}

/** Loads the usage of a key for the period in the address. @throws OperationFailed */
export async function askUsage(visit: Visit): Promise<PlottedUsage> {
  const view = visit.query('use') === 'day' ? 'day' : 'hour';
  const { by, count } = VIEWS[view];
  const counted = await askPeriods(visit, firstStart(by, count, visit.now), by);
  return { view, bars: barsOf(counted, by, count, visit.now) };
}

/** Loads the outcomes of requests with the key that a page is about, by hour or day. @throws OperationFailed */
export async function askPeriods(visit: Visit, from: number, by: 'HOUR' | 'DAY'): Promise<readonly PeriodCounts[]> {
  const variables = { from: new Date(from).toISOString(), by };
  const declared = '$from: DateTime!, $by: UsagePeriod!';
  const apiKey = await askOfKey<{ usage: PeriodCounts[] }>(visit, USAGE, declared, variables);
  return apiKey?.usage ?? [];
}

export function UsageSection({ here: { base }, usage: { view, bars } }: { here: KeyVisit; usage: PlottedUsage }) {
  const { title } = VIEWS[view];
  const periods = (
    <nav class="tabs" aria-label="Period">
      {Object.entries(VIEWS).map(([name, one]) => (
        <a href={`${base}?use=${name}#use`} aria-current={name === view ? 'true' : undefined}>
          {one.title}
        </a>
      ))}
    </nav>
  );
  return (
    <Card id="use" title="Usage" aside={periods}>
      <UsePlot title={title} period={title.toLowerCase()} bars={bars} />
    </Card>
  );
}

const DAY_MS = 86_400_000;
const LOOKED_BACK_DAYS = 90;
const TRUSTED_DAYS = 7;

/** Checks whether a key has both unused and used permissions. */
export function canNarrow(key: ShownKey): boolean {
  const suggested = findSuggested(key);
  return suggested.length > 0 && suggested.toSorted().join() !== key.grants.toSorted().join();
}

function findSuggested({ suggestedRoles, suggestedPermissions }: ShownKey): string[] {
  return [...suggestedRoles, ...permissionsOf(suggestedPermissions)];
}

/** Permissions that a key loses if it keeps only those it has used. */
function findLosses(key: ShownKey): ResourceActions[] {
  const lost = new Set(permissionsOf(key.excessPermissions));
  const kept = permissionsOf(key.effectivePermissions).filter((permission) => !lost.has(permission)) as Permission[];
  return groupPermissions(grantedTo(key).missingFrom(new PermissionSet(kept)));
}

/** Warns if the usage of the key is too short or too old to show all that it needs. @throws OperationFailed */
async function askWarning(visit: Visit): Promise<string | undefined> {
  const counted = await askPeriods(visit, visit.now - LOOKED_BACK_DAYS * DAY_MS, 'DAY');
  const first = counted.find(({ accepted, forbidden }) => accepted + forbidden > 0);
  if (!first) return `Not used in the last ${LOOKED_BACK_DAYS} days.`;
  if (Date.parse(first.start) > visit.now - TRUSTED_DAYS * DAY_MS)
    return `In use for less than ${TRUSTED_DAYS} days. Weekly or monthly jobs may not have run yet.`;
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
  // Compare with what was shown: if the key has used something else since, ask again.
  const chosen = chosenIn(await visit.form());
  if ([...chosen.roles, ...chosen.permissions].toSorted().join() !== findSuggested(shown).toSorted().join())
    return showNarrowing(
      here,
      'The key has used another permission since you opened this page. Check again what will be removed.',
      409,
    );
  const done = await orFailed(visit.ask(UPDATE, { input: { id: shown.id, ...grantsInputOf(chosen) } }));
  if (done instanceof OperationFailed) return showNarrowing(here, done.reason, done.pageStatus);
  return visit.seeOther(`keys/${shown.id}?done=narrowed`);
}

async function showNarrowing(here: KeyVisit, problem?: string, status = 200): Promise<Response> {
  const { visit, shown, base } = here;
  const warning = canNarrow(shown) ? await askWarning(visit) : undefined;
  return visit.page(
    `Remove unused permissions of ${shown.name}`,
    <Panel width="medium" title="Remove unused permissions" back={{ to: base, name: shown.name }}>
      {problem !== undefined && <Problem>{problem}</Problem>}
      {canNarrow(shown) ? (
        <>
          {warning !== undefined && <Warning>{warning}</Warning>}
          <Outcome here={here} />
          <form method="post" action={`${base}/narrow`} class="actions">
            <OnceOnly />
            <HiddenFields
              values={{
                [FIELDS.role]: shown.suggestedRoles,
                [FIELDS.permission]: permissionsOf(shown.suggestedPermissions),
              }}
            />
            <button class="primary">Remove unused permissions</button>
            <LinkButton to={base}>Cancel</LinkButton>
          </form>
        </>
      ) : (
        <Empty title="There is nothing to remove.">
          <p>
            {findSuggested(shown).length === 0
              ? 'The key has not used any of its permissions, and must keep at least one. Disable or delete it instead.'
              : 'The key has used all its permissions.'}
          </p>
        </Empty>
      )}
    </Panel>,
    status,
  );
}

function Outcome({ here: { shown } }: { here: KeyVisit }) {
  const loss = findLosses(shown);
  const lostRoles = shown.roles.filter((role) => !shown.suggestedRoles.includes(role));
  return (
    <>
      <p class="help">
        Keeps what this key has used, and roles that it gave to other keys. Removes the rest. Requests of the last few
        seconds may not be counted yet. You can grant permissions again later, if your key has them.
      </p>
      <h2>Keeps</h2>
      <Roles of={shown.suggestedRoles} />
      <PermissionGroups of={shown.suggestedPermissions} />
      <h2>Removes</h2>
      <Roles of={lostRoles} />
      {shown.unknownGrants.length > 0 && (
        <p>{`${shown.unknownGrants.join(', ')}, no longer declared in svc-api.yaml`}</p>
      )}
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
      <Codes of={roles} />
    </p>
  );
}
