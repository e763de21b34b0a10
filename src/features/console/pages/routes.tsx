import { withQuery } from '../links.ts';
import { OperationFailed, orFailed } from '../operations.ts';
import { exampleResource } from '../../../keys/permissions/index.ts';
import { FilterChoice, FilterField } from '../parts/field.tsx';
import { Message, Panel } from '../parts/layout.tsx';
import { Empty, Problem, Time } from '../parts/notice.tsx';
import { Codes } from '../permission-words.tsx';
import type { Pages, Visit, VisitHandler } from '../visit.tsx';
import type { ShownKey } from './key/shown-key.ts';

/** A route, see `Route` of the schema. */
interface ShownRoute {
  readonly number: number;
  readonly line: number | null;
  readonly host: string;
  readonly path: string;
  readonly methods: readonly string[] | null;
  readonly allow: 'OPEN' | 'KEY' | 'ALL' | 'ANY' | 'RESOURCE';
  readonly requires: string;
}

/** GraphQL fields of a route. */
const ROUTE_FIELDS = 'number line host path methods allow requires';

/** A route, the routes that hide it, and the access of the key that was entered: see `RouteEdge`. */
interface ListedRoute {
  readonly node: ShownRoute & { readonly hiddenBy: readonly number[] };
  readonly passes: readonly string[] | null;
  readonly passesAll: boolean | null;
  readonly missing: readonly string[] | null;
}

/** Routes as a table, in the order of the file. @param keyName key whose access gets a column; empty for none */
function RouteTable({ visit, routes, keyName }: { visit: Visit; routes: readonly ListedRoute[]; keyName: string }) {
  const mayReadKeys = visit.may('API_KEY:READ_OWN');
  return (
    <table class="list routes">
      <thead>
        <tr>
          <th scope="col" class="number">
            Route
          </th>
          <th scope="col">Methods</th>
          <th scope="col">Host and path</th>
          <th scope="col">Requires</th>
          {keyName !== '' && <th scope="col">{keyName}</th>}
          {mayReadKeys && <th scope="col">Access</th>}
        </tr>
      </thead>
      <tbody>
        {routes.map(({ node: route, ...access }) => (
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
                <span class="warning">{` Never used: ${listOfRoutes(route.hiddenBy)} all its requests`}</span>
              )}
            </td>
            {keyName !== '' && (
              <td data-label={keyName}>
                <AccessText access={access} />
              </td>
            )}
            {mayReadKeys && (
              <td data-label="Access">
                {route.allow === 'OPEN' ? (
                  'Everyone'
                ) : (
                  <a href={`${visit.root}routes/${route.number}/keys`}>
                    Keys<span class="hidden">{` that can use route ${route.number}`}</span>
                  </a>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Methods that a key can use, and permissions that it lacks for the others. */
function AccessText({ access: { passes, passesAll, missing } }: { access: Omit<ListedRoute, 'node'> }) {
  const isNone = passes === null || passes.length === 0;
  return (
    <>
      <span class={`status ${isNone ? 'bad' : passesAll ? 'active' : 'disabled'}`}>
        {isNone ? 'No access' : passesAll ? 'Allowed' : `${passes.join(', ')} only`}
      </span>
      {missing !== null && missing.length > 0 && (
        <span class="grants">
          {' lacks '}
          <Codes of={missing} />
        </span>
      )}
    </>
  );
}

/** A route in a sentence: its number, methods, host and path, and what it requires. */
function RouteText({ route }: { route: ShownRoute }) {
  return (
    <>
      {`route ${route.number}: ${methodsOf(route)} `}
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
  return `${numbers.length === 1 ? 'route' : 'routes'} ${numbers.join(', ')} ${numbers.length === 1 ? 'takes' : 'take'}`;
}

const ROUTE = `{ ${ROUTE_FIELDS} }`;
const EXPLAIN = `query Explain($method: String, $url: String!, $keyName: String) {
  explainRequest(method: $method, url: $url, keyName: $keyName) {
    outcome reason missing apiKey { id name }
    route ${ROUTE} otherCaseOf ${ROUTE} after { because route ${ROUTE} } otherMethods ${ROUTE}
  }
}`;

/** A request to explain. */
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

/** Explains which route decides about a request. @throws OperationFailed */
function explain(visit: Visit, { method, url, key }: AskedRequest): Promise<Explanation> {
  return visit.ask(EXPLAIN, { method, url, ...(key !== '' && { keyName: key }) });
}

const OUTCOMES = {
  ALLOWED: ['Allowed', 'done'],
  REFUSED: ['401 Unauthorized: a valid key is required', 'problem'],
  FORBIDDEN: ['403 Forbidden', 'problem'],
} as const;

/** The outcome of a request, and the reason. */
function ExplanationView({ root, explained, asked }: { root: string; explained: Explanation; asked: AskedRequest }) {
  const { outcome, reason, route, missing, otherCaseOf, after, otherMethods, apiKey } = explained;
  const [says, kind] = OUTCOMES[outcome];
  return (
    <section class={`notice ${kind}`} role="status" aria-label="Explanation">
      <p>
        <strong>{says}</strong> <code>{`${asked.method} ${asked.url}`}</code>
        {apiKey ? ` with the key ${apiKey.name}` : ' without a key'}
      </p>
      <p>
        {sentence(reason)}
        {missing.length > 0 && ' '}
        {apiKey && missing.length > 0 && <a href={`${root}keys/${apiKey.id}`}>Open the key</a>}
      </p>
      {route && (
        <p>
          Decided by <RouteText route={route} />.
        </p>
      )}
      {otherCaseOf && (
        <p>
          It differs from <RouteText route={otherCaseOf} /> only in upper and lower case, or in how Unicode writes a
          character.
        </p>
      )}
      <Others title="Less specific routes that also match" routes={after} />
      <Others title="Routes for other methods" routes={otherMethods.map((other) => ({ route: other }))} />
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

const QUERY = `query Routes($first: Int!, $after: String, $keyName: String) {
  routes(first: $first, after: $after, keyName: $keyName) {
    configured total edges { passes passesAll missing node { ${ROUTE_FIELDS} hiddenBy } }
    pageInfo { hasNextPage endCursor }
  }
}`;

interface RouteList {
  configured: boolean;
  total: number;
  edges: ListedRoute[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

const PAGE_SIZE = 100;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Contents of the page. */
interface ShownRoutes {
  readonly asked: AskedRequest;
  readonly routes: RouteList;
  /** The key whose access is shown; empty for none. */
  readonly keyName: string;
  readonly explained?: Explanation | undefined;
  readonly problem?: string;
}

/** Adds the page of routes, which also explains a request. */
export function addRoutes(pages: Pages): void {
  pages.get('routes', async (visit) => {
    const asked = {
      method: visit.query('method') ?? 'GET',
      url: visit.query('url') ?? '',
      key: visit.query('key') ?? '',
    };
    const list = (keyName?: string) =>
      visit.ask<RouteList>(QUERY, { first: PAGE_SIZE, after: visit.query('after'), keyName });
    const explaining = asked.url === '' ? undefined : explain(visit, asked);
    const found = await orFailed(Promise.all([list(asked.key || undefined), explaining]));
    // If this fails as well, the entered key or request is not the cause.
    if (found instanceof OperationFailed)
      return showRoutes(visit, { asked, routes: await list(), keyName: '', problem: found.message });
    const [routes, explained] = found;
    return showRoutes(visit, { asked, routes, keyName: asked.key, explained });
  });
  pages.get('routes/:number/keys', answerKeys);
}

const KEYS = `query RouteKeys($route: Int!, $after: String) {
  routeKeys(route: $route, first: 50, after: $after) {
    edges { node { id name grants lastUsedAt } } pageInfo { hasNextPage endCursor }
  }
}`;
const ONE_ROUTE = `query Route($after: String) { routes(first: 1, after: $after) { edges { node ${ROUTE} } } }`;

/** Keys that can use a route: see `routeKeys` of the schema. */
interface PassingKeys {
  readonly edges: readonly { readonly node: Pick<ShownKey, 'id' | 'name' | 'grants' | 'lastUsedAt'> }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

/** Lists the keys that can use a route and that the person can see. */
const answerKeys: VisitHandler = async (visit) => {
  const number = /^[1-9]\d{0,8}$/.test(visit.param('number')) ? Number(visit.param('number')) : 0;
  // The cursor of the route before it: they are counted.
  const after = number > 1 ? Buffer.from(`route:${number - 1}`).toString('base64url') : undefined;
  const { edges } = await visit.ask<{ edges: { node: ShownRoute }[] }>(ONE_ROUTE, { after });
  const route = number > 0 ? edges[0]?.node : undefined;
  if (!route) return visit.page('Not found', <Message title="Not found" message="This route does not exist." />, 404);
  const passing = await visit.ask<PassingKeys>(KEYS, { route: number, after: visit.query('after') });
  return visit.page(`Keys of route ${number}`, <KeysPage visit={visit} route={route} passing={passing} />);
};

function KeysPage({ visit, route, passing }: { visit: Visit; route: ShownRoute; passing: PassingKeys }) {
  const { root, now } = visit;
  const { edges, pageInfo } = passing;
  const here = `${root}routes/${route.number}/keys`;
  return (
    <Panel title={`Keys that can use route ${route.number}`} back={{ to: `${root}routes`, name: 'Routes' }}>
      <p>
        {methodsOf(route)} <RoutePattern route={route} /> requires {route.requires}
      </p>
      {edges.length > 0 ? (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Grants</th>
              <th scope="col">Last used</th>
            </tr>
          </thead>
          <tbody>
            {edges.map(({ node: { id, name, grants, lastUsedAt } }) => (
              <tr>
                <th scope="row">
                  <a href={`${root}keys/${id}`}>{name}</a>
                </th>
                <td data-label="Grants" class="grants">
                  <Codes of={grants.slice(0, MAX_GRANTS)} />
                  {grants.length > MAX_GRANTS && <span class="faint">{`and ${grants.length - MAX_GRANTS} more`}</span>}
                </td>
                <td data-label="Last used">
                  <Time at={lastUsedAt} now={now} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <Empty title={pageInfo.hasNextPage ? 'No keys found so far' : 'No keys can use this route'}>
          {pageInfo.hasNextPage && <p>There are more keys to check.</p>}
        </Empty>
      )}
      <nav class="pager" aria-label="Pages of keys">
        {visit.query('after') !== undefined && <a href={here}>First page</a>}
        {pageInfo.hasNextPage && pageInfo.endCursor !== null && (
          <a href={withQuery(here, { after: pageInfo.endCursor })}>{edges.length > 0 ? 'Next page' : 'Keep looking'}</a>
        )}
      </nav>
    </Panel>
  );
}

/** Maximum number of grants in a row. */
const MAX_GRANTS = 4;

function showRoutes(visit: Visit, { asked, routes, keyName, explained, problem }: ShownRoutes): Promise<Response> {
  const { configured, total, edges, pageInfo } = routes;
  return visit.page(
    'Routes',
    <>
      <h1>Routes</h1>
      <p class="help">
        Routes say which key a request to a guarded service needs. The most specific route decides. Requests that match
        no route are refused.
      </p>
      <ExplainForm visit={visit} asked={asked} />
      {problem !== undefined && <Problem>{problem}</Problem>}
      {explained && <ExplanationView root={visit.root} explained={explained} asked={asked} />}
      {total === 0 ? (
        <Empty title={configured ? 'svc-api.yaml has no routes.' : 'There is no svc-api.yaml.'}>
          <p>
            Declare routes in it, such as{' '}
            <code>{`{ host: "*", path: /api/**, methods: [GET], allow: ${exampleResource(visit.parts.keys.catalog)}:READ_ANY }`}</code>
            .
          </p>
        </Empty>
      ) : (
        <RouteTable visit={visit} routes={edges} keyName={keyName} />
      )}
      <nav class="pager" aria-label="Pages of routes">
        {visit.query('after') !== undefined && <a href={`${visit.root}routes`}>First page</a>}
        {pageInfo.hasNextPage && pageInfo.endCursor !== null && (
          <a href={withQuery(`${visit.root}routes`, { key: keyName, after: pageInfo.endCursor })}>Next page</a>
        )}
      </nav>
    </>,
    problem === undefined ? 200 : 400,
  );
}

function ExplainForm({ visit, asked }: { visit: Visit; asked: AskedRequest }) {
  const methods = METHODS.includes(asked.method) ? METHODS : [asked.method, ...METHODS];
  return (
    <form method="get" action={`${visit.root}routes`} class="filter" aria-label="Try a request">
      <FilterChoice
        label="Method"
        name="method"
        chosen={asked.method}
        options={methods.map((method) => [method, method])}
      />
      <FilterField
        isWide
        label="URL"
        name="url"
        value={asked.url}
        placeholder="https://example.org/path"
        data-shortcut="/"
      />
      {visit.may('API_KEY:READ_OWN') && <FilterField label="Key" name="key" value={asked.key} placeholder="Name" />}
      <button>Try it</button>
      {visit.may('API_KEY:READ_OWN') && <p class="help">Enter only a key to see everything it can reach.</p>}
    </form>
  );
}
