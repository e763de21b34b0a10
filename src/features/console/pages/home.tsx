import type { Pages, Visit } from '../visit.tsx';
import { formatNumber, formatTotal, KeyLink, LinkButton, Time } from '../parts/notice.tsx';
import { Card, Panel } from '../parts/layout.tsx';
import { barsOf, firstStart, type PeriodCounts, totalsOf, UsePlot } from '../parts/plot.tsx';
import type { CountedKeys, ShownKey } from './key/shown-key.ts';
import type { Request } from './requests.tsx';
import { askPeriods } from './key/usage.tsx';
import { askChecks } from './service.tsx';

const DAY_MS = 86_400_000;
/** Keys that expire within this many days are listed as "expiring soon". */
const SOON_DAYS = 14;
const HOURS = 24;
const SHOWN = 5;
/** Counting stops here: a higher number would not change what there is to do. */
const COUNTED = 1000;
const MAX_REQUESTS = 100;
const LEAKS_DAYS = 30;

type Counted = CountedKeys<Pick<ShownKey, 'id' | 'name' | 'createdAt' | 'expiresAt'>>;

const LISTED = 'total hasMore keys { id name createdAt expiresAt }';
const NEWEST = `query Newest { apiKeyList(first: ${SHOWN}) { ${LISTED} } }`;
const ENDING = `query Ending($until: DateTime!) {
  apiKeyList(
    first: ${SHOWN}, sort: EXPIRES, descending: false, expiresBefore: $until, status: ACTIVE, countUpTo: ${COUNTED}
  ) { ${LISTED} }
}`;
const NEVER_USED = `query NeverUsed {
  apiKeyList(first: 0, neverUsed: true, status: ACTIVE, countUpTo: ${COUNTED}) { ${LISTED} }
}`;
const USE_OF_ALL = `query Use($from: DateTime!) {
  serviceUsage(from: $from) { start accepted forbidden limited refused }
}`;
const REQUESTS = `query OpenRequests {
  consentRequests(first: ${MAX_REQUESTS}) { clientName createdAt status }
}`;
const HIDDEN = `query HiddenRoutes { routes(first: 100) { edges { node { hiddenBy } } } }`;
const LEAKS = `query Leaks($since: DateTime!) {
  auditLog(first: ${SHOWN}, action: LEAK, since: $since) { edges { node { keyName } } }
}`;

type OpenRequest = Pick<Request, 'clientName' | 'createdAt' | 'status'>;

/** A problem, with the page that shows details. */
interface Trouble {
  readonly what: string;
  readonly remedy: string;
  /** Under `/console/`. */
  readonly path: string;
}

/** Adds the home page of people who can see keys. Others start at their own key, or else at their first page. */
export function addHome(pages: Pages): void {
  pages.get('', async (visit) => {
    if (visit.may('API_KEY:READ_OWN')) return visit.page('Home', <Home visit={visit} overview={await ask(visit)} />);
    const first = visit.pages.find(({ path }) => path === 'me') ?? visit.pages[0];
    if (first) return visit.seeOther(first.path);
    return visit.page(
      'No access',
      <Panel width="narrow" title="No access">
        <p>
          The key {visit.principal.apiKey.name} cannot open any page. Sign in with a key that can, for example one with{' '}
          <code>API_KEY:READ_OWN</code>.
        </p>
      </Panel>,
      403,
    );
  });
}

type Overview = Awaited<ReturnType<typeof ask>>;

/** Loads everything on the page that this person is allowed to see. @throws OperationFailed */
async function ask(visit: Visit) {
  const { now } = visit;
  const until = new Date(now + SOON_DAYS * DAY_MS).toISOString();
  const [newest, ending, neverUsed, use, requests, troubles] = await Promise.all([
    visit.ask<Counted>(NEWEST),
    visit.ask<Counted>(ENDING, { until }),
    visit.ask<Counted>(NEVER_USED),
    askUse(visit),
    askRequests(visit),
    askTroubles(visit),
  ]);
  return { newest, ending, neverUsed, bars: barsOf(use, 'HOUR', HOURS, now), requests, troubles };
}

/** Requests of all keys, or only of their own for people who cannot see the others. */
async function askUse(visit: Visit): Promise<readonly PeriodCounts[]> {
  const from = firstStart('HOUR', HOURS, visit.now);
  return visit.may('API_KEY:READ_ANY')
    ? visit.ask(USE_OF_ALL, { from: new Date(from).toISOString() })
    : askPeriods(visit, from, 'HOUR');
}

async function askRequests(visit: Visit): Promise<readonly OpenRequest[] | undefined> {
  if (!visit.may('API_KEY:CREATE_ANY')) return undefined;
  const requests = await visit.ask<OpenRequest[]>(REQUESTS);
  return requests.filter(({ status }) => status === 'PENDING');
}

/** Problems of the service; undefined for people who cannot see any of them. */
async function askTroubles(visit: Visit): Promise<readonly Trouble[] | undefined> {
  const found = await Promise.all([askHealth(visit), askHiddenRoutes(visit), askLeaks(visit)]);
  return found.every((troubles) => troubles === undefined) ? undefined : found.flatMap((troubles) => troubles ?? []);
}

async function askHealth(visit: Visit): Promise<Trouble[] | undefined> {
  if (!visit.may('INFO:READ_ANY')) return undefined;
  return (await askChecks(visit))
    .filter(({ isWell }) => !isWell)
    .map(({ what, state, remedy }) => ({ what: `${what}: ${state}`, remedy, path: 'health' }));
}

async function askHiddenRoutes(visit: Visit): Promise<Trouble[] | undefined> {
  if (!visit.may('CONFIG:READ_ANY')) return undefined;
  const routes = await visit.ask<{ edges: { node: { hiddenBy: number[] } }[] } | null>(HIDDEN);
  const hidden = routes?.edges.filter(({ node }) => node.hiddenBy.length > 0).length ?? 0;
  if (hidden === 0) return [];
  const [what, them] = hidden === 1 ? ['A route has no effect', 'its'] : [`${hidden} routes have no effect`, 'their'];
  return [{ what, remedy: `Other routes take all ${them} requests.`, path: 'routes' }];
}

async function askLeaks(visit: Visit): Promise<Trouble[] | undefined> {
  if (!visit.may('LOGS:READ_ANY')) return undefined;
  const since = new Date(visit.now - LEAKS_DAYS * DAY_MS).toISOString();
  type Leak = { node: { keyName: string | null } };
  const { edges } = await visit.ask<{ edges: Leak[] }>(LEAKS, { since });
  const names = new Set(edges.map(({ node }) => node.keyName ?? 'another key'));
  return [...names].map((name) => ({
    what: `A scan found the secret of ${name}`,
    remedy: 'Rotate the key without a grace period, and use Contain to undo what was done with it.',
    path: `audit-log?action=LEAK&since=${since.slice(0, 10)}`,
  }));
}

function Home({ visit, overview }: { visit: Visit; overview: Overview }) {
  const { newest, bars, requests, troubles, ending } = overview;
  const { root, now } = visit;
  return (
    <>
      <div class="head">
        <h1>Home</h1>
        {visit.mayCreate && (
          <LinkButton kind="primary" to={`${root}keys/new`}>
            New key
          </LinkButton>
        )}
      </div>
      {troubles !== undefined && troubles.length > 0 && <Troubles root={root} troubles={troubles} />}
      <Figures visit={visit} overview={overview} />
      <Card
        title={visit.may('API_KEY:READ_ANY') ? 'Requests' : 'Requests of your key'}
        aside={<span class="faint">last 24 hours, UTC</span>}
      >
        <UsePlot title="Requests of the last 24 hours" period="last 24 hours" bars={bars} />
      </Card>
      <div class="cards">
        <Card title="Newest" aside={<a href={`${root}keys`}>All keys</a>}>
          <ul class="rows">
            {newest.keys.map((key) => (
              <li>
                <KeyLink root={root} id={key.id} name={key.name} />
                <span class="faint">
                  <Time at={key.createdAt} now={now} />
                </span>
              </li>
            ))}
          </ul>
        </Card>
        <Card title="Expiring soon" aside={<a href={root + ENDING_PATH}>{`Within ${SOON_DAYS} days`}</a>}>
          {ending.keys.length === 0 ? (
            <p class="faint">No keys expire within {SOON_DAYS} days.</p>
          ) : (
            <ul class="rows">
              {ending.keys.map((key) => (
                <li>
                  <KeyLink root={root} id={key.id} name={key.name} />
                  <span class="warning">
                    <Time at={key.expiresAt} now={now} />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </Card>
        {requests && <OpenRequests visit={visit} requests={requests} />}
        {troubles?.length === 0 && (
          <Card title="Problems" aside={<a href={`${root}health`}>Health</a>}>
            <p>
              <span class="status active">No problems found.</span>
            </p>
          </Card>
        )}
      </div>
    </>
  );
}

/** The lists behind the figures, under `/console/`. */
const ENDING_PATH = `keys?status=ACTIVE&ends=${SOON_DAYS}d&sort=ends`;
const NEVER_USED_PATH = 'keys?status=ACTIVE&used=never';

function Figures({ visit, overview }: { visit: Visit; overview: Overview }) {
  const { root, now } = visit;
  const { newest, ending, neverUsed, bars, requests } = overview;
  const { accepted, refused } = totalsOf(bars);
  const yesterday = new Date(now - DAY_MS).toISOString().slice(0, 10);
  const refusals = visit.may('LOGS:READ_ANY') ? `audit-log?outcome=REFUSED&since=${yesterday}` : undefined;
  return (
    <ul class="figures">
      <Figure root={root} path="keys?sort=last-used" value={formatNumber(accepted + refused)} what="requests, 24 h" />
      <Figure root={root} path={refusals} value={formatNumber(refused)} what="not accepted" isBad={refused > 0} />
      <Figure root={root} path="keys" value={formatTotal(newest)} what={newest.total === 1 ? 'key' : 'keys'} />
      <Figure
        root={root}
        path={ENDING_PATH}
        value={formatTotal(ending)}
        what="expiring soon"
        isBad={ending.total > 0}
      />
      <Figure root={root} path={NEVER_USED_PATH} value={formatTotal(neverUsed)} what="never used" />
      {requests && (
        <Figure
          root={root}
          path="requests"
          value={`${formatNumber(requests.length)}${requests.length >= MAX_REQUESTS ? '+' : ''}`}
          what="waiting for approval"
          isBad={requests.length > 0}
        />
      )}
    </ul>
  );
}

/** A number that links to the list it counts. */
function Figure({
  root,
  path,
  value,
  what,
  isBad = false,
}: {
  root: string;
  path: string | undefined;
  value: string;
  what: string;
  isBad?: boolean;
}) {
  const content = (
    <>
      <strong class={isBad ? 'warning' : undefined}>{value}</strong> <span>{what}</span>
    </>
  );
  return <li>{path === undefined ? <span>{content}</span> : <a href={root + path}>{content}</a>}</li>;
}

function Troubles({ root, troubles }: { root: string; troubles: readonly Trouble[] }) {
  return (
    <section class="notice problem" aria-labelledby="wrong">
      <h2 id="wrong">Problems</h2>
      <ul>
        {troubles.map(({ what, remedy, path }) => (
          <li>
            <a href={root + path}>{what}</a>. {remedy}
          </li>
        ))}
      </ul>
    </section>
  );
}

function OpenRequests({ visit: { root, now }, requests }: { visit: Visit; requests: readonly OpenRequest[] }) {
  return (
    <Card title="Waiting for approval" aside={<a href={`${root}requests`}>Approvals</a>}>
      {requests.length === 0 ? (
        <p class="faint">No requests to approve.</p>
      ) : (
        <ul class="rows">
          {requests.slice(0, SHOWN).map(({ clientName, createdAt }) => (
            <li>
              {clientName}
              <span class="faint">
                <Time at={createdAt} now={now} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
