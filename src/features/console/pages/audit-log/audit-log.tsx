import { AUDIT_ACTIONS } from '../../../../keys/audit/index.ts';
import { OperationFailed } from '../../operations.ts';
import { AuditEntries } from '../../parts/audit-entries.tsx';
import { FilterChoice, FilterField } from '../../parts/field.tsx';
import { Empty, exactTime, LinkButton, Problem, wordsOfCode } from '../../parts/notice.tsx';
import type { Pages, Visit } from '../../visit.tsx';
import { addExport, askLog, type LogPage, MAX_EXPORTED } from './export.ts';
import { addressOf, fieldTime, type Filter, filterIn, type FilterTimes, timesOf } from './filter.ts';
import { askHistogram, type Histogram, HistogramPlot } from './histogram.tsx';

const CHAIN = '{ auditChain { number at newest broken reason } }';

/** Progress of verifying the chain: see `AuditChain` of the schema. */
interface Chain {
  readonly number: number | null;
  readonly at: string | null;
  readonly newest: number;
  readonly broken: number | null;
  readonly reason: string | null;
}

/** Contents of the page. */
interface ShownLog {
  readonly times: FilterTimes;
  readonly page: LogPage;
  readonly histogram: Histogram;
  readonly chain: Chain;
}

const PAGE_SIZE = 50;

export function addAuditLog(pages: Pages): void {
  pages.get('audit-log', async (visit) => {
    const filter = filterIn(visit);
    const times = timesOf(filter);
    if ('problem' in times) return show(visit, filter, undefined, times.problem);
    try {
      const [page, histogram, chain] = await Promise.all([
        askLog(visit, { filter, times }, PAGE_SIZE, visit.query('after')),
        askHistogram(visit, filter, times),
        visit.ask<Chain>(CHAIN),
      ]);
      return await show(visit, filter, { times, page, histogram, chain });
    } catch (error) {
      if (!(error instanceof OperationFailed) || error.code === 'FORBIDDEN') throw error;
      return show(visit, filter, undefined, error.message);
    }
  });
  addExport(pages);
}

/** @param log undefined if the filter has a problem */
function show(visit: Visit, filter: Filter, log: ShownLog | undefined, problem?: string): Promise<Response> {
  const { root, now } = visit;
  return visit.page(
    'Audit log',
    <>
      <div class="head">
        <h1>Audit log</h1>
        {log && <ExportLinks root={root} filter={filter} />}
      </div>
      {log && <ChainNotice chain={log.chain} now={now} />}
      {!visit.may('API_KEY:READ_ANY') && (
        <p class="help">
          You see entries about your own key and entries about no key. API_KEY:READ_ANY shows all entries.
        </p>
      )}
      <FilterForm root={root} filter={filter} />
      {problem !== undefined && <Problem>{problem}</Problem>}
      {log && <HistogramPlot root={root} filter={filter} times={log.times} histogram={log.histogram} />}
      {log && <Entries visit={visit} filter={filter} page={log.page} />}
    </>,
    log ? 200 : 400,
  );
}

function Entries({ visit, filter, page }: { visit: Visit; filter: Filter; page: LogPage }) {
  const { root, now } = visit;
  const isNarrowed = Object.values(filter).some((value) => value !== '');
  const { hasNextPage, endCursor } = page.pageInfo;
  return (
    <>
      {page.edges.length === 0 ? (
        <Empty title={isNarrowed ? 'No entries match' : 'No entries yet'}>
          {isNarrowed && (
            <p>
              <a href={`${root}audit-log`}>Clear the filters</a>
            </p>
          )}
        </Empty>
      ) : (
        <AuditEntries root={root} now={now} entries={page.edges.map(({ node }) => node)} />
      )}
      <nav class="pager" aria-label="Pages of the log">
        {visit.query('after') !== undefined && <a href={addressOf(root, filter)}>Newest</a>}
        {hasNextPage && endCursor !== null && <a href={addressOf(root, filter, { after: endCursor })}>Older</a>}
      </nav>
    </>
  );
}

/** Links to export the entries that match, including those on later pages. */
function ExportLinks({ root, filter }: { root: string; filter: Filter }) {
  const title = `Up to ${MAX_EXPORTED.toLocaleString('en')} of the newest matching entries`;
  return (
    <div class="actions">
      <LinkButton to={addressOf(root, filter, { format: 'csv' }, '/export')} title={title} download>
        Export CSV
      </LinkButton>
      <LinkButton to={addressOf(root, filter, { format: 'jsonl' }, '/export')} title={title} download>
        Export JSON lines
      </LinkButton>
    </div>
  );
}

/** Says how far the log has been verified, and whether it was changed. */
function ChainNotice({ chain: { number, at, newest, broken, reason }, now }: { chain: Chain; now: number }) {
  if (broken !== null)
    return (
      <Problem>
        <strong>The log was tampered with.</strong> Entry {broken.toLocaleString('en')} {reason}. Run{' '}
        <code>svc-api apikey log --verify</code> to check the whole log.
      </Problem>
    );
  if (newest === 0) return null;
  if (reason !== null)
    return <p class="chain">{`Not verified: entry ${((number ?? 0) + 1).toLocaleString('en')} ${reason}`}</p>;
  if (number === null || at === null) return <p class="chain">Verifying…</p>;
  return (
    <p class="chain verified">
      Verified up to <ClockTime at={at} now={now} />
      {number < newest && ` · entry ${number.toLocaleString('en')} of ${newest.toLocaleString('en')}, still verifying`}
    </p>
  );
}

/** `12:04 UTC`, with the date unless it is today. */
function ClockTime({ at, now }: { at: string; now: number }) {
  const [day, clock] = [at.slice(0, 10), `${at.slice(11, 16)} UTC`];
  const isToday = day === new Date(now).toISOString().slice(0, 10);
  return (
    <time datetime={at} title={exactTime(at)}>
      {isToday ? clock : `${day} ${clock}`}
    </time>
  );
}

const OUTCOMES = { DONE: 'Done', REFUSED: 'Refused' } as const;

function FilterForm({ root, filter }: { root: string; filter: Filter }) {
  const { since, until } = timesIn(filter);
  return (
    <form method="get" action={`${root}audit-log`} role="search" class="filter grid">
      <FilterField label="Key" name="key" value={filter.key} placeholder="Name or id" data-shortcut="/" />
      <FilterField label="By" name="actor" value={filter.actor} placeholder="Key or user" />
      <FilterChoice
        label="Action"
        name="action"
        none="All"
        chosen={filter.action}
        options={AUDIT_ACTIONS.map((action) => [action, wordsOfCode(action)])}
      />
      <FilterChoice
        label="Outcome"
        name="outcome"
        none="All"
        chosen={filter.outcome}
        options={Object.entries(OUTCOMES)}
      />
      <FilterField isWide label="From, UTC" type="datetime-local" name="since" value={since} />
      <FilterField isWide label="Before, UTC" type="datetime-local" name="until" value={until} />
      <div class="actions">
        <button>Filter</button>
        {Object.values(filter).some((value) => value !== '') && (
          <LinkButton kind="quiet" to={`${root}audit-log`}>
            Clear
          </LinkButton>
        )}
      </div>
    </form>
  );
}

/** The times of a filter as form fields need them; invalid times stay as entered. */
function timesIn(filter: Filter): { since: string; until: string } {
  const times = timesOf(filter);
  const textOf = (time: number | undefined) => (time === undefined ? '' : fieldTime(time));
  return 'problem' in times ? filter : { since: textOf(times.since), until: textOf(times.until) };
}
