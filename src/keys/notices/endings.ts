import type { ApiKey } from '../key/api-key.ts';
import { prefixOf } from '../secret/secret.ts';
import { formatTime, UNIT_MS } from '../time.ts';
import { type Notice, noticeOf } from './notice.ts';

/** How many days before its end a key is noticed; 0 is the end itself. */
export const THRESHOLD_DAYS = [0, 1, 3, 14] as const;

/** How far keys were looked through for those that end. */
export interface EndingsPosition {
  /** Up to this time, all were, in milliseconds since 1970. */
  until: number;
  /** Where a look that is not finished goes on: up to another time, with a threshold, after a key. */
  next?: { to: number; threshold: number; after?: EndPosition | undefined } | undefined;
}

/** A key in the order of ends. */
export interface EndPosition {
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

/** A key that ends. */
export type EndingKey = ApiKey & { expiresAt: number };

/** When keys end that pass a threshold of days after one time, and up to another. */
export function endsBetween(passed: { until: number; to: number }, threshold: number): { from: number; to: number } {
  const ahead = THRESHOLD_DAYS[threshold]! * UNIT_MS.d;
  return { from: passed.until + ahead, to: passed.to + ahead };
}

/**
 * The notice that a key passes a threshold; undefined where that is not news any more: another one was passed as well
 * by the time that is looked at, or it lay behind when the key was made.
 */
export function endingNotice(key: EndingKey, threshold: number, to: number): Notice | undefined {
  const { id, name, publicId, expiresAt, createdAt, createdBy, disabledAt } = key;
  const days = THRESHOLD_DAYS[threshold]!;
  const at = expiresAt - days * UNIT_MS.d;
  const nearer = THRESHOLD_DAYS[threshold - 1];
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
