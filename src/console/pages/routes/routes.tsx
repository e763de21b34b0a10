import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import { Empty, Problem } from '../../parts/notice.tsx';
import type { Visit } from '../../visit.tsx';
import { type AskedRequest, explain, type Explanation, ExplanationView } from './explanation.tsx';
import { type HiddenRoute, ROUTE_FIELDS, RouteTable } from './route-table.tsx';

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
