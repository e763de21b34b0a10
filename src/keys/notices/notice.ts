import { hash } from 'node:crypto';
import { formatTime, UNIT_MS } from '../time.ts';

/** What a webhook is notified of. */
export const NOTICE_TYPES = [
  'key.created',
  'key.deleted',
  'key.ending',
  'key.ended',
  'key.leaked',
  'key.refused_often',
] as const;
/** What happened to a key. */
export type NoticeType = (typeof NOTICE_TYPES)[number];

/** Whoever was not there to collect notices for longer begins anew: what happened meanwhile is history. */
export const HISTORY_MS = 30 * UNIT_MS.d;

/** A notice as it is sent, the same with each attempt. */
export interface Notice {
  /** The same for the same event, also where it is found twice: receivers know repetitions by it. */
  readonly id: string;
  readonly type: NoticeType | 'test';
  /** When it happened, in milliseconds since 1970. */
  readonly at: number;
  /** `{ type, timestamp, data }`, as JSON. */
  readonly body: string;
}

/** A notice that is to be delivered. */
export interface WaitingNotice extends Notice {
  /** How often that was tried. */
  readonly attempts: number;
}

/**
 * Makes a notice.
 * @param event what no other event of that type has
 */
export function noticeOf(
  type: Notice['type'],
  { event, at, data }: { event: readonly (string | number)[]; at: number; data: object },
): Notice {
  const id = `msg_${hash('sha256', JSON.stringify([type, ...event]), 'hex').slice(0, 32)}`;
  return { id, type, at, body: JSON.stringify({ type, timestamp: formatTime(at), data }) };
}
