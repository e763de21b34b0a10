import type { Kysely } from 'kysely';
import { checkAuditLog } from '../../keys/audit/index.ts';
import { KEYS_IN_USE } from '../../keys/changes/index.ts';
import { isAdded } from '../../keys/added/index.ts';
import { digestPerson, FEDERATION, readFieldsText } from '../../keys/key/index.ts';
import { HISTORY_MS, MAX_WAITING, type NoticeStatus } from '../../keys/feed/index.ts';
import {
  FIRST_MS,
  formatList,
  formatTime,
  isTime,
  LAST_MS,
  MAX_SKEW_MS,
  printable,
  UNIT_MS,
} from '../../keys/basics/index.ts';
import { isBehind, type KnownEdge } from '../../keys/repository/index.ts';
import type { Connection } from '../connection.ts';
import { createKeyRepository } from '../key-repository.ts';
import { portsOf } from '../port-of-store.ts';
import { findNoticeStatus } from '../notices.ts';
import { TIME_COLUMNS } from '../rows.ts';
import type { Tables } from '../tables.ts';
import { clockOf } from '../limit-store.ts';
import { checked, failure, type Finding, type InspectOptions, ok, warning } from './finding.ts';

/** How many of the newest entries are searched for jumps of the clock. */
const ENTRIES = 1000;
const ONE_SOURCE = 'Let the machines of all servers follow one source of time.';
/** How many keys are read at once. */
const PAGE_KEYS = 1000;
/** How many keys or entries are named, at most. */
const MAX_KEYS = 100;

/** Checks the contents of a store. @param list lists the edges that follow it */
export async function inspectContents(
  connection: Connection,
  options: InspectOptions,
  list: () => Promise<KnownEdge[]>,
): Promise<Finding[]> {
  const checks = [
    ['AUDIT_LOG', inspectAuditLog],
    ['CLOCK', inspectClock],
    ['NOTICES', inspectNotices],
    ['CONFIG', inspectObserving],
    ['FEDERATION', inspectFederation],
    ['EDGES', inspectEdges],
    ['PLUGINS', inspectPlugins],
  ] as const;
  const findings: Finding[] = [];
  for (const [check, inspect] of checks)
    findings.push(...(await checked(check, () => inspect(connection, options, list))));
  return findings;
}

/** Checks that the audit log is intact, and that the keys match it. */
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
  return findings.length > 0 ? findings : [ok('AUDIT_LOG', `The audit log is whole: ${result.entries} entries.`)];
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

/** Names plugins that are no longer installed but have values in the store. */
async function inspectPlugins(connection: Connection): Promise<Finding[]> {
  const gone = new Map<string, { fields: Set<string>; keys: number }>();
  for (let after: string | undefined; ;) {
    const from = after;
    const rows = await connection.run((db) => {
      const page = db.selectFrom('api_keys').select(['id', 'fields']).orderBy('id').limit(PAGE_KEYS);
      return (from === undefined ? page : page.where('id', '>', from)).execute();
    });
    for (const { fields } of rows) {
      const ids = Object.keys(readFieldsText(fields, true)?.unknownFields ?? {}).filter((id) => id.includes('.'));
      const ofPlugins = Map.groupBy(ids, (id) => id.slice(0, id.lastIndexOf('.')));
      for (const [name, values] of ofPlugins) {
        if (isAdded({ name })) continue;
        const found = gone.get(name) ?? { fields: new Set(), keys: 0 };
        for (const id of values) found.fields.add(id.slice(name.length + 1));
        gone.set(name, { ...found, keys: found.keys + 1 });
      }
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_KEYS) break;
    after = last.id;
  }
  return Array.from(gone, ([name, { fields, keys }]) =>
    warning(
      'PLUGINS',
      `The plugin ${printable(name, 200)} is not installed. ${keys === 1 ? '1 key has a value' : `${keys} keys have values`} ` +
        `of its fields: ${printable(formatList([...fields].toSorted()), 200)}.`,
      `Install it again to see them: svc-api plugins install ${printable(name, 200)}.`,
    ),
  );
}

/** Checks that the clock of this machine is not behind the audit log, and did not run back between entries. */
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
  const now = clock(); // After all that was just read.
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
    : [ok('CLOCK', `The clock says ${formatTime(now)}, after all that the store has.`)];
}

/** After this time in observe mode, a route gets a reminder. */
const OBSERVING_MS = 30 * UNIT_MS.d;
const PAGE_ENTRIES = 500;

/** Finds routes that have long been letting requests pass that they would refuse. */
async function inspectObserving(connection: Connection, { clock, observing = [] }: InspectOptions): Promise<Finding[]> {
  const { auditLog } = createKeyRepository(connection);
  const [recent, long] = [new Set(observing), new Set<string>()];
  for (let before: number | undefined; recent.size > 0;) {
    const place = before === undefined ? {} : { before };
    const until = clock() - OBSERVING_MS;
    const entries = await auditLog.find({ action: 'OBSERVE', until, order: 'newest', limit: PAGE_ENTRIES, ...place });
    for (const { after } of entries) if (recent.delete(String(after?.['route']))) long.add(String(after!['route']));
    if (entries.length < PAGE_ENTRIES) break;
    before = entries.at(-1)!.number;
  }
  return [...long].map((route) =>
    warning(
      'CONFIG',
      `The route ${printable(route, 300)} observes for more than 30 days: it lets pass what it would refuse.`,
      'See "svc-api apikey routes observed", grant what is missing, and remove "observe".',
    ),
  );
}

/** After this time, a waiting notice is a problem. */
const LATE_MS = 10 * UNIT_MS.m;
/** Servers with a webhook look through the store every few seconds; after this time, there is none. */
const SEEN_MS = UNIT_MS.m;

/** Checks the notices of a store; no finding if notices were never collected. */
async function inspectNotices(connection: Connection, { clock, isWithoutWebhook }: InspectOptions): Promise<Finding[]> {
  const status = await connection.run(findNoticeStatus);
  const now = clock();
  if (!status) return [];
  // Servers may use another configuration than this one.
  if (isWithoutWebhook && status.seenAt < now - SEEN_MS) return inspectLeft(status, now);
  const { waiting, oldestAt, behind, deliveredAt, failedAt, failure, gone } = status;
  const last = failedAt === null ? '' : `; the last failure, at ${formatTime(failedAt)}: ${failure}`;
  if (gone !== null)
    return [
      warning(
        'NOTICES',
        `The webhook wants no notices any more${last}.`,
        'Change its address under "notices", or send SIGHUP to the servers once it wants them again.',
      ),
    ];
  const counts = `${waiting} notices wait, of at most ${MAX_WAITING}`;
  const isLate = oldestAt !== null && oldestAt < now - LATE_MS;
  if (isLate || (failedAt ?? 0) > (deliveredAt ?? 0))
    return [warning('NOTICES', `${counts}${last}.`, 'See whether a server runs, and what the webhook answers.')];
  return [ok('NOTICES', `${counts}; ${behind} entries of the audit log were not looked at.`)];
}

/** Reports notices that still wait after the webhook was removed, which is not a problem. */
function inspectLeft({ waiting, seenAt }: NoticeStatus, now: number): Finding[] {
  if (waiting === 0) return [];
  const until = seenAt + HISTORY_MS;
  const left = `${waiting} ${waiting === 1 ? 'notice waits' : 'notices wait'} from when there was a webhook`;
  const end =
    until > now
      ? `One that is named by ${formatTime(until)} gets what waits, and what has happened since; a later one nothing.`
      : 'One that is named gets nothing of it: that was too long ago.';
  return [ok('NOTICES', `${left}, until ${formatTime(seenAt)}. ${end}`)];
}

/** After this time without use, a rule may no longer be needed. */
const UNUSED_MS = 90 * UNIT_MS.d;

/** Finds rules of token exchange that are not used, or no longer used. */
async function inspectFederation(
  connection: Connection,
  { clock, rules = [], features }: InspectOptions,
): Promise<Finding[]> {
  if (rules.length === 0) return [];
  const repository = createKeyRepository(connection, undefined, portsOf(features));
  const ids = new Map<string, string>();
  for (const rule of rules) {
    const key = (await repository.findByDigest(digestPerson({ issuer: FEDERATION, subject: rule.name })))?.key;
    if (key) ids.set(rule.name, key.id);
  }
  const used = await repository.port(KEYS_IN_USE).find([...ids.values()], clock() - UNUSED_MS);
  const unused = [...ids].filter(([, id]) => !used.has(id)).map(([name]) => `"${printable(name)}"`);
  const never = rules.length - ids.size;
  if (unused.length === 0)
    return [ok('FEDERATION', `${rules.length} rules exchange tokens, of which ${never} never did.`)];
  const what = unused.length === 1 ? '1 rule was' : `${unused.length} rules were`;
  const message = `${what} not used for 90 days: ${formatList(unused.slice(0, MAX_KEYS))}.`;
  return [warning('FEDERATION', message, 'Remove from "federation" what nobody needs any more.')];
}

/** How long before its key expires an edge gets a warning. */
const EXPIRING_MS = 7 * UNIT_MS.d;

/** Checks that the edges of the store answer requests, and will keep doing so. No finding without edges. */
async function inspectEdges(
  connection: Connection,
  { clock }: InspectOptions,
  list: () => Promise<KnownEdge[]>,
): Promise<Finding[]> {
  const edges = await list();
  if (edges.length === 0) return [];
  const behind = edges
    .filter(isBehind)
    .map(({ name, lagMs }) =>
      warning(
        'EDGES',
        `The edge "${printable(name)}" refuses all keys: it took the last changes ${Math.round(lagMs / 1000)} s ago.`,
        'Look whether it runs and reaches a server. An edge that has ended is forgotten after 10 minutes.',
      ),
    );
  const ids = [...new Set(edges.map(({ key }) => key.id))];
  const expiring = await connection.run((db) =>
    db
      .selectFrom('api_keys')
      .select(['name', 'expires_at'])
      .where('id', 'in', ids)
      .where('expires_at', '<', clock() + EXPIRING_MS)
      .orderBy('name')
      .execute(),
  );
  const ending = expiring.map(({ name, expires_at: time }) =>
    warning(
      'EDGES',
      `The key "${printable(name)}", by which edges follow, expires at ${formatTime(Number(time))}.`,
      'Let it expire later, or give the edges another one.',
    ),
  );
  const found = [...behind, ...ending];
  const verb = edges.length === 1 ? '1 edge follows, and answers.' : `${edges.length} edges follow, and answer.`;
  return found.length > 0 ? found : [ok('EDGES', verb)];
}
