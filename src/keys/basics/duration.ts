/** The words that people write for units of time, in the singular, by the unit that we write. */
const UNIT_WORDS = {
  s: ['s', 'sec', 'second'],
  m: ['m', 'min', 'minute'],
  h: ['h', 'hr', 'hour'],
  d: ['d', 'day'],
  w: ['w', 'wk', 'week'],
  month: ['mo', 'mon', 'month'],
  year: ['y', 'yr', 'year'],
} as const;

/** The unit of a word, such as `m` for `Mins`; undefined if it is not a unit. */
export function parseUnit(word: string): keyof typeof UNIT_WORDS | undefined {
  const wanted = word.toLowerCase();
  const units = Object.keys(UNIT_WORDS) as (keyof typeof UNIT_WORDS)[];
  return units.find((unit) => UNIT_WORDS[unit].some((each) => wanted === each || wanted === `${each}s`));
}

/** Milliseconds in each unit of a duration. */
export const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const DURATION = /^(\d{1,9})([smhdw])$/;

/** Parses a duration such as `90m` into milliseconds; undefined if it is malformed or zero. Units are lower case. */
export function readDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim());
  if (!match || Number(match[1]) === 0) return undefined;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** Suggests a duration in place of one with an unknown unit, such as `1y` or `12H`; otherwise undefined. */
export function durationHint(text: string): string | undefined {
  const match = /^(\d{1,9})[ -]?([a-z]+)$/i.exec(text.trim());
  const unit = parseUnit(match?.[2] ?? '');
  if (!match || !unit || Number(match[1]) === 0) return undefined;
  if (match[2] === unit && unit in UNIT_MS) return undefined;
  const [number, written] = [Number(match[1]), match[2]!];
  if (written === 'M') {
    const minutes = `${number} ${number === 1 ? 'minute' : 'minutes'}`;
    return `Units are lower case: ${number}m is ${minutes}; for months write ${number * 30}d.`;
  }
  if (written === unit.toUpperCase()) return `Units are lower case: write ${number}${unit}.`;
  const days = { month: 30, year: 365 };
  const meant = unit in days ? `${number * days[unit as keyof typeof days]}d` : `${number}${unit}`;
  return `Did you mean ${meant}? The units are s, m, h, d and w.`;
}

/** A duration in milliseconds, in its largest whole unit: `90m`, `1h`, `30d`. `readDuration` parses it. */
export function formatDuration(milliseconds: number): string {
  const [unit, length] = (['d', 'h', 'm'] as const)
    .map((name) => [name, UNIT_MS[name]] as const)
    .find(([, each]) => milliseconds >= each && milliseconds % each === 0) ?? ['s', UNIT_MS.s];
  return `${milliseconds / length}${unit}`;
}
