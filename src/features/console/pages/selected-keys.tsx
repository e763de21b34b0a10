import type { Child } from 'hono/jsx';
import { readDay } from '../../../keys/basics/index.ts';
import { OperationFailed, orFailed } from '../operations.ts';
import { defaultExpiry, expiresAtOf, expiryChoiceIn, type ExpiryChoice, ExpiryField } from '../parts/field.tsx';
import {
  Done,
  Empty,
  formatCount,
  formatNumber,
  Problem,
  Status,
  Warning,
  LinkButton,
  BackLink,
  LastUse,
} from '../parts/notice.tsx';
import { OnceOnly } from '../sent-form.tsx';
import type { Pages, Visit } from '../visit.tsx';
import { IssuedSection } from './key/contain.tsx';
import type { IssuedChange, ShownKey } from './key/shown-key.ts';

const CHANGES = ['DISABLE', 'EXPIRE', 'DELETE'] as const;
type Change = (typeof CHANGES)[number];

const SHOWN = '{ id name status lastUsedAt branch { count } }';
const PLAN = `query Plan($ids: [ID!]!, $change: ManyKeysChange!, $expiresAt: DateTime) {
  apiKeyChangePlan(ids: $ids, change: $change, expiresAt: $expiresAt) {
    changing ${SHOWN} unchanged ${SHOWN} refused { apiKey ${SHOWN} reason } total lastUsedAt
  }
}`;
const NARROW = `mutation NarrowSelected($input: NarrowApiKeysInput!) { narrowApiKeys(input: $input) { keys { id } } }`;
const DELETE = `mutation DeleteSelected($ids: [ID!]!) {
  deleteApiKeys(ids: $ids) { deleted issued { name keyId what at disabled } }
}`;

interface PlannedKey extends Pick<ShownKey, 'id' | 'name' | 'status' | 'lastUsedAt'> {
  readonly branch: Pick<ShownKey['branch'], 'count'>;
}

/** See `ApiKeyChangePlan` of the schema. */
interface Plan {
  readonly changing: readonly PlannedKey[];
  readonly unchanged: readonly PlannedKey[];
  readonly refused: readonly { readonly apiKey: PlannedKey; readonly reason: string }[];
  readonly total: number;
  readonly lastUsedAt: string | null;
}

/** What is to be done to which keys. */
interface Selected {
  readonly ids: readonly string[];
  readonly change: Change;
  /** When they are to end, as the form has it, and in RFC 3339; for EXPIRE alone. */
  readonly choice: ExpiryChoice;
  readonly expiresAt: string | undefined;
  /** What is wrong with that. */
  readonly problem: string | undefined;
}

/** As many as a page of the list has. */
const MAX_SELECTED = 500;
const RECENT_MS = 86_400_000;

/** How each change is told of. */
const WORDS = {
  DISABLE: { title: 'Disable', what: 'refused from the next request on', button: 'Disable' },
  EXPIRE: { title: 'Set the expiry of', what: 'refused from then on', button: 'Set the expiry' },
  DELETE: { title: 'Delete', what: 'refused from the next request on', button: 'Delete' },
} as const;

const CHANGED_MEANWHILE =
  'Nothing was changed: these are other keys than when you opened this page. Look again at what it would do.';

/** Adds the page on which keys that were selected are changed together, after it has told what that does. */
export function addSelectedKeys(pages: Pages): void {
  pages.get('keys/selected', async (visit) => {
    const { c } = visit;
    return showPlan(visit, selectedIn(visit, { get: (name) => c.req.query(name), ids: c.req.queries('id') ?? [] }));
  });
  pages.post('keys/selected', async (visit) => {
    const form = await visit.form();
    const selected = selectedIn(visit, { get: (name) => form.get(name), ids: form.getAll('id') });
    if (selected.problem !== undefined) return showPlan(visit, selected, {}, 422);
    const plan = await askPlan(visit, selected);
    const typed = form.get('confirm')?.trim() ?? '';
    if (form.get('planned') !== plannedIn(plan)) return showPlan(visit, selected, { problem: CHANGED_MEANWHILE }, 409);
    if (isDangerous(visit, selected, plan) && typed !== `${plan.total}`)
      return showPlan(visit, selected, { problem: `Type ${plan.total}, the number of keys.`, typed }, 422);
    const done = await orFailed(change(visit, selected, plan));
    if (done instanceof OperationFailed)
      return showPlan(visit, selected, { problem: done.reason, typed }, done.pageStatus);
    return done;
  });
}

function selectedIn(
  { now }: Visit,
  { get, ids }: { get: (name: string) => string | null | undefined; ids: readonly string[] },
): Selected {
  const change = CHANGES.find((one) => one === get('change')) ?? 'DISABLE';
  const bounds = boundsAt(now);
  const choice = expiryChoiceIn({ get }, bounds);
  const known = { ids: [...new Set(ids)].slice(0, MAX_SELECTED), change, choice };
  if (change !== 'EXPIRE') return { ...known, expiresAt: undefined, problem: undefined };
  const chosen = expiresAtOf(choice, bounds);
  if ('problem' in chosen) return { ...known, expiresAt: undefined, problem: chosen.problem };
  const isPast = choice.expiry === 'date' && (readDay(choice.date) ?? now) + RECENT_MS <= now;
  const problem = isPast || chosen.expiresAt === undefined ? 'Choose a day to come.' : undefined;
  return { ...known, expiresAt: problem === undefined ? chosen.expiresAt : undefined, problem };
}

/** They only end earlier than before: so nothing else limits when. */
function boundsAt(now: number) {
  return { now, end: null, required: false, isOwnEnd: false };
}

async function askPlan(visit: Visit, { ids, change, expiresAt }: Selected): Promise<Plan> {
  return visit.ask(PLAN, { ids, change, expiresAt });
}

/** What was shown of a plan: where it is another one when it is agreed to, it is shown again. */
function plannedIn({ changing, total }: Plan): string {
  return `${changing.length} of ${total}`;
}

/** Whether somebody may miss them at once, and for good. */
function isDangerous({ now }: Visit, { change }: Selected, { changing, total, lastUsedAt }: Plan): boolean {
  const isRecent = lastUsedAt !== null && now - Date.parse(lastUsedAt) < RECENT_MS;
  return change === 'DELETE' && (isRecent || total > changing.length || changing.length > 1);
}

async function change(visit: Visit, { change: what, expiresAt }: Selected, plan: Plan): Promise<Response> {
  const ids = plan.changing.map(({ id }) => id);
  if (what !== 'DELETE') {
    await visit.ask(NARROW, { input: { ids, expiresAt } });
    return visit.seeOther(`keys?done=${what}`);
  }
  const { deleted, issued } = await visit.ask<{ deleted: number; issued: IssuedChange[] }>(DELETE, { ids });
  return visit.done(
    'Deleted',
    <div class="medium">
      <h1>Deleted</h1>
      <Done>{`${formatCount(deleted, 'key')}.`}</Done>
      <IssuedSection visit={visit} issued={issued} />
      <p>
        <a href={`${visit.root}keys`}>All keys</a>
      </p>
    </div>,
  );
}

/** What was typed, and what is wrong with that. */
interface Answered {
  readonly problem?: string;
  readonly typed?: string;
}

async function showPlan(visit: Visit, selected: Selected, answered: Answered = {}, status = 200): Promise<Response> {
  const { title } = WORDS[selected.change];
  if (selected.ids.length === 0) return visit.page(`${title} keys`, <NothingSelected root={visit.root} />, 422);
  const plan = selected.problem === undefined ? await askPlan(visit, selected) : undefined;
  return visit.page(
    `${title} keys`,
    <PlanPage visit={visit} selected={selected} plan={plan} answered={answered} />,
    selected.problem === undefined ? status : 422,
  );
}

function NothingSelected({ root }: { root: string }) {
  return (
    <div class="medium">
      <Empty title="No key is selected.">
        <p>
          Tick the keys first, in <a href={`${root}keys`}>the list of keys</a>.
        </p>
      </Empty>
    </div>
  );
}

interface PlanParts {
  readonly visit: Visit;
  readonly selected: Selected;
  readonly plan: Plan;
}

function PlanPage({
  plan,
  answered,
  ...shown
}: Omit<PlanParts, 'plan'> & { plan: Plan | undefined; answered: Answered }) {
  const { visit, selected } = shown;
  const { root } = visit;
  const changing = plan?.changing.length ?? selected.ids.length;
  return (
    <div class="medium">
      <BackLink to={`${root}keys`}>Keys</BackLink>
      <h1>{`${WORDS[selected.change].title} ${formatCount(changing || selected.ids.length, 'key')}?`}</h1>
      {answered.problem !== undefined && <Problem>{answered.problem}</Problem>}
      {selected.change === 'EXPIRE' && <EndForm visit={visit} selected={selected} />}
      {plan && plan.changing.length > 0 && <Reach {...shown} plan={plan} />}
      {plan && <Keys visit={visit} plan={plan} change={selected.change} />}
      {plan && plan.changing.length > 0 ? (
        <Confirmation {...shown} plan={plan} answered={answered} />
      ) : (
        <p>
          {plan && 'None of these keys would change. '}
          <LinkButton to={`${root}keys`}>Back to the keys</LinkButton>
        </p>
      )}
    </div>
  );
}

/** The exact numbers. */
function Reach({ visit: { now, principal }, selected: { change }, plan }: PlanParts) {
  const { changing, total, lastUsedAt } = plan;
  const children = total - changing.length;
  const endsSession = principal.chain.keys.some(({ id }) => changing.some((key) => key.id === id));
  return (
    <Warning>
      <strong>{formatCount(changing.length, 'key')}</strong>
      {children > 0 && (
        <>
          {' and '}
          <strong>{formatCount(children, 'child key')}</strong>
          {`: ${formatNumber(total)} in all`}
        </>
      )}
      {', '}
      <LastUse at={lastUsedAt} now={now} words="last used" />
      {`. What uses ${total === 1 ? 'it' : 'them'} is ${WORDS[change].what}.`}
      {change === 'DELETE' && ' It cannot be undone.'}
      {endsSession &&
        ' The key that you have signed in with, or a parent key of it, is among them: you will be signed out.'}
    </Warning>
  );
}

/** When they are to end: what would change depends on it. */
function EndForm({ visit, selected: { ids, choice, problem } }: { visit: Visit; selected: Selected }) {
  return (
    <form method="get" action={`${visit.root}keys/selected`} class="inline">
      <input type="hidden" name="change" value="EXPIRE" />
      {ids.map((id) => (
        <input type="hidden" name="id" value={id} />
      ))}
      <ExpiryField
        bounds={boundsAt(visit.now)}
        chosen={choice.expiry === 'latest' ? defaultExpiry(boundsAt(visit.now)) : choice}
        problem={problem}
        mayNeverEnd={false}
      />
      <button>Show what changes</button>
    </form>
  );
}

function Keys({ visit, plan, change }: { visit: Visit; plan: Plan; change: Change }) {
  const { changing, unchanged, refused } = plan;
  const already = { DISABLE: 'Disabled already', EXPIRE: 'Expire earlier already', DELETE: 'Deleted already' }[change];
  return (
    <>
      {changing.length > 0 && (
        <details open={changing.length <= 10}>
          <summary>{formatCount(changing.length, 'key')}</summary>
          <KeyRows visit={visit} keys={changing} />
        </details>
      )}
      {refused.length > 0 && (
        <details open>
          <summary>{`${formatCount(refused.length, 'key')} that you may not change so`}</summary>
          <ul class="rows">
            {refused.map(({ apiKey, reason }) => (
              <Row visit={visit} item={apiKey}>
                {reason}
              </Row>
            ))}
          </ul>
        </details>
      )}
      {unchanged.length > 0 && (
        <details open={changing.length === 0}>
          <summary>{`${already}: ${formatCount(unchanged.length, 'key')}`}</summary>
          <KeyRows visit={visit} keys={unchanged} />
        </details>
      )}
    </>
  );
}

/** Keys, the one that was used last first. */
function KeyRows({ visit, keys }: { visit: Visit; keys: readonly PlannedKey[] }) {
  const byUse = keys.toSorted(
    (one, other) => Date.parse(other.lastUsedAt ?? '1970') - Date.parse(one.lastUsedAt ?? '1970'),
  );
  return (
    <ul class="rows">
      {byUse.map((key) => (
        <Row visit={visit} item={key}>
          {key.branch.count > 0 && `with ${formatCount(key.branch.count, 'child key')} `}
          <Status is={key.status} /> <LastUse at={key.lastUsedAt} now={visit.now} words="used" />
        </Row>
      ))}
    </ul>
  );
}

function Row({ visit: { root }, item, children }: { visit: Visit; item: PlannedKey; children?: Child }) {
  return (
    <li>
      <a href={`${root}keys/${item.id}`}>{item.name}</a>
      <span class="faint">{children}</span>
    </li>
  );
}

function Confirmation({ visit, selected, plan, answered }: PlanParts & { answered: Answered }) {
  const { change: what, choice } = selected;
  return (
    <form method="post" action={`${visit.root}keys/selected#confirm`} class="stack">
      <OnceOnly />
      <input type="hidden" name="change" value={what} />
      <input type="hidden" name="planned" value={plannedIn(plan)} />
      {what === 'EXPIRE' && (
        <>
          <input type="hidden" name="expiry" value={choice.expiry} />
          <input type="hidden" name="date" value={choice.date} />
        </>
      )}
      {plan.changing.map(({ id }) => (
        <input type="hidden" name="id" value={id} />
      ))}
      {isDangerous(visit, selected, plan) && (
        <>
          <label for="confirm">{`Type ${plan.total}, the number of keys, to confirm`}</label>
          <input
            id="confirm"
            name="confirm"
            value={answered.typed}
            inputmode="numeric"
            required
            autocomplete="off"
            aria-invalid={answered.typed === undefined ? undefined : 'true'}
          />
        </>
      )}
      <div class="actions">
        <button class={what === 'DELETE' ? 'danger' : 'primary'}>
          {`${WORDS[what].button}${what === 'EXPIRE' ? '' : ` ${formatCount(plan.total, 'key')}`}`}
        </button>
        <LinkButton to={`${visit.root}keys`}>Cancel</LinkButton>
      </div>
    </form>
  );
}
