import type { Pages, Visit } from '../visit.tsx';
import { Empty, type KeyStatus, Status, Time } from '../parts/notice.tsx';

const QUERY = `query Keys($first: Int!, $after: String, $search: String, $status: ApiKeyStatus) {
  apiKeys(first: $first, after: $after, search: $search, status: $status) {
    edges { node { id name prefix description grants status expiresAt lastUsedAt uses } }
    pageInfo { hasNextPage endCursor }
  }
}`;

interface ListedKey {
  id: string;
  name: string;
  prefix: string;
  description: string | null;
  grants: string[];
  status: KeyStatus;
  expiresAt: string | null;
  lastUsedAt: string | null;
  uses: number;
}

interface Answer {
  apiKeys: {
    edges: { node: ListedKey }[];
    pageInfo: { hasNextPage: boolean; endCursor: string | null };
  };
}

/** What the list is narrowed to. */
interface Filter {
  search?: string | undefined;
  status?: string | undefined;
}

const PAGE_SIZE = 50;
const STATUSES: readonly KeyStatus[] = ['ACTIVE', 'DISABLED', 'EXPIRED'];

export function addKeyList(pages: Pages): void {
  pages.get('keys', async (visit) => {
    const status = STATUSES.find((one) => one === visit.query('status'));
    const filter: Filter = { search: visit.query('search'), status };
    const { apiKeys } = await visit.ask<Answer>(QUERY, { first: PAGE_SIZE, after: visit.query('after'), ...filter });
    const keys = apiKeys.edges.map(({ node }) => node);
    const { hasNextPage, endCursor } = apiKeys.pageInfo;
    return visit.page(
      'Keys',
      <KeyList visit={visit} keys={keys} filter={filter} next={hasNextPage ? endCursor : null} />,
    );
  });
}

function KeyList({
  visit,
  keys,
  filter,
  next,
}: {
  visit: Visit;
  keys: ListedKey[];
  filter: Filter;
  next: string | null;
}) {
  const { root } = visit;
  return (
    <>
      <div class="head">
        <h1>Keys</h1>
        {visit.mayCreate && (
          <a class="button primary" href={`${root}keys/new`}>
            New key
          </a>
        )}
      </div>
      <form method="get" action={`${root}keys`} role="search" class="filter">
        <label class="hidden" for="search">
          Search
        </label>
        <input
          id="search"
          type="search"
          name="search"
          value={filter.search}
          placeholder="Name or description"
          data-shortcut="/"
        />
        <label class="hidden" for="status">
          Status
        </label>
        <select id="status" name="status">
          <option value="">Any status</option>
          {STATUSES.map((status) => (
            <option value={status} selected={filter.status === status}>
              {status.toLowerCase()}
            </option>
          ))}
        </select>
        <button>Search</button>
      </form>
      {keys.length === 0 ? <NoKeys visit={visit} filter={filter} /> : <KeyTable visit={visit} keys={keys} />}
      <nav class="pager" aria-label="Pages of keys">
        {visit.query('after') !== undefined && <a href={addressOf(root, filter)}>First page</a>}
        {next !== null && <a href={addressOf(root, filter, next)}>Next page</a>}
      </nav>
    </>
  );
}

function KeyTable({ visit, keys }: { visit: Visit; keys: ListedKey[] }) {
  const { root, now } = visit;
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Status</th>
          <th scope="col">May</th>
          <th scope="col">Last used</th>
          <th scope="col">Expires</th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr>
            <th scope="row">
              <a href={`${root}keys/${key.id}`}>{key.name}</a> <code class="faint">{key.prefix}</code>
            </th>
            <td data-label="Status">
              <Status is={key.status} />
            </td>
            <td data-label="May" class="grants">
              <GrantSummary grants={key.grants} />
            </td>
            <td data-label="Last used">
              <Time at={key.lastUsedAt} now={now} />
            </td>
            <td data-label="Expires">
              <Time at={key.expiresAt} now={now} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const SHOWN_GRANTS = 3;

function GrantSummary({ grants }: { grants: string[] }) {
  const more = grants.slice(SHOWN_GRANTS);
  return (
    <>
      {grants.slice(0, SHOWN_GRANTS).map((grant) => (
        <code>{grant}</code>
      ))}
      {more.length > 0 && <span class="faint" title={more.join(', ')}>{`and ${more.length} more`}</span>}
    </>
  );
}

function NoKeys({ visit, filter }: { visit: Visit; filter: Filter }) {
  if (filter.search !== undefined || filter.status !== undefined)
    return (
      <Empty title="No key matches.">
        <p>
          <a href={`${visit.root}keys`}>Show all keys</a>
        </p>
      </Empty>
    );
  return (
    <Empty title="There are no keys here yet.">
      <p>A key gives one script, pipeline or person the access that it needs, and nothing more.</p>
    </Empty>
  );
}

function addressOf(root: string, { search = '', status = '' }: Filter, after = ''): string {
  const given = Object.entries({ search, status, after }).filter(([, value]) => value !== '');
  return `${root}keys${given.length > 0 ? `?${new URLSearchParams(given).toString()}` : ''}`;
}
