import { endingNotice, type EndingsPosition, endsBetween, THRESHOLD_DAYS } from './endings.ts';
import { noticeOfEntry } from './from-audit.ts';
import { HISTORY_MS, type Notice, type NoticeType } from './notice.ts';
import type { NoticeState, NoticeWriter } from './notice-store.ts';
import { MAX_REFUSED_KEYS, type RefusedKey, refusalHour, refusalNotice } from './refusals.ts';
import { UNIT_MS } from '../time.ts';

/** How many notices wait at most: then nothing is collected until some are gone, and the audit log waits. */
export const MAX_WAITING = 10_000;
/** How many entries, or keys, one transaction looks at. */
const PIECE = 500;
/** A change of a key may be committed so much later than its time: until then, it is not looked at. */
const LAG_MS = 15 * UNIT_MS.s;

/** What is collected for whom. */
export interface CollectOptions {
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
