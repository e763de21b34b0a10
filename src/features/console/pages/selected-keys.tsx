import type { Child } from 'hono/jsx';
import { readDay } from '../../../keys/basics/index.ts';
import { OperationFailed, orFailed } from '../operations.ts';
import {
  defaultExpiry,
  expiresAtOf,
  expiryChoiceIn,
  type ExpiryChoice,
  ExpiryField,
  HiddenFields,
} from '../parts/field.tsx';
import { Panel } from '../parts/layout.tsx';
import {
  Done,
  Empty,
  formatCount,
  formatNumber,
  Problem,
  Status,
  Warning,
  LinkButton,
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

/** Selected keys, and the change to make to them. */
interface Selected {
  readonly ids: readonly string[];
  readonly change: Change;
  /** The new expiry, as filled in and in RFC 3339; for EXPIRE only. */
  readonly choice: ExpiryChoice;
  readonly expiresAt: string | undefined;
  /** A problem of that expiry. */
  readonly problem: string | undefined;
}

/** Maximum number of selected keys. */
const MAX_SELECTED = 500;
const RECENT_MS = 86_400_000;

/** Words for each change. */
const WORDS = {
  DISABLE: { title: 'Disable', what: 'stops working immediately', button: 'Disable' },
  EXPIRE: { title: 'Set the expiry of', what: 'stops working then', button: 'Set the expiry' },
  DELETE: { title: 'Delete', what: 'stops working immediately', button: 'Delete' },
} as const;

const CHANGED_MEANWHILE =
  'Nothing was changed: the keys have changed since you opened this page. Check again what will happen.';

/** Adds the page that shows the effect of a change on the selected keys, and then makes it. */
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
  const problem = isPast || chosen.expiresAt === undefined ? 'Choose a day in the future.' : undefined;
  return { ...known, expiresAt: problem === undefined ? chosen.expiresAt : undefined, problem };
}

/** No other bounds: the expiry can only move earlier. */
function boundsAt(now: number) {
  return { now, end: null, required: false, isOwnEnd: false };
}

async function askPlan(visit: Visit, { ids, change, expiresAt }: Selected): Promise<Plan> {
  return visit.ask(PLAN, { ids, change, expiresAt });
}

/** Identifies a plan: if it has changed before it is confirmed, it is shown again. */
function plannedIn({ changing, total }: Plan): string {
  return `${changing.length} of ${total}`;
}

/** Asks for confirmation if many keys, or keys in use, would be deleted. */
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
    <Panel width="medium" title="Deleted">
      <Done>{`${formatCount(deleted, 'key')}.`}</Done>
      <IssuedSection visit={visit} issued={issued} />
      <p>
        <a href={`${visit.root}keys`}>All keys</a>
      </p>
    </Panel>,
  );
}

/** The text that was typed to confirm, and its problem. */
interface Answered {
  readonly problem?: string;
  readonly typed?: string;
}

async function showPlan(visit: Visit, selected: Selected, answered: Answered = {}, status = 200): Promise<Response> {
  const { root } = visit;
  const { ids, change: what, problem } = selected;
  const { title } = WORDS[what];
  if (ids.length === 0)
    return visit.page(
      `${title} keys`,
      <div class="medium">
        <Empty title="No keys selected.">
          <p>
            First select keys in <a href={`${root}keys`}>the list of keys</a>.
          </p>
        </Empty>
      </div>,
      422,
    );
  const plan = problem === undefined ? await askPlan(visit, selected) : undefined;
  const changing = plan?.changing.length ?? ids.length;
  return visit.page(
    `${title} keys`,
    <Panel
      width="medium"
      title={`${title} ${formatCount(changing || ids.length, 'key')}?`}
      back={{ to: `${root}keys`, name: 'Keys' }}
    >
      {answered.problem !== undefined && <Problem>{answered.problem}</Problem>}
      {what === 'EXPIRE' && <EndForm visit={visit} selected={selected} />}
      {plan && changing > 0 && <Reach visit={visit} selected={selected} plan={plan} />}
      {plan && <Keys visit={visit} plan={plan} change={what} />}
      {plan && changing > 0 ? (
        <Confirmation visit={visit} selected={selected} plan={plan} answered={answered} />
      ) : (
        <p>
          {plan && 'None of these keys would change. '}
          <LinkButton to={`${root}keys`}>Back to the keys</LinkButton>
        </p>
      )}
    </Panel>,
    problem === undefined ? status : 422,
  );
}

interface PlanParts {
  readonly visit: Visit;
  readonly selected: Selected;
  readonly plan: Plan;
}

/** The number of keys affected. */
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
          {`: ${formatNumber(total)} in total`}
        </>
      )}
      {', '}
      <LastUse at={lastUsedAt} now={now} words="last used" />
      {`. Anything using ${total === 1 ? 'it' : 'them'} ${WORDS[change].what}.`}
      {change === 'DELETE' && ' You cannot undo this.'}
      {endsSession && ' Your own key, or one of its parent keys, is among them: you will be signed out.'}
    </Warning>
  );
}

/** Asks for the expiry first, because the plan depends on it. */
function EndForm({ visit, selected: { ids, choice, problem } }: { visit: Visit; selected: Selected }) {
  return (
    <form method="get" action={`${visit.root}keys/selected`} class="inline">
      <HiddenFields values={{ change: 'EXPIRE', id: ids }} />
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
  const isOne = unchanged.length === 1;
  const already = {
    DISABLE: 'already disabled',
    EXPIRE: `already ${isOne ? 'expires' : 'expire'} earlier`,
    DELETE: 'already deleted',
  }[change];
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
          <summary>{`${formatCount(refused.length, 'key')} that you are not allowed to change this way`}</summary>
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
          <summary>{`${formatCount(unchanged.length, 'key')} ${already}`}</summary>
          <KeyRows visit={visit} keys={unchanged} />
        </details>
      )}
    </>
  );
}

/** Keys, most recently used first. */
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
  const ids = plan.changing.map(({ id }) => id);
  return (
    <form method="post" action={`${visit.root}keys/selected#confirm`} class="stack">
      <OnceOnly />
      <HiddenFields
        values={{ change: what, planned: plannedIn(plan), ...(what === 'EXPIRE' ? { ...choice } : {}), id: ids }}
      />
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
