const UNITS = { ms: 1, s: 1000, m: 60_000 } as const;

/** For how long an edge may ask to answer, and for how long it may go on after that, in milliseconds. */
const BOUNDS = {
  maxStale: { usual: '1s', least: 100, most: 60_000, range: '100ms to 60s' },
  grace: { usual: '0s', least: 0, most: 3_600_000, range: '0s to 60m' },
} as const;

/** Reads such a time. @returns milliseconds; or what else it must be, where it is none */
export function readEdgeTime(
  which: keyof typeof BOUNDS,
  text: string = BOUNDS[which].usual,
): number | { readonly refusal: string } {
  const { least, most, range } = BOUNDS[which];
  const [, count, unit] = /^(\d{1,9})(ms|s|m)$/.exec(text.trim()) ?? [];
  const time = count === undefined ? Number.NaN : Number(count) * UNITS[unit as keyof typeof UNITS];
  return time >= least && time <= most ? time : { refusal: `Give a time from ${range}.` };
}
