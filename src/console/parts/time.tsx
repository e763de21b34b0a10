import { relativeTime } from '../../keys/basics/index.ts';

/** A time as people say it, and exactly where the pointer rests on it. */
export function Time({ at, now, none = 'never' }: { at: string | null; now: number; none?: string }) {
  if (at === null) return <span class="faint">{none}</span>;
  return (
    <time datetime={at} title={exactTime(at)}>
      {relativeTime(Date.parse(at), now)}
    </time>
  );
}

/** `2030-01-31 12:00:00 UTC`. @param at a time in UTC, by RFC 3339 */
export function exactTime(at: string): string {
  return at.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
}
