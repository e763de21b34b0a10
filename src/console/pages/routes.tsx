import { OperationFailed } from '../operations.ts';
import { Empty, Problem } from '../parts/notice.tsx';
import type { Pages, Visit } from '../visit.tsx';

/** A route, see `Route` of the schema. */
interface ShownRoute {
  readonly number: number;
  readonly line: number | null;
  readonly host: string;
  readonly path: string;
  readonly methods: readonly string[] | null;
  readonly requires: string;
}

/** What is shown of a route, as a selection of GraphQL. */
const ROUTE_FIELDS = 'number line host path methods requires';

/** A route, and why another one decides in its place. */
interface HiddenRoute extends ShownRoute {
  readonly hiddenBy: readonly number[];
}

/** Routes as a table, in the order of the file. */
function RouteTable({ routes }: { routes: readonly HiddenRoute[] }) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col" class="number">
            Route
          </th>
          <th scope="col">Methods</th>
          <th scope="col">Host and path</th>
          <th scope="col">Requires</th>
        </tr>
      </thead>
      <tbody>
        {routes.map((route) => (
          <tr id={`route-${route.number}`}>
            <th scope="row" class="number">
              {route.number}
              {route.line !== null && <span class="faint">{` line ${route.line}`}</span>}
            </th>
            <td data-label="Methods">{methodsOf(route)}</td>
            <td data-label="Host and path">
              <RoutePattern route={route} />
            </td>
            <td data-label="Requires">
              {route.requires}
              {route.hiddenBy.length > 0 && (
                <span class="warning">{` never decides: ${listOfRoutes(route.hiddenBy)} before it`}</span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A route in a sentence: its number, methods, host and path, and what it requires. */
function RouteText({ route }: { route: ShownRoute }) {
  return (
    <>
      {`Route ${route.number}: ${methodsOf(route)} `}
      <RoutePattern route={route} />
      {` requires ${route.requires}`}
    </>
  );
}

function RoutePattern({ route: { host, path } }: { route: ShownRoute }) {
  return (
    <code>
      <span class="faint">{host === '*' ? '' : host}</span>
      {path}
    </code>
  );
}

function methodsOf({ methods }: ShownRoute): string {
  return methods ? methods.join(', ') : 'all methods';
}

function listOfRoutes(numbers: readonly number[]): string {
  return `${numbers.length === 1 ? 'route' : 'routes'} ${numbers.join(', ')} ${numbers.length === 1 ? 'is' : 'are'}`;
}

const ROUTE = `{ ${ROUTE_FIELDS} }`;
const EXPLAIN = `query Explain($method: String, $url: String!, $keyName: String) {
  explainRequest(method: $method, url: $url, keyName: $keyName) {
    outcome reason missing apiKey { id name }
    route ${ROUTE} otherCaseOf ${ROUTE} after { because route ${ROUTE} } otherMethods ${ROUTE}
  }
}`;

/** A request that somebody asks about. */
interface AskedRequest {
  readonly method: string;
  readonly url: string;
  /** The name of a key; empty for none. */
  readonly key: string;
}

/** See `RequestExplanation` of the schema. */
interface Explanation {
  readonly outcome: 'ALLOWED' | 'REFUSED' | 'FORBIDDEN';
  readonly reason: string;
  readonly missing: readonly string[];
  readonly apiKey: { readonly id: string; readonly name: string } | null;
  readonly route: ShownRoute | null;
  readonly otherCaseOf: ShownRoute | null;
  readonly after: readonly { readonly because: string; readonly route: ShownRoute }[];
  readonly otherMethods: readonly ShownRoute[];
}

/** Asks which route decides about a request. @throws OperationFailed */
async function explain(visit: Visit, { method, url, key }: AskedRequest): Promise<Explanation> {
  const variables = { method, url, ...(key !== '' && { keyName: key }) };
  const { explainRequest } = await visit.ask<{ explainRequest: Explanation }>(EXPLAIN, variables);
  return explainRequest;
}

const OUTCOMES = {
  ALLOWED: ['It may pass.', 'done'],
  REFUSED: ['It needs a key that is accepted: 401.', 'problem'],
  FORBIDDEN: ['It may not pass: 403.', 'problem'],
} as const;

/** What becomes of a request, and why. */
function ExplanationView({ explained, asked }: { explained: Explanation; asked: AskedRequest }) {
  const { outcome, reason, route, missing, otherCaseOf, after, otherMethods, apiKey } = explained;
  const [says, kind] = OUTCOMES[outcome];
  return (
    <section class={`notice ${kind}`} role="status" aria-label="Explanation">
      <p>
        <strong>{says}</strong> <code>{`${asked.method} ${asked.url}`}</code>
        {apiKey ? ` with the key ${apiKey.name}` : ' without a key'}
      </p>
      <p>{sentence(reason)}</p>
      {missing.length > 0 && (
        <p>
          The key lacks{' '}
          {missing.map((permission) => (
            <code>{permission} </code>
          ))}
        </p>
      )}
      {route && (
        <p>
          <RouteText route={route} />, and decides.
        </p>
      )}
      {otherCaseOf && (
        <p>
          But for upper and lower case: <RouteText route={otherCaseOf} />
        </p>
      )}
      <Others title="These match, too, and come after it" routes={after} />
      <Others title="These are for other methods" routes={otherMethods.map((other) => ({ route: other }))} />
    </section>
  );
}

function Others({
  title,
  routes,
}: {
  title: string;
  routes: readonly { readonly route: ShownRoute; readonly because?: string }[];
}) {
  if (routes.length === 0) return null;
  return (
    <>
      <p>{title}:</p>
      <ul>
        {routes.map(({ route, because }) => (
          <li>
            <RouteText route={route} />
            {because !== undefined && <span class="faint">{` (${because})`}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

/** A reason in words, as a sentence. */
function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}

const QUERY = `query Routes($first: Int!, $after: String) {
  routes(first: $first, after: $after) {
    configured total edges { node { ${ROUTE_FIELDS} hiddenBy } } pageInfo { hasNextPage endCursor }
  }
}`;

interface RouteList {
  configured: boolean;
  total: number;
  edges: { node: HiddenRoute }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

const PAGE_SIZE = 100;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Adds the routes, and what becomes of a request by them. */
export function addRoutes(pages: Pages): void {
  pages.get('routes', async (visit) => {
    const variables = { first: PAGE_SIZE, after: visit.query('after') };
    const { routes } = await visit.ask<{ routes: RouteList }>(QUERY, variables);
    const asked = {
      method: visit.query('method') ?? 'GET',
      url: visit.query('url') ?? '',
      key: visit.query('key') ?? '',
    };
    const show = (more: { explained?: Explanation; problem?: string }, status?: number) =>
      visit.page('Routes', <RoutePage visit={visit} routes={routes} asked={asked} {...more} />, status);
    if (asked.url === '') return show({});
    try {
      return await show({ explained: await explain(visit, asked) });
    } catch (error) {
      if (error instanceof OperationFailed) return show({ problem: error.message }, 400);
      throw error;
    }
  });
}

function RoutePage({
  visit,
  routes: { configured, total, edges, pageInfo },
  asked,
  explained,
  problem,
}: {
  visit: Visit;
  routes: RouteList;
  asked: AskedRequest;
  explained?: Explanation;
  problem?: string;
}) {
  return (
    <>
      <div class="head">
        <h1>Routes</h1>
      </div>
      <p class="help">
        They say what requests to guarded services require. The most specific route decides; a request that none matches
        is forbidden.
      </p>
      <ExplainForm visit={visit} asked={asked} />
      {problem !== undefined && <Problem>{problem}</Problem>}
      {explained && <ExplanationView explained={explained} asked={asked} />}
      {total === 0 ? (
        <Empty title={configured ? 'svc-api.yaml has no routes.' : 'There is no svc-api.yaml.'}>
          <p>
            Declare routes in it, such as <code>{'{ path: /api/**, methods: [GET], allow: DOCKER:READ_ANY }'}</code>.
          </p>
        </Empty>
      ) : (
        <RouteTable routes={edges.map(({ node }) => node)} />
      )}
      <nav class="pager" aria-label="Pages of routes">
        {visit.query('after') !== undefined && <a href={`${visit.root}routes`}>First page</a>}
        {pageInfo.hasNextPage && pageInfo.endCursor !== null && (
          <a href={`${visit.root}routes?after=${encodeURIComponent(pageInfo.endCursor)}`}>Next page</a>
        )}
      </nav>
    </>
  );
}

function ExplainForm({ visit, asked }: { visit: Visit; asked: AskedRequest }) {
  const methods = METHODS.includes(asked.method) ? METHODS : [asked.method, ...METHODS];
  return (
    <form method="get" action={`${visit.root}routes`} class="filter" aria-label="Explain a request">
      <label>
        <span>Method</span>
        <select name="method">
          {methods.map((method) => (
            <option value={method} selected={method === asked.method}>
              {method}
            </option>
          ))}
        </select>
      </label>
      <label class="wide">
        <span>URL</span>
        <input name="url" value={asked.url} placeholder="https://example.org/path" required data-shortcut="/" />
      </label>
      {visit.may('API_KEY:READ_OWN') && (
        <label>
          <span>Key</span>
          <input name="key" value={asked.key} placeholder="Name, or none" />
        </label>
      )}
      <button>Explain</button>
    </form>
  );
}
