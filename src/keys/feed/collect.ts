import type { AuditEntry, AuditValues } from '../audit/index.ts';
import { formatTime, UNIT_MS } from '../basics/index.ts';
import type { ApiKey, OutcomeCounts } from '../key/index.ts';
import { prefixOf } from '../secret/index.ts';
import { HISTORY_MS, type Notice, noticeOf, type NoticeType, type WaitingNotice } from './notice.ts';

/** How many days before its end a key is noticed; 0 is the end itself. */
const THRESHOLD_DAYS = [0, 1, 3, 14] as const;

/** How far keys were looked through for those that end. */
interface EndingsPosition {
  /** Up to this time, all were, in milliseconds since 1970. */
  until: number;
  /** Where a look that is not finished goes on: up to another time, with a threshold, after a key. */
  next?: { to: number; threshold: number; after?: EndPosition | undefined } | undefined;
}

/** A key in the order of ends. */
interface EndPosition {
  expiresAt: number;
  id: string;
}

/** Which keys are asked for: those that end after one time and up to another, in the order of their ends and ids. */
export interface EndsQuery {
  /** In milliseconds since 1970, excluded. */
  from: number;
  /** Included. */
  to: number;
  after: EndPosition | undefined;
  limit: number;
}

export type EndingKey = ApiKey & { expiresAt: number };

/** When keys end that pass a threshold of days after one time, and up to another. */
function endsBetween(passed: { until: number; to: number }, threshold: number): { from: number; to: number } {
  const ahead = THRESHOLD_DAYS[threshold]! * UNIT_MS.d;
  return { from: passed.until + ahead, to: passed.to + ahead };
}

/**
 * The notice that a key passes a threshold; undefined where that is not news any more: another one was passed as well
 * by the time that is looked at, or it lay behind when the key was made.
 */
function endingNotice(key: EndingKey, threshold: number, to: number): Notice | undefined {
  const { id, name, publicId, expiresAt, createdAt, createdBy, disabledAt, rotation } = key;
  const days = THRESHOLD_DAYS[threshold]!;
  const at = expiresAt - days * UNIT_MS.d;
  const nearer = THRESHOLD_DAYS[threshold - 1];
  // An application that replaces its secrets by itself moves the end each time, by an hour.
  const isRefreshed = rotation !== null && expiresAt - rotation.startedAt <= UNIT_MS.h;
  if (isRefreshed && days > 0) return undefined;
  if (createdAt >= at || (nearer !== undefined && expiresAt - nearer * UNIT_MS.d <= to)) return undefined;
  // It is refused already.
  if (key.damaged || (disabledAt !== null && days > 0)) return undefined;
  const data = { id, name, prefix: prefixOf(publicId), createdBy, expiresAt: formatTime(expiresAt) };
  return noticeOf(days === 0 ? 'key.ended' : 'key.ending', {
    event: [id, expiresAt, days],
    at,
    data: days === 0 ? data : { ...data, days },
  });
}

/** How many roles, and how many permissions, a notice names. */
const MAX_NAMED = 100;
/** The latest time that there is (ECMA-262, section 21.4.1.1). An entry that is damaged may have another. */
const MAX_TIME_MS = 8.64e15;

/** The notice of an entry of the audit log; undefined for one of which nobody is told. */
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
  // Without its time it is told, too: what throws would keep all others waiting.
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
      // One that is changed by a backup was there; of one that was damaged, it is not known what it was.
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

/** Of how many keys that are refused often there is a notice within an hour: whoever holds old secrets decides it. */
export const MAX_REFUSED_KEYS = 100;
/** So late may requests be counted. */
const LATE_MS = UNIT_MS.m;

/** The keys of which there was a notice within an hour of the clock. */
interface NoticedRefusals {
  /** Since 1970. */
  hour: number;
  ids: readonly string[];
}

/** How the requests of a key ended within an hour. */
export interface RefusedKey {
  key: ApiKey;
  counts: Omit<OutcomeCounts, 'accepted'>;
}

/** The hour to look at, since 1970. What is counted late still belongs to the last one. */
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

/** How many notices wait at most: then nothing is collected until some are gone, and the audit log waits. */
export const MAX_WAITING = 10_000;
/** How many entries, or keys, one transaction looks at. */
const PIECE = 500;
/** A change of a key may be committed so much later than its time: until then, it is not looked at. */
const LAG_MS = 15 * UNIT_MS.s;

/** What is collected for whom. */
interface CollectOptions {
  events: readonly NoticeType[];
  /** What identifies the webhook. */
  endpoint: string;
  /** Milliseconds since 1970. */
  now: number;
  /** Keys that were refused often within `refusalHour`. */
  refused?: readonly RefusedKey[];
}

/** What a transaction has done. */
export interface CollectionResult {
  /** Whether there is more to look at now. */
  more: boolean;
  /** Whether the webhook wants no notices any more. */
  isGone: boolean;
  /** Whether as many wait as may. */
  isFull: boolean;
}

/** Looks in one transaction at what has happened since the last time, and lets notices of it wait for delivery. */
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

/** History is no news, nor is what still waits from then. */
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

/** Looks at one threshold after another, at so many keys at a time. */
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
  /** What identifies the webhook that wants no notices any more; null if there is none. */
  gone: string | null;
}

/** How notices are doing. Times are milliseconds since 1970. */
export interface NoticeStatus {
  /** When a server with a webhook last looked through the store. */
  seenAt: number;
  /** How many wait, and since when the oldest does. */
  waiting: number;
  oldestAt: number | null;
  /** How many entries of the audit log were not looked at. */
  behind: number;
  deliveredAt: number | null;
  failedAt: number | null;
  failure: string | null;
  gone: string | null;
}

export interface Attempt {
  id: string;
  /** When it ended. */
  at: number;
  /** Why it failed, in words for users; null if it did not. */
  failure: string | null;
  /** When the next one is due; null if there is none. */
  nextAt: number | null;
}

/** A transaction of the process that has the lease. */
export interface NoticeWriter {
  /** Undefined before the first time. */
  readonly state: NoticeState | undefined;
  head(): Promise<number>;
  /** Entries of the audit log after a number, oldest first. */
  entries(after: number, limit: number): Promise<AuditEntry[]>;
  /** Keys in the order of their ends, also damaged ones. */
  ending(query: EndsQuery): Promise<EndingKey[]>;
  countWaiting(): Promise<number>;
  /** Adds notices that are due at once. One that is there already stays as it is. */
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

/** Where notices wait, shared by all processes of a store. All methods reject with a `KeysError` STORE_… */
export interface NoticeStore {
  /**
   * Runs `work` in a transaction, if no other process has the lease, which is then this one's for so long.
   * @returns undefined where another process has it
   */
  withLease<Result>(
    lease: { holder: string; forMs: number },
    work: (writer: NoticeWriter) => Promise<Result>,
  ): Promise<Result | undefined>;
  /** Gives the lease up. */
  release(holder: string): Promise<void>;
  /** Whether no other process has the lease. */
  isFree(holder: string): Promise<boolean>;
  /** How many entries of the audit log are to be looked at yet, and when the next notice is due, if one waits. */
  pending(): Promise<PendingNotices>;
  /** A number that grows once the audit log has; undefined where nothing tells this process of that. */
  changesReceived(): number | undefined;
  countWaiting(): Promise<number>;
  /** Those that are due, the longest waiting first. */
  due(now: number, limit: number): Promise<WaitingNotice[]>;
  /** The keys that were refused at least so often within an hour since 1970, in no order, up to a limit. */
  findRefused(hour: number, query: { least: number; limit: number }): Promise<RefusedKey[]>;
  /** Undefined if no notices were ever collected. */
  status(): Promise<NoticeStatus | undefined>;
  /** Lets a webhook that wanted no notices have them again. */
  forgetGone(): Promise<void>;
}
