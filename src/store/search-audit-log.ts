import type { AuditEntry, AuditQuery, AuditReader } from '../keys/audit/audit-entry.ts';
import type { Search } from './searches.ts';

/** A search that may read all entries reads so many at a time. */
const SLICE_ENTRIES = 5000;

/** The entries that match a query, in its order, slice by slice until there are enough. */
export async function* searchAuditLog(reader: AuditReader, query: AuditQuery): Search<AuditEntry[]> {
  const [head, start] = [await reader.head(), await reader.start()];
  let [after, before] = [
    Math.max(query.after ?? 0, start?.number ?? 0),
    Math.min(query.before ?? Infinity, (head?.number ?? 0) + 1),
  ];
  const found: AuditEntry[] = [];
  while (found.length < query.limit && after < before - 1) {
    const slice =
      query.order === 'newest'
        ? { after: Math.max(after, before - 1 - SLICE_ENTRIES), before }
        : { after, before: Math.min(before, after + 1 + SLICE_ENTRIES) };
    found.push(...(await reader.find({ ...query, ...slice, limit: query.limit - found.length })));
    if (query.order === 'newest') before = slice.after + 1;
    else after = slice.before - 1;
    yield;
  }
  return found;
}
