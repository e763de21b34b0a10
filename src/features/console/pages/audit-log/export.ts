import type { ServerResponse } from 'node:http';
import { csvLine } from '../../../../keys/basics/index.ts';
import { OperationFailed } from '../../operations.ts';
import { AUDITED_FIELDS, type AuditedEntry } from '../../parts/audit-entries.tsx';
import type { Pages, Visit } from '../../visit.tsx';
import {
  type Filter,
  FILTER_ARGUMENTS,
  FILTER_VARIABLES,
  filterIn,
  type FilterTimes,
  timesOf,
  variablesOf,
} from './filter.ts';

/** An entry in a file. The hash lets it be compared with the log. */
type ExportedEntry = AuditedEntry & { hash: string };

const LOG = `query Log($first: Int!, $after: String, ${FILTER_VARIABLES}, $since: DateTime, $until: DateTime) {
  auditLog(first: $first, after: $after, ${FILTER_ARGUMENTS}, since: $since, until: $until) {
    edges { node { ${AUDITED_FIELDS} hash } } pageInfo { hasNextPage endCursor }
  }
}`;

export interface LogPage {
  edges: { node: ExportedEntry }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

/** A page of the entries that match. @throws OperationFailed */
export function askLog(
  visit: Visit,
  { filter, times: { since, until } }: { filter: Filter; times: FilterTimes },
  first: number,
  after: string | undefined,
): Promise<LogPage> {
  return visit.ask(LOG, {
    first,
    after,
    ...variablesOf(filter),
    ...(since !== undefined && { since: new Date(since).toISOString() }),
    ...(until !== undefined && { until: new Date(until).toISOString() }),
  });
}

/** Maximum number of entries in a file, and entries read at a time. */
export const MAX_EXPORTED = 100_000;
const PAGE_SIZE = 500;

/** The names of the columns of a CSV file. */
const COLUMNS = 'number at actor_kind actor_id actor action key_id key address changes hash'.split(' ');

interface Format {
  readonly type: string;
  readonly head: string;
  readonly line: (entry: ExportedEntry) => string;
}

/** File formats of an export, by file extension. */
const FORMATS: Readonly<Record<string, Format>> = {
  jsonl: { type: 'application/jsonl', head: '', line: (entry) => `${JSON.stringify(withValues(entry))}\n` },
  csv: { type: 'text/csv; charset=utf-8; header=present', head: csvLine(COLUMNS), line: csvOf },
};

/** Adds the exports of matching entries. Each page is read while it is sent, with the permissions of the key. */
export function addExport(pages: Pages): void {
  pages.get('audit-log/export', async (visit) => {
    const format = visit.query('format') ?? '';
    if (!Object.hasOwn(FORMATS, format)) throw failed('Choose CSV or JSON lines.');
    const filter = filterIn(visit);
    const times = timesOf(filter);
    if ('problem' in times) throw failed(times.problem);
    // Read the first page now, so that a refusal is shown as a page and not as a broken file.
    const first = await askLog(visit, { filter, times }, PAGE_SIZE, undefined);
    const written = FORMATS[format]!;
    const name = `audit-log-${new Date(visit.now).toISOString().slice(0, 10)}.${format}`;
    return new Response(ReadableStream.from(bytesOf(visit, { filter, times }, first, written)), {
      headers: {
        'Content-Type': written.type,
        'Content-Disposition': `attachment; filename="${name}"`,
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        'Content-Security-Policy': "default-src 'none'; sandbox",
      },
    });
  });
}

/** Reads a page once the browser has received the one before. */
async function* bytesOf(
  visit: Visit,
  asked: { filter: Filter; times: FilterTimes },
  first: LogPage,
  { head, line }: Format,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  if (head !== '') yield encoder.encode(head);
  try {
    for (let [page, left] = [first, MAX_EXPORTED]; ;) {
      yield encoder.encode(page.edges.map(({ node }) => line(node)).join(''));
      left -= page.edges.length;
      const { hasNextPage, endCursor } = page.pageInfo;
      if (!hasNextPage || endCursor === null || left <= 0) return;
      page = await askLog(visit, asked, Math.min(PAGE_SIZE, left), endCursor);
    }
  } catch (error) {
    if (!breakOff(visit)) throw error;
  }
}

/** An entry with parsed values instead of JSON texts. */
function withValues(entry: ExportedEntry): object {
  const changes = entry.changes.map(({ field, before, after }) => ({
    field,
    before: JSON.parse(before ?? 'null') as unknown,
    after: JSON.parse(after ?? 'null') as unknown,
  }));
  return { ...entry, changes };
}

function csvOf({ number, at, actor, action, keyId, keyName, address, changes, hash }: ExportedEntry): string {
  const what = changes.length > 0 ? JSON.stringify(changes) : null;
  return csvLine([`${number}`, at, actor.kind, actor.keyId, actor.name, action, keyId, keyName, address, what, hash]);
}

function failed(message: string): OperationFailed {
  return new OperationFailed([{ message, extensions: { code: 'INPUT_INVALID' } }], 400);
}

/**
 * Cuts the connection, so that the browser knows that a part is missing. An error would make the file look complete.
 * @returns whether there was a connection to cut
 */
function breakOff({ c }: Visit): boolean {
  const { outgoing } = (c.env ?? {}) as { outgoing?: ServerResponse };
  outgoing?.destroy();
  return outgoing !== undefined;
}
