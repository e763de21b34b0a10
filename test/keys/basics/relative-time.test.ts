import assert from 'node:assert/strict';
import { relativeTime, timeAndDistance } from '../../../src/keys/basics/relative-time.ts';

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000] as const;

describe('a relative time', () => {
  const rows: readonly (readonly [distance: number, text: string])[] = [
    [0, 'now'],
    [-499, 'now'],
    [-SECOND, '1 second ago'],
    [59 * SECOND, 'in 59 seconds'],
    [-2 * MINUTE, '2 minutes ago'],
    [90 * MINUTE, 'in 90 minutes'],
    [HOUR, 'in 1 hour'],
    [-65 * MINUTE, '1 hour ago'],
    [36 * HOUR, 'in 36 hours'],
    [-DAY, '1 day ago'],
    [3 * DAY, 'in 3 days'],
    [30 * DAY - 5, 'in 30 days'],
    [30 * DAY - 10 * MINUTE, 'in 30 days'],
    [90 * DAY, 'in 90 days'],
    [120 * DAY, 'in 4 months'],
    [-365 * DAY, '1 year ago'],
    [500 * DAY, 'in 17 months'],
    [-3653 * DAY, '10 years ago'],
  ];
  for (const [distance, text] of rows)
    it(`is "${text}" at a distance of ${distance} ms`, () => {
      assert.equal(relativeTime(Date.UTC(2030, 0, 1) + distance, Date.UTC(2030, 0, 1)), text);
    });

  it('is about right, at every distance', () => {
    const units = { second: SECOND, minute: MINUTE, hour: HOUR, day: DAY, month: 30 * DAY, year: 365 * DAY };
    for (let distance = 1000; distance < 3653 * DAY; distance = Math.ceil(distance * 1.01)) {
      const [, count, unit] = /^in (\d+) (\w+?)s?$/.exec(relativeTime(distance, 0))!;
      const said = Number(count) * units[unit as keyof typeof units];
      assert.ok(Math.abs(said - distance) <= Math.max(distance * 0.11, 500), `${distance}: ${count} ${unit}`);
    }
  });

  it('is that of the first or the last time of RFC 3339 for an invalid one', () => {
    const now = Date.UTC(2030, 0, 1);
    const texts = [Number.NaN, -9e15, 9e15].map((time) => relativeTime(time, now));
    assert.deepEqual(texts, ['2031 years ago', '2031 years ago', 'in 7975 years']);
  });

  it('stands behind the absolute one', () => {
    assert.equal(timeAndDistance(30 * DAY, 0), '1970-01-31T00:00:00.000Z (in 30 days)');
  });
});
