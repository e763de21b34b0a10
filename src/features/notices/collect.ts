import type { AuditEntry, AuditValues } from '../../keys/audit/index.ts';
import { declarePort, formatTime, UNIT_MS } from '../../keys/basics/index.ts';
import type { ApiKey, OutcomeCounts } from '../../keys/key/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import { HISTORY_MS, type Notice, noticeOf, type NoticeType, type WaitingNotice } from './notice.ts';

/** How many days before its expiry a notice about a key is sent; 0 is the expiry itself. */
const THRESHOLD_DAYS = [0, 1, 3, 14] as const;

/** How far keys were searched for expiries. */
interface EndingsPosition {
  /** All keys that expire up to this time are done, in milliseconds since 1970. */
  until: number;
  /** The position of an unfinished search: its end, its threshold, and the last key. */
  next?: { to: number; threshold: number; after?: EndPosition | undefined } | undefined;
}

/** A key in the order of expiry. */
interface EndPosition {
  expiresAt: number;
  id: string;
}

/** Keys that expire after one time and up to another, in the order of expiry and id. */
export interface EndsQuery {
  /** In milliseconds since 1970, excluded. */
  from: number;
  /** Included. */
  to: number;
  after: EndPosition | undefined;
  limit: number;
}

export type EndingKey = ApiKey & { expiresAt: number };

/** The range of expiries that cross a threshold of days between two times. */
function endsBetween(passed: { until: number; to: number }, threshold: number): { from: number; to: number } {
  const ahead = THRESHOLD_DAYS[threshold]! * UNIT_MS.d;
  return { from: passed.until + ahead, to: passed.to + ahead };
}

/**
 * The notice that a key crosses a threshold; undefined if it is no longer news: a later threshold was crossed by then
 * as well, or the key was made after crossing this one.
 */
function endingNotice(key: EndingKey, threshold: number, to: number): Notice | undefined {
  const { id, name, publicId, expiresAt, createdAt, createdBy, disabledAt, rotation } = key;
  const days = THRESHOLD_DAYS[threshold]!;
  const at = expiresAt - days * UNIT_MS.d;
  const nearer = THRESHOLD_DAYS[threshold - 1];
  // An application that refreshes its secrets moves the expiry by an hour each time.
  const isRefreshed = rotation !== null && expiresAt - rotation.startedAt <= UNIT_MS.h;
  if (isRefreshed && days > 0) return undefined;
  if (createdAt >= at || (nearer !== undefined && expiresAt - nearer * UNIT_MS.d <= to)) return undefined;
  // The key is refused already.
  if (key.damaged || (disabledAt !== null && days > 0)) return undefined;
  const data = { id, name, prefix: prefixOf(publicId), createdBy, expiresAt: formatTime(expiresAt) };
  return noticeOf(days === 0 ? 'key.ended' : 'key.ending', {
    event: [id, expiresAt, days],
    at,
    data: days === 0 ? data : { ...data, days },
  });
}

/** The most roles, and the most permissions, that a notice names. */
const MAX_NAMED = 100;
/** The latest valid time (ECMA-262, section 21.4.1.1). A damaged entry may have a later one. */
const MAX_TIME_MS = 8.64e15;

/** The notice for an entry of the audit log; undefined if no event type covers the entry. */
function noticeOfEntry(entry: AuditEntry): Notice | undefined {
  const type = typeOf(entry);
  if (!type || !entry.apiKey) return undefined;
  const { number, at, actor, action, apiKey: key, before, after, hash } = entry;
  const data = {
    ...key,
    ...dataOf(type, before, after),
    actor,
    action,
    entry: number,
  };
  // A damaged time becomes 0: throwing would block all other notices.
  return noticeOf(type, { event: [hash], at: Math.abs(at) <= MAX_TIME_MS ? at : 0, data });
}

function dataOf(type: NoticeType, before: AuditValues | null, after: AuditValues | null): object {
  if (type === 'key.leaked') return { secret: after?.['secret'], place: after?.['place'] };
  return type === 'key.reused' ? { client: after?.['client'] } : fieldsIn(after ?? before);
}

function typeOf({ action, before }: AuditEntry): NoticeType | undefined {
  switch (action) {
    case 'CREATE':
    case 'IMPORT':
      return 'key.created';
    case 'RESTORE':
      // A restored key existed before; the former state of a damaged key is unknown.
      return before === null ? 'key.created' : undefined;
    case 'DELETE':
      return 'key.deleted';
    case 'LEAK':
      return 'key.leaked';
    case 'CONSENT_REPLAY':
      return 'key.reused';
    default:
      return undefined;
  }
}

function fieldsIn(values: AuditValues | null): object {
  const { prefix = null, roles, permissions, createdBy = null, expiresAt = null } = values ?? {};
  return { prefix, roles: some(roles), permissions: some(permissions), createdBy, expiresAt };
}

function some(list: unknown): unknown[] {
  return Array.isArray(list) ? list.slice(0, MAX_NAMED) : [];
}

/**
 * The most keys with frequent refusals that get a notice within an hour, since holders of old secrets can cause any
 * number.
 */
export const MAX_REFUSED_KEYS = 100;
/** The longest delay with which requests are counted. */
const LATE_MS = UNIT_MS.m;

/** The keys that got a notice about refusals within an hour. */
interface NoticedRefusals {
  /** Since 1970. */
  hour: number;
  ids: readonly string[];
}

/** The refused requests of a key within an hour. */
export interface RefusedKey {
  key: ApiKey;
  counts: Omit<OutcomeCounts, 'accepted'>;
}

/** The hour to look at, since 1970. Counts that arrive late still belong to the previous one. */
export function refusalHour(now: number): number {
  return Math.floor((now - LATE_MS) / UNIT_MS.h);
}

function refusalNotice({ key, counts }: RefusedKey, hour: number, now: number): Notice {
  const { id, name, publicId, createdBy } = key;
  const { forbidden, limited, refused } = counts;
  const since = formatTime(hour * UNIT_MS.h);
  const data = { id, name, prefix: prefixOf(publicId), createdBy, since, forbidden, limited, refused };
  return noticeOf('key.refused_often', { event: [id, hour], at: now, data });
}

/** The most waiting notices. Once reached, collecting pauses, and the audit log keeps the events until then. */
export const MAX_WAITING = 10_000;
/** How many entries, or keys, one transaction processes. */
const PIECE = 500;
/** How long after its time a change of a key can still be committed: more recent expiries are not looked at yet. */
const LAG_MS = 15 * UNIT_MS.s;

/** Options of `collectNotices`. */
interface CollectOptions {
  events: readonly NoticeType[];
  /** Identifies the webhook. */
  endpoint: string;
  /** Milliseconds since 1970. */
  now: number;
  /** Keys that were refused often within `refusalHour`. */
  refused?: readonly RefusedKey[];
}

/** The result of a transaction that collects notices. */
export interface CollectionResult {
  /** True if there is more to collect now. */
  more: boolean;
  /** True if the webhook refuses further notices. */
  isGone: boolean;
  /** True if the queue is full. */
  isFull: boolean;
}

/** Collects, in one transaction, notices of the events since the last call, and queues them for delivery. */
export async function collectNotices(writer: NoticeWriter, options: CollectOptions): Promise<CollectionResult> {
  const { events, endpoint, now } = options;
  const known = writer.state;
  const state = known && known.seenAt > now - HISTORY_MS ? known : await beginning(writer, known, now);
  const isGone = state.gone === endpoint;
  const room = isGone ? MAX_WAITING : MAX_WAITING - (await writer.countWaiting());
  if (room < PIECE) {
    await writer.setState({ ...state, seenAt: now });
    return { more: false, isGone, isFull: true };
  }
  const log = await fromLog(writer, state.logNumber);
  const ends = await fromEnds(writer, state.endings, now - LAG_MS);
  const often = fromRefusals(state, options);
  const notices = [...log.notices, ...ends.notices, ...often.notices].filter(({ type }) =>
    (events as readonly string[]).includes(type),
  );
  if (isGone) await writer.clear();
  else await writer.add(notices, now);
  await writer.setState({
    logNumber: log.number,
    seenAt: now,
    endings: ends.position,
    refusals: often.refusals,
    gone: isGone ? state.gone : null,
  });
  return { more: log.more || ends.position.next !== undefined, isGone, isFull: false };
}

/** Starts without the events before now, and drops notices that still wait from an earlier time. */
async function beginning(writer: NoticeWriter, known: NoticeState | undefined, now: number): Promise<NoticeState> {
  if (known) await writer.clear();
  return {
    logNumber: await writer.head(),
    seenAt: now,
    endings: { until: now },
    refusals: { hour: 0, ids: [] },
    gone: known?.gone ?? null,
  };
}

async function fromLog(writer: NoticeWriter, after: number) {
  const entries = await writer.entries(after, PIECE);
  return {
    notices: entries.flatMap((entry) => noticeOfEntry(entry) ?? []),
    number: entries.at(-1)?.number ?? after,
    more: entries.length === PIECE,
  };
}

/** Looks at one threshold after another, with a limited number of keys per call. */
async function fromEnds(
  writer: NoticeWriter,
  position: EndingsPosition,
  latest: number,
): Promise<{ notices: Notice[]; position: EndingsPosition }> {
  const { until } = position;
  if (!position.next && latest <= until) return { notices: [], position };
  const { to, threshold: first, after } = position.next ?? { to: latest, threshold: 0 };
  const notices: Notice[] = [];
  let [limit, start] = [PIECE, after];
  for (let threshold = first; threshold < THRESHOLD_DAYS.length; threshold += 1) {
    const keys = await writer.ending({ ...endsBetween({ until, to }, threshold), after: start, limit });
    notices.push(...keys.flatMap((key) => endingNotice(key, threshold, to) ?? []));
    const last = keys.at(-1);
    if (last && keys.length === limit) {
      const { expiresAt, id } = last;
      return { notices, position: { until, next: { to, threshold, after: { expiresAt, id } } } };
    }
    [limit, start] = [limit - keys.length, undefined];
  }
  return { notices, position: { until: to } };
}

function fromRefusals({ refusals }: NoticeState, { now, refused = [] }: CollectOptions) {
  const hour = refusalHour(now);
  const noticed = refusals.hour === hour ? refusals.ids : [];
  const known = new Set(noticed);
  const found = refused.filter(({ key }) => !known.has(key.id)).slice(0, MAX_REFUSED_KEYS - noticed.length);
  return {
    notices: found.map((each) => refusalNotice(each, hour, now)),
    refusals: refused.length > 0 ? { hour, ids: [...noticed, ...found.map(({ key }) => key.id)] } : refusals,
  };
}

export interface NoticeState {
  logNumber: number;
  /** When the store was last looked through, in milliseconds since 1970. */
  seenAt: number;
  endings: EndingsPosition;
  refusals: NoticedRefusals;
  /** The webhook that refuses further notices; null if there is none. */
  gone: string | null;
}

/** The state of notices. Times are milliseconds since 1970. */
export interface NoticeStatus {
  /** When a server with a webhook last collected notices. */
  seenAt: number;
  /** How many wait, and since when the oldest one does. */
  waiting: number;
  oldestAt: number | null;
  /** How many entries of the audit log are not processed yet. */
  behind: number;
  deliveredAt: number | null;
  failedAt: number | null;
  failure: string | null;
  gone: string | null;
}

export interface Attempt {
  id: string;
  /** The end of the attempt. */
  at: number;
  /** Why it failed, in words for users; null if it did not. */
  failure: string | null;
  /** When the next attempt is due; null if there is none. */
  nextAt: number | null;
}

/** A transaction of the process that holds the lease. */
export interface NoticeWriter {
  /** Undefined before the first collection. */
  readonly state: NoticeState | undefined;
  head(): Promise<number>;
  /** Entries of the audit log after a number, oldest first. */
  entries(after: number, limit: number): Promise<AuditEntry[]>;
  /** Keys in the order of expiry, including damaged ones. */
  ending(query: EndsQuery): Promise<EndingKey[]>;
  countWaiting(): Promise<number>;
  /** Adds notices that are due at once. Existing ones stay as they are. */
  add(notices: readonly Notice[], now: number): Promise<void>;
  setState(state: NoticeState): Promise<void>;
  settle(attempts: readonly Attempt[]): Promise<void>;
  /** Removes all that wait. */
  clear(): Promise<void>;
}

export interface PendingNotices {
  behind: number;
  /** In milliseconds since 1970; null if none waits. */
  dueAt: number | null;
}

/** The queue of notices, shared by all processes of a store. All methods reject with a `KeysError` STORE_… */
export interface NoticeStore {
  /**
   * Runs `work` in a transaction unless another process holds the lease, and takes the lease for a time.
   * @returns undefined if another process holds it
   */
  withLease<Result>(
    lease: { holder: string; forMs: number },
    work: (writer: NoticeWriter) => Promise<Result>,
  ): Promise<Result | undefined>;
  /** Releases the lease. */
  release(holder: string): Promise<void>;
  /** True if no other process holds the lease. */
  isFree(holder: string): Promise<boolean>;
  /** How many entries of the audit log are not processed yet, and when the next waiting notice is due. */
  pending(): Promise<PendingNotices>;
  /** A number that grows with the audit log; undefined if this process gets no notifications of it. */
  changesReceived(): number | undefined;
  countWaiting(): Promise<number>;
  /** The notices that are due, the longest waiting first. */
  due(now: number, limit: number): Promise<WaitingNotice[]>;
  /** The keys refused at least this often within an hour since 1970, in no order, up to a limit. */
  findRefused(hour: number, query: { least: number; limit: number }): Promise<RefusedKey[]>;
  /** Undefined if no notices were ever collected. */
  status(): Promise<NoticeStatus | undefined>;
  /**
   * The last audit entry that notices were collected from; undefined if they were not collected since a time, in
   * milliseconds since 1970.
   */
  lastCollected(since: number): Promise<number | undefined>;
  /** Lets a webhook that refused further notices receive them again. */
  forgetGone(): Promise<void>;
}
export const NOTICES = declarePort<NoticeStore>('notices');
