import type { Kysely } from 'kysely';
import { checkAuditLog } from '../../../keys/audit/index.ts';
import { isAdded } from '../../../keys/added/index.ts';
import {
  FIRST_MS,
  formatList,
  formatTime,
  isTime,
  LAST_MS,
  MAX_SKEW_MS,
  printable,
} from '../../../keys/basics/index.ts';
import { readFieldsText, valuesOfMissing } from '../../../keys/key/index.ts';
import type { Connection, Tables } from '../../../store/index.ts';
import {
  clockOf,
  createKeyRepository,
  goneFrom,
  readRecords,
  storeOver,
  tableNamesOf,
  TIME_COLUMNS,
} from '../../../store/whole-store.ts';
import { checked, failure, type Finding, type InspectOptions, ok, warning } from './finding.ts';

/** How many of the newest entries are checked for jumps of the clock. */
const ENTRIES = 1000;
const ONE_SOURCE = 'Let the machines of all servers follow one source of time.';
/** How many keys are read at once. */
const PAGE_KEYS = 1000;
/** The maximum of keys or entries in a list. */
const MAX_KEYS = 100;

/** Checks the contents of a store, but not its schema. */
export async function inspectContents(connection: Connection, options: InspectOptions): Promise<Finding[]> {
  const checks = [
    ['AUDIT_LOG', inspectAuditLog],
    ['CLOCK', inspectClock],
    ['PLUGINS', inspectPlugins],
  ] as const;
  const findings: Finding[] = [];
  for (const [check, inspect] of checks) findings.push(...(await checked(check, () => inspect(connection, options))));
  const store = storeOver(connection, { features: options.features });
  return [...findings, ...((await options.checkFeatures?.(store)) ?? [])];
}

/** Checks that the audit log is intact and agrees with the keys. */
async function inspectAuditLog(
  connection: Connection,
  { auditKey, onVerified: onProgress }: InspectOptions,
): Promise<Finding[]> {
  const repository = createKeyRepository(connection, auditKey);
  const { verification: result, comparison } = await checkAuditLog(repository.auditLog, repository, { onProgress });
  if ('broken' in result)
    return [
      failure(
        'AUDIT_LOG',
        `The audit log is broken: entry ${result.broken} ${result.reason}.`,
        'Find out who could write to the store, and compare its keys with a backup.',
      ),
    ];
  if ('unverifiable' in result)
    return [
      warning(
        'AUDIT_LOG',
        `The audit log cannot be verified: entry ${result.unverifiable} ${result.reason}.`,
        'Set SVC_API_AUDIT_KEY as the servers have it.',
      ),
    ];
  const { differences } = comparison!;
  const noTimes = differences.length > 0 ? await connection.run(findNoTimes) : new Map<string, string>();
  const findings = differences.map(({ name, id, reason }) =>
    failure(
      'AUDIT_LOG',
      `The key "${printable(name, 100)}" (${id}) ${noTimes.get(id) ?? reason}.`,
      'Delete it, or restore it from a backup.',
    ),
  );
  return findings.length > 0
    ? findings
    : [ok('AUDIT_LOG', `The audit log is whole: ${result.entries === 1 ? '1 entry' : `${result.entries} entries`}.`)];
}

/** Keys with invalid timestamps, by id. */
async function findNoTimes(db: Kysely<Tables>): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['id', ...TIME_COLUMNS])
    .where((row) => row.or(TIME_COLUMNS.flatMap((column) => [row(column, '<', FIRST_MS), row(column, '>', LAST_MS)])))
    .limit(MAX_KEYS)
    .execute();
  return new Map(
    rows.map((row) => {
      const column = TIME_COLUMNS.find((name) => row[name] !== null && !isTime(Number(row[name])))!;
      return [row.id, `is damaged: its ${column} is ${printable(String(row[column]), 50)}, which is not a time`];
    }),
  );
}

/** Names plugins that are no longer installed but have values or tables in the store. */
async function inspectPlugins(connection: Connection): Promise<Finding[]> {
  const gone = new Map<string, { fields: Set<string>; keys: number; tables: string[] }>();
  for (const record of goneFrom(await connection.run(readRecords), connection.features))
    gone.set(record.feature, { fields: new Set(), keys: 0, tables: tableNamesOf([record]) });
  for (let after: string | undefined; ;) {
    const from = after;
    const rows = await connection.run((db) => {
      const page = db.selectFrom('api_keys').select(['id', 'fields']).orderBy('id').limit(PAGE_KEYS);
      return (from === undefined ? page : page.where('id', '>', from)).execute();
    });
    for (const { fields } of rows) {
      const ids = Object.keys(valuesOfMissing(readFieldsText(fields, true)?.unknownFields));
      const ofPlugins = Map.groupBy(ids, (id) => id.slice(0, id.lastIndexOf('.')));
      for (const [name, values] of ofPlugins) {
        if (isAdded({ name })) continue;
        const found = gone.get(name) ?? { fields: new Set(), keys: 0, tables: [] };
        for (const id of values) found.fields.add(id.slice(name.length + 1));
        gone.set(name, { ...found, keys: found.keys + 1 });
      }
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_KEYS) break;
    after = last.id;
  }
  return Array.from(gone, ([name, { fields, keys, tables }]) => {
    const shown = (names: readonly string[]) => printable(formatList(names.toSorted()), 200);
    const having = keys === 1 ? '1 key has a value' : `${keys} keys have values`;
    const parts = [
      `The plugin ${printable(name, 200)} is not installed.`,
      ...(keys > 0 ? [`${having} of its fields: ${shown([...fields])}.`] : []),
      ...(tables.length > 0 ? [`The key store keeps its tables: ${shown(tables)}.`] : []),
    ];
    const remedy = `Install it again to use them: svc-api plugins install ${printable(name, 200)}.`;
    return warning('PLUGINS', parts.join(' '), remedy);
  });
}

/** Checks that this machine's clock is not behind the audit log, and that times in the log do not go back. */
async function inspectClock(connection: Connection, { clock }: InspectOptions): Promise<Finding[]> {
  const entries = await createKeyRepository(connection).auditLog.find({ order: 'newest', limit: ENTRIES });
  const noTimes = entries.filter(({ at }) => !isTime(at)).slice(0, MAX_KEYS);
  if (noTimes.length > 0)
    return noTimes.map(({ number, at }) =>
      failure(
        'CLOCK',
        `Entry ${number} of the audit log is of the time ${at}, which is none.`,
        'See what AUDIT_LOG found.',
      ),
    );
  const findings: Finding[] = [];
  const now = clock(); // Read after the entries.
  const newest = entries[0]?.at ?? 0;
  if (now < newest - MAX_SKEW_MS)
    findings.push(
      failure(
        'CLOCK',
        `The clock says ${formatTime(now)}, and the newest entry of the audit log is of ${formatTime(newest)}.`,
        'Set the clock. If it is right, start servers with --accept-clock until the log has a newer entry.',
      ),
    );
  const server = connection.dialect === 'postgres' ? await connection.run(clockOf('postgres')) : now;
  if (Math.abs(server - now) > MAX_SKEW_MS)
    findings.push(
      warning(
        'CLOCK',
        `The clock of this machine, by which keys expire, says ${formatTime(now)}, and that of the database server, by ` +
          `which requests are counted, ${formatTime(server)}.`,
        ONE_SOURCE,
      ),
    );
  const jump = entries.findIndex((entry, index) => entry.at < (entries[index + 1]?.at ?? entry.at) - MAX_SKEW_MS);
  if (jump >= 0) {
    const [after, before] = [entries[jump]!, entries[jump + 1]!];
    findings.push(
      warning(
        'CLOCK',
        `The clock ran back between the entries ${before.number} (${formatTime(before.at)}) and ${after.number} ` +
          `(${formatTime(after.at)}) of the audit log.`,
        ONE_SOURCE,
      ),
    );
  }
  return findings.length > 0
    ? findings
    : [ok('CLOCK', `The clock says ${formatTime(now)}, which is later than every time in the store.`)];
}
