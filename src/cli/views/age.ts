const UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, milliseconds: number])[] = [
  ['year', 365 * 86_400_000],
  ['month', 30 * 86_400_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** How long ago a time was, in its largest unit: "3 days ago". */
export function ageOf(time: number, now = Date.now()): string {
  const age = Math.max(0, now - time);
  const [unit, milliseconds] = UNITS.find(([, length]) => age >= length) ?? ['second', 1000];
  return new Intl.RelativeTimeFormat('en').format(-Math.floor(age / milliseconds), unit);
}
