import { KeysError } from '../errors.ts';
import { anyText, orNull, type Rules } from '../options.ts';
import { printable } from '../text.ts';
import { formatTime, requirePastTime } from '../time.ts';
import { firstKept, KEPT_DAYS, type Period, PERIOD_MS, PERIODS, startOf, type UsageRange } from './periods.ts';

/** A user's request for the use of a key. Texts are as the user wrote them. */
export interface UsageRequest {
  /** From the hour or day on that this is in: an RFC 3339 date and time, a date, or an age such as `24h`. */
  from?: string | null;
  /** Up to the end of the hour or day that ends with this or that this is in, written like `from`. Default: now. */
  to?: string | null;
  /** One of `PERIODS`, case-insensitive. Default: by the hour. */
  by?: string | null;
}

/** What a request may say. Null says nothing. */
export const USAGE_OPTIONS: Rules<UsageRequest> = { from: orNull(anyText), to: orNull(anyText), by: orNull(anyText) };

/** How many hours or days are told of unless told otherwise. */
const DEFAULT_COUNT: Readonly<Record<Period, number>> = { HOUR: 24, DAY: 30 };

/**
 * Parses a request for the use of a key: whole hours or days, of which there are at most as many as are kept.
 * @throws KeysError INPUT_INVALID
 */
export function readUsageRequest(request: UsageRequest, now: number): UsageRange {
  const by = readPeriod(request.by);
  const length = PERIOD_MS[by];
  const earliest = firstKept(by, now);
  const end = startOf(by, now) + length;
  const to = request.to == null ? end : Math.min(startOf(by, requirePastTime(request.to, now) + length - 1), end);
  if (to <= earliest) throw tooEarly(request.to!, by, earliest);
  if (request.from == null) return { by, from: Math.max(to - DEFAULT_COUNT[by] * length, earliest), to };
  const from = startOf(by, requirePastTime(request.from, now));
  if (from < earliest) throw tooEarly(request.from, by, earliest);
  if (from < to) return { by, from, to };
  const remedy = 'Choose a start that has passed and is before the end.';
  throw new KeysError('INPUT_INVALID', `"${printable(request.from)}" is not before ${formatTime(to)}. ${remedy}`);
}

function readPeriod(text: string | null | undefined): Period {
  if (text == null) return 'HOUR';
  const period = PERIODS.find((name) => name === text.trim().toUpperCase());
  if (period) return period;
  throw new KeysError('INPUT_INVALID', `Use is counted by hour or by day, not by "${printable(text)}".`);
}

function tooEarly(text: string, by: Period, earliest: number): KeysError {
  const kept = `${by === 'HOUR' ? 'hours' : 'days'} are kept for ${KEPT_DAYS[by]} days, since ${formatTime(earliest)}`;
  const remedy = by === 'HOUR' ? 'Ask by day, or for a later time.' : 'Ask for a later time.';
  return new KeysError('INPUT_INVALID', `"${printable(text)}" is too early: ${kept}. ${remedy}`);
}
