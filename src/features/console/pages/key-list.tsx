import type { Child } from 'hono/jsx';
import { UUID } from '../../../keys/basics/index.ts';
import { fieldsOf, filterFields, graphqlTypeOf, mapFields, valueOfText } from '../../../keys/key/index.ts';
import { ROLE_MEANINGS } from '../../../keys/permissions/index.ts';
import { withQuery } from '../links.ts';
import { OperationFailed } from '../operations.ts';
import { AccessLine } from '../permission-words.tsx';
import { FilterChoice, FilterField } from '../parts/field.tsx';
import { permissionsOf } from '../parts/grants.ts';
import {
  Done,
  Empty,
  formatNumber,
  formatTotal,
  type KeyStatus,
  LinkButton,
  PersonNote,
  Problem,
  Status,
  Time,
} from '../parts/notice.tsx';
import type { Pages, Visit } from '../visit.tsx';
import type { CountedKeys, ShownKey } from './key/shown-key.ts';

/** The filters of fields in the form, by their names in an address; that of owners also finds creators. */
const FIELD_FILTERS = fieldsOf(filterFields)
  .filter(([name]) => name !== 'owner')
  .map(([name, field]) => ({ name, field, parameter: field.flag ?? name }));

/** The arguments of a list, with their types in the schema. */
const ARGUMENTS = {
  search: 'String',
  roles: '[Role!]',
  status: 'ApiKeyStatus',
  ...mapFields(filterFields, graphqlTypeOf),
  createdBy: 'ID',
  createdByOperator: 'Boolean',
  expiresBefore: 'DateTime',
  unusedSince: 'DateTime',
  neverUsed: 'Boolean',
  sort: 'ApiKeySort',
  descending: 'Boolean',
} as const;

/** Names only the arguments given, because each filter adds to the cost of the query. */
function queryWith(given: readonly (keyof typeof ARGUMENTS)[]): string {
  const declared = given.map((name) => `, $${name}: ${ARGUMENTS[name]}`).join('');
  const passed = given.map((name) => `, ${name}: $${name}`).join('');
  return `query Keys($first: Int!, $offset: Int!${declared}) {
    apiKeyList(first: $first, offset: $offset${passed}) {
      keys {
        id name prefix person { issuer name } roles permissions { resource actions } unknownGrants
        status createdAt expiresAt lastUsedAt
      }
      total hasMore sorted
    }
  }`;
}

type ListedKey = Pick<
  ShownKey,
  | 'id'
  | 'name'
  | 'prefix'
  | 'person'
  | 'roles'
  | 'permissions'
  | 'unknownGrants'
  | 'status'
  | 'createdAt'
  | 'expiresAt'
  | 'lastUsedAt'
>;

interface KeyPage extends CountedKeys<ListedKey> {
  readonly sorted: boolean;
}

const PAGE_SIZE = 100;
const DAY_MS = 86_400_000;
const STATUSES: readonly KeyStatus[] = ['ACTIVE', 'DISABLED', 'EXPIRED'];
const ENDS = { '1d': 'within a day', '7d': 'within 7 days', '14d': 'within 14 days', '90d': 'within 90 days' } as const;
const USES = { never: 'never', '90d': 'not for 90 days' } as const;
/** Value in an address for keys that no other key created. */
const OPERATOR = 'operator';

/** Sortable columns, by their names in an address, with the order of a first click. */
const SORTS = {
  created: { by: 'CREATED', title: 'Created', isDescending: true },
  name: { by: 'NAME', title: 'Name', isDescending: false },
  'last-used': { by: 'LAST_USED', title: 'Last used', isDescending: true },
  ends: { by: 'EXPIRES', title: 'Expires', isDescending: false },
} as const;
type Sort = keyof typeof SORTS;

/** Filters and order of the list, as in its address. Empty for the defaults. */
interface ListRequest {
  readonly search: string;
  readonly status: string;
  readonly role: string;
  /** Owner, name of a key or person, or id of the key that created them. */
  readonly by: string;
  readonly ends: string;
  readonly used: string;
  readonly sort: string;
  readonly order: string;
  /** The number of the first key of the page, counted from 1. */
  readonly from: string;
  /** The filters of fields. */
  readonly [parameter: string]: string;
}

/** Messages after a change of keys, by the `done` field of the address. */
const DONE: Readonly<Record<string, string>> = {
  DISABLE: 'Keys disabled, with their child keys.',
  EXPIRE: 'Expiry set. Keys that expire earlier keep their expiry.',
};

export function addKeyList(pages: Pages): void {
  pages.get('keys', async (visit) => {
    const asked = askedIn(visit);
    try {
      const [page, roles] = await Promise.all([askPage(visit, asked), askRoles(visit)]);
      return await show(visit, asked, { page, roles });
    } catch (error) {
      if (!(error instanceof OperationFailed) || error.code === 'FORBIDDEN' || error.pageStatus >= 500) throw error;
      return show(visit, asked, { problem: error.message, roles: [] }, error.pageStatus);
    }
  });
}

function askedIn(visit: Visit): ListRequest {
  const given = (name: string) => visit.query(name) ?? '';
  const known = (name: string, values: readonly string[]) => values.find((value) => value === given(name)) ?? '';
  return {
    search: given('search'),
    status: known('status', STATUSES),
    role: given('role'),
    by: given('by'),
    ends: known('ends', Object.keys(ENDS)),
    used: known('used', Object.keys(USES)),
    sort: known('sort', Object.keys(SORTS)),
    order: known('order', ['up', 'down']),
    from: /^[1-9]\d{0,8}$/.exec(given('from'))?.[0] ?? '',
    ...Object.fromEntries(FIELD_FILTERS.map(({ parameter }) => [parameter, given(parameter)])),
  };
}

function sortOf({ sort, order }: ListRequest): { sort: Sort; isDescending: boolean } {
  const column = sort === '' ? 'created' : (sort as Sort);
  return { sort: column, isDescending: order === '' ? SORTS[column].isDescending : order === 'down' };
}

/** @throws OperationFailed */
async function askPage(visit: Visit, asked: ListRequest): Promise<KeyPage> {
  const { search, status, role, by, ends, used, from } = asked;
  const { sort, isDescending } = sortOf(asked);
  const isNewestFirst = sort === 'created' && isDescending;
  const isId = UUID.test(by);
  const until = ends === '' ? undefined : visit.now + Number.parseInt(ends, 10) * DAY_MS;
  const all: { readonly [Name in keyof typeof ARGUMENTS]?: unknown } = {
    search: search || undefined,
    roles: role === '' ? undefined : [role],
    status: status || undefined,
    owner: by === '' || by === OPERATOR || isId ? undefined : by,
    createdBy: isId ? by : undefined,
    createdByOperator: by === OPERATOR || undefined,
    expiresBefore: until && new Date(until).toISOString(),
    ...Object.fromEntries(
      FIELD_FILTERS.map(({ name, field, parameter }) => [
        name,
        asked[parameter] ? filterIn(field, asked[parameter]) : undefined,
      ]),
    ),
    unusedSince: used === '90d' ? new Date(visit.now - 90 * DAY_MS).toISOString() : undefined,
    neverUsed: used === 'never' || undefined,
    sort: isNewestFirst ? undefined : SORTS[sort].by,
    descending: isNewestFirst ? undefined : isDescending,
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  const names = given.map(([name]) => name as keyof typeof ARGUMENTS);
  const variables = { first: PAGE_SIZE, offset: from === '' ? 0 : Number(from) - 1, ...Object.fromEntries(given) };
  return visit.ask(queryWith(names), variables);
}

/** Reads the text of a filter. Sent as JSON, NaN would become null and select all keys. @throws OperationFailed */
function filterIn(field: (typeof FIELD_FILTERS)[number]['field'], text: string): unknown {
  const value = valueOfText(field, text);
  const [issue] = field.validate(value);
  if (issue) throw new OperationFailed([{ message: issue.message, extensions: { code: issue.code } }], 400);
  return value;
}

/**
 * The roles that the person is allowed to know: without PERMISSION:READ_ANY, the built-in ones and their own.
 * @throws OperationFailed
 */
async function askRoles(visit: Visit): Promise<readonly string[]> {
  if (!visit.may('PERMISSION:READ_ANY'))
    return [...new Set([...Object.keys(ROLE_MEANINGS), ...visit.principal.apiKey.roles])];
  const { roles } = await visit.ask<{ roles: { role: string }[] }>('{ permissions { roles { role } } }');
  return roles.map(({ role }) => role);
}

/** @param page undefined if the filters are invalid */
function show(
  visit: Visit,
  asked: ListRequest,
  { page, problem, roles }: { page?: KeyPage; problem?: string; roles: readonly string[] },
  status = 200,
): Promise<Response> {
  const { root } = visit;
  const done = DONE[visit.query('done') ?? ''];
  return visit.page(
    'Keys',
    <>
      {done !== undefined && <Done>{done}</Done>}
      <div class="head">
        <div class="title">
          <h1>Keys</h1>
          {page && <span class="count">{formatTotal(page)}</span>}
        </div>
        {visit.mayCreate && (
          <LinkButton kind="primary" to={`${root}keys/new`}>
            New key
          </LinkButton>
        )}
      </div>
      <FilterForm root={root} asked={asked} roles={roles} />
      {problem !== undefined && <Problem>{problem}</Problem>}
      {page && !page.sorted && (
        <p class="help" role="status">
          There are too many keys to sort, so the newest come first. Filter the list to sort it.
        </p>
      )}
      {page && page.keys.length === 0 && <NoKeys visit={visit} asked={asked} />}
      {page && page.keys.length > 0 && <KeyForm visit={visit} asked={asked} page={page} />}
    </>,
    status,
  );
}

function FilterForm({ root, asked, roles }: { root: string; asked: ListRequest; roles: readonly string[] }) {
  return (
    <form method="get" action={`${root}keys`} role="search" class="filter">
      <FilterField
        isWide
        label="Search"
        id="search"
        type="search"
        name="search"
        value={asked.search}
        placeholder="Name or description"
        data-shortcut="/"
      />
      <FilterChoice
        name="status"
        label="Status"
        none="Any"
        chosen={asked.status}
        options={STATUSES.map((status) => [status, status.toLowerCase()])}
      />
      <FilterChoice
        name="role"
        label="Role"
        none="Any"
        chosen={asked.role}
        options={roles.map((role) => [role, role])}
      />
      <FilterChoice name="ends" label="Expires" none="Any time" chosen={asked.ends} options={Object.entries(ENDS)} />
      <FilterChoice name="used" label="Used" none="Any" chosen={asked.used} options={Object.entries(USES)} />
      <FilterField label="Owner" name="by" value={asked.by} placeholder={`Team, person, key, ${OPERATOR}`} />
      {FIELD_FILTERS.map(({ field: { label, example }, parameter }) => (
        <FilterField label={label} name={parameter} value={asked[parameter]} placeholder={example} />
      ))}
      {asked.sort !== '' && <input type="hidden" name="sort" value={asked.sort} />}
      {asked.order !== '' && <input type="hidden" name="order" value={asked.order} />}
      <button>Search</button>
      {isNarrowed(asked) && (
        <LinkButton kind="quiet" to={withQuery(`${root}keys`, { sort: asked.sort, order: asked.order })}>
          Clear
        </LinkButton>
      )}
    </form>
  );
}

/** A page of keys that can be selected and changed together. */
function KeyForm({ visit, asked, page }: { visit: Visit; asked: ListRequest; page: KeyPage }) {
  const { root } = visit;
  const isPrevious = visit.principal.secret !== 'current';
  const mayNarrow = !isPrevious && visit.may('API_KEY:UPDATE_OWN');
  const mayDelete = !isPrevious && visit.may('API_KEY:DELETE_OWN');
  const isSelectable = mayNarrow || mayDelete;
  return (
    <form method="get" action={`${root}keys/selected`} data-selection>
      <KeyTable visit={visit} asked={asked} page={page} isSelectable={isSelectable} />
      <div class="foot">
        {isSelectable && (
          <div class="actions" role="group" aria-label="With the selected keys">
            <span class="faint" role="status" data-selected>
              Selected keys:
            </span>
            {mayNarrow && (
              <>
                <button name="change" value="DISABLE">
                  Disable…
                </button>
                <button name="change" value="EXPIRE">
                  Set expiry…
                </button>
              </>
            )}
            {mayDelete && (
              <button name="change" value="DELETE" class="danger">
                Delete…
              </button>
            )}
          </div>
        )}
        <Pager root={root} asked={asked} page={page} />
      </div>
    </form>
  );
}

function KeyTable({
  visit: { root, now },
  asked,
  page: { keys, sorted },
  isSelectable,
}: {
  visit: Visit;
  asked: ListRequest;
  page: KeyPage;
  isSelectable: boolean;
}) {
  const heading = (sort: Sort) => <SortedHeading root={root} asked={asked} sort={sort} isSorted={sorted} />;
  return (
    <table class="list keys">
      <thead>
        <tr>
          {isSelectable && (
            <th scope="col" class="select">
              <input type="checkbox" data-select-all aria-label="Select all on this page" hidden />
              <span class="hidden">Selected</span>
            </th>
          )}
          {heading('name')}
          <th scope="col">Status</th>
          <th scope="col">Permissions</th>
          {heading('last-used')}
          {heading('ends')}
          {heading('created')}
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr>
            {isSelectable && (
              <td class="select">
                <input type="checkbox" name="id" value={key.id} aria-label={`Select ${key.name}`} />
              </td>
            )}
            <th scope="row">
              <a href={`${root}keys/${key.id}`}>{key.name}</a>{' '}
              {key.person ? <PersonNote of={key.person} /> : <code class="faint">{key.prefix}</code>}
            </th>
            <td data-label="Status">
              <Status is={key.status} />
            </td>
            <td data-label="Permissions">
              <AccessLine roles={key.roles} permissions={permissionsOf(key.permissions)} />
              {key.unknownGrants.length > 0 && (
                <span class="faint" title={key.unknownGrants.join(', ')}>
                  {` and ${key.unknownGrants.length} no longer declared`}
                </span>
              )}
            </td>
            <td data-label="Last used">
              <Time at={key.lastUsedAt} now={now} />
            </td>
            <td data-label="Expires">
              <Time at={key.expiresAt} now={now} />
            </td>
            <td data-label="Created">
              <Time at={key.createdAt} now={now} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A heading that sorts by its column, or reverses the order if it already does. */
function SortedHeading({
  root,
  asked,
  sort,
  isSorted,
}: {
  root: string;
  asked: ListRequest;
  sort: Sort;
  isSorted: boolean;
}) {
  const { sort: present, isDescending } = isSorted ? sortOf(asked) : { sort: 'created', isDescending: true };
  const isThis = present === sort;
  const next = isThis ? !isDescending : SORTS[sort].isDescending;
  const order = next === SORTS[sort].isDescending ? '' : next ? 'down' : 'up';
  const href = withQuery(`${root}keys`, { ...asked, sort: sort === 'created' ? '' : sort, order, from: '' });
  return (
    <th scope="col" aria-sort={isThis ? (isDescending ? 'descending' : 'ascending') : undefined}>
      <a href={href}>
        {SORTS[sort].title}
        {isThis && <span aria-hidden="true">{isDescending ? ' ↓' : ' ↑'}</span>}
      </a>
    </th>
  );
}

/** The position of the page in the list, with links to the others. */
function Pager({ root, asked, page }: { root: string; asked: ListRequest; page: KeyPage }) {
  const first = asked.from === '' ? 1 : Number(asked.from);
  const last = first + page.keys.length - 1;
  const at = (from: number) => withQuery(`${root}keys`, { ...asked, from: from <= 1 ? '' : `${from}` });
  const lastPage = Math.floor((page.total - 1) / PAGE_SIZE) * PAGE_SIZE + 1;
  return (
    <nav class="pager" aria-label="Pages of keys">
      <span>{`${formatNumber(first)}–${formatNumber(last)} of ${formatTotal(page)}`}</span>
      {first > 1 && (
        <>
          <a href={at(1)}>First</a>
          <a href={at(first - PAGE_SIZE)} rel="prev">
            Previous
          </a>
        </>
      )}
      {last < page.total && (
        <>
          <a href={at(last + 1)} rel="next">
            Next
          </a>
          {!page.hasMore && <a href={at(lastPage)}>Last</a>}
        </>
      )}
      {last >= page.total && page.hasMore && <span class="faint">Filter the list to see more.</span>}
    </nav>
  );
}

function NoKeys({ visit, asked }: { visit: Visit; asked: ListRequest }): Child {
  if (isNarrowed(asked) || asked.from !== '')
    return (
      <Empty title={isNarrowed(asked) ? 'No keys match.' : 'There are no keys on this page.'}>
        <p>
          <a href={`${visit.root}keys`}>Show all keys</a>
        </p>
      </Empty>
    );
  return (
    <Empty title="No keys yet">
      <p>A key gives one script, pipeline or person the access it needs, and nothing more.</p>
    </Empty>
  );
}

function isNarrowed({ sort: _sort, order: _order, from: _from, ...filters }: ListRequest): boolean {
  return Object.values(filters).some((value) => value !== '');
}
