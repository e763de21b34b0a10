/**
 * What a connection to an SQLite store is told once the tables are there: its statements do not see the keys of an
 * import that has not inserted all of them yet. What changes keys names the table, `main.api_keys`, as triggers do.
 */
export const VISIBLE_KEYS = `create temp view if not exists api_keys as
  select stored.rowid, stored.* from main.api_keys as stored
  where stored.rowid < coalesce((select min(first) from main.pending_rows), ${Number.MAX_SAFE_INTEGER})
    or not exists (select 1 from main.pending_rows where stored.rowid between first and last)`;
