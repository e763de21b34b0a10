import type { ApiKey } from '../key/api-key.ts';
import { prefixOf } from '../secret/secret.ts';
import { formatTime, UNIT_MS } from '../time.ts';
import type { OutcomeCounts } from '../usage/outcomes.ts';
import { type Notice, noticeOf } from './notice.ts';

/** Of how many keys that are refused often there is a notice within an hour: whoever holds old secrets decides it. */
export const MAX_REFUSED_KEYS = 100;
/** So late may requests be counted. */
const LATE_MS = UNIT_MS.m;

/** The keys of which there was a notice within an hour of the clock. */
export interface NoticedRefusals {
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

/** The notice that a key is refused often. */
export function refusalNotice({ key, counts }: RefusedKey, hour: number, now: number): Notice {
  const { id, name, publicId, createdBy } = key;
  const { forbidden, limited, refused } = counts;
  const since = formatTime(hour * UNIT_MS.h);
  const data = { id, name, prefix: prefixOf(publicId), createdBy, since, forbidden, limited, refused };
  return noticeOf('key.refused_often', { event: [id, hour], at: now, data });
}
