import { relativeTime } from '../../keys/relative-time.ts';

/** A time as people say it, and exactly where the pointer rests on it. */
export function Time({ at, now, none = 'never' }: { at: string | null; now: number; none?: string }) {
  if (at === null) return <span class="faint">{none}</span>;
  const exact = at.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
  return (
    <time datetime={at} title={exact}>
      {relativeTime(Date.parse(at), now)}
    </time>
  );
}
