import { AUDIT_ACTIONS } from '../../keys/audit/index.ts';
import { OperationFailed } from '../operations.ts';
import type { Pages, Visit } from '../visit.tsx';
import { AUDITED_FIELDS, type AuditedEntry, AuditEntries, wordsOf } from '../parts/audit-entries.tsx';
import { Empty, Problem } from '../parts/notice.tsx';

const QUERY = `query Log($first: Int!, $after: String, $key: String, $actor: String, $action: AuditAction,
  $since: DateTime, $until: DateTime) {
  auditLog(first: $first, after: $after, apiKey: $key, actor: $actor, action: $action, since: $since, until: $until) {
    edges { node { ${AUDITED_FIELDS} } }
    pageInfo { hasNextPage endCursor }
  }
}`;

interface Answer {
  auditLog: { edges: { node: AuditedEntry }[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
}

/** What the log is narrowed to, as the form has it. Empty where it is not. */
interface Filter {
  readonly key: string;
  readonly actor: string;
  readonly action: string;
  /** Days, such as `2030-01-31`, in UTC. */
  readonly since: string;
  readonly until: string;
}

const PAGE_SIZE = 50;
const DAY_MS = 86_400_000;

export function addAuditLog(pages: Pages): void {
  pages.get('audit-log', async (visit) => {
    const filter = filterIn(visit);
    try {
      const { auditLog } = await visit.ask<Answer>(QUERY, {
        first: PAGE_SIZE,
        after: visit.query('after'),
        ...variablesOf(filter),
      });
      return await visit.page('Audit log', <AuditLog visit={visit} filter={filter} log={auditLog} />);
    } catch (error) {
      if (!(error instanceof OperationFailed) || error.code === 'FORBIDDEN') throw error;
      return visit.page('Audit log', <AuditLog visit={visit} filter={filter} problem={error.message} />, 400);
    }
  });
}

function filterIn(visit: Visit): Filter {
  const given = (name: string) => visit.query(name) ?? '';
  return {
    key: given('key'),
    actor: given('actor'),
    action: AUDIT_ACTIONS.find((action) => action === given('action')) ?? '',
    since: given('since'),
    until: given('until'),
  };
}

function variablesOf({ since, until, ...others }: Filter): object {
  const set = Object.entries(others).filter(([, value]) => value !== '');
  const end = Date.parse(`${until}T00:00:00Z`) + DAY_MS;
  return {
    ...Object.fromEntries(set),
    ...(since !== '' && { since: `${since}T00:00:00Z` }),
    // The day that is given is the last one.
    ...(until !== '' && { until: Number.isNaN(end) ? until : new Date(end).toISOString() }),
  };
}

function AuditLog({
  visit,
  filter,
  log,
  problem,
}: {
  visit: Visit;
  filter: Filter;
  log?: Answer['auditLog'];
  problem?: string;
}) {
  const isNarrowed = Object.values(filter).some((value) => value !== '');
  return (
    <>
      <div class="head">
        <h1>Audit log</h1>
      </div>
      <FilterForm root={visit.root} filter={filter} />
      {problem !== undefined && <Problem>{problem}</Problem>}
      {log?.edges.length === 0 && (
        <Empty title={isNarrowed ? 'No entry matches.' : 'There is nothing in the log yet.'}>
          {isNarrowed && (
            <p>
              <a href={`${visit.root}audit-log`}>Show all entries</a>
            </p>
          )}
        </Empty>
      )}
      {log && log.edges.length > 0 && (
        <AuditEntries root={visit.root} now={visit.now} entries={log.edges.map(({ node }) => node)} />
      )}
      <nav class="pager" aria-label="Pages of the log">
        {visit.query('after') !== undefined && <a href={addressOf(visit.root, filter)}>Newest</a>}
        {log?.pageInfo.hasNextPage && <a href={addressOf(visit.root, filter, log.pageInfo.endCursor)}>Older</a>}
      </nav>
    </>
  );
}

function FilterForm({ root, filter }: { root: string; filter: Filter }) {
  return (
    <form method="get" action={`${root}audit-log`} role="search" class="filter">
      <label>
        <span>Key</span>
        <input name="key" value={filter.key} placeholder="Name or id" data-shortcut="/" />
      </label>
      <label>
        <span>By</span>
        <input name="actor" value={filter.actor} placeholder="Key or user" />
      </label>
      <label>
        <span>What</span>
        <select name="action">
          <option value="">Anything</option>
          {AUDIT_ACTIONS.map((action) => (
            <option value={action} selected={filter.action === action}>
              {wordsOf(action)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>From</span>
        <input type="date" name="since" value={filter.since} />
      </label>
      <label>
        <span>To</span>
        <input type="date" name="until" value={filter.until} />
      </label>
      <button>Search</button>
    </form>
  );
}

function addressOf(root: string, filter: Filter, after: string | null = null): string {
  const given = Object.entries({ ...filter, after: after ?? '' }).filter(([, value]) => value !== '');
  return `${root}audit-log${given.length > 0 ? `?${new URLSearchParams(given).toString()}` : ''}`;
}
