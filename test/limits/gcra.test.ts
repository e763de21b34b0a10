import assert from 'node:assert/strict';
import { available, availableAt, computeRate, spend } from '../../src/limits/lease.ts';
import { Random } from '../support/random.ts';

const SECOND = 1_000_000;

describe('a limit', () => {
  it('accepts so many requests at once, then one each part of its time', () => {
    const rate = computeRate('100/m');
    assert.deepEqual(rate, { burst: 100, intervalUs: 600_000, refills: true });
    let unusedAt = 0;
    const now = 5 * SECOND;
    for (let index = 0; index < 100; index += 1) {
      assert.equal(available(unusedAt, now, rate), 100 - index);
      unusedAt = spend(unusedAt, now, 1, rate);
    }
    assert.equal(available(unusedAt, now, rate), 0);
    assert.equal(availableAt(unusedAt, 1, rate) - now, 600_000);
    assert.equal(available(unusedAt, now + 599_999, rate), 0);
    assert.equal(available(unusedAt, now + 600_000, rate), 1);
    assert.equal(available(unusedAt, now + 60 * SECOND, rate), 100);
    assert.equal(availableAt(unusedAt, 100, rate) - now, 60 * SECOND);
  });

  it('counts a part of a microsecond as a whole one, so that it never allows more', () => {
    assert.deepEqual(computeRate('7/s'), { burst: 7, intervalUs: 142_858, refills: true });
    assert.deepEqual(computeRate('1/month'), { burst: 1, intervalUs: 30 * 86_400 * SECOND, refills: true });
    assert.deepEqual(computeRate('10000/s'), { burst: 10_000, intervalUs: 100, refills: true });
  });

  it('accepts, in any span of time, no more than its number and one for each interval of the span', () => {
    const random = new Random(7);
    for (const limit of ['3/s', '100/m', '7/m'] as const) {
      const rate = computeRate(limit);
      const admitted: number[] = [];
      let [now, unusedAt] = [0, 0];
      for (let index = 0; index < 400; index += 1) {
        now += random.chance(0.1) ? random.next() * 20 * rate.intervalUs : random.next() * rate.intervalUs;
        if (available(unusedAt, now, rate) === 0) continue;
        unusedAt = spend(unusedAt, now, 1, rate);
        admitted.push(now);
      }
      for (const [first, start] of admitted.entries())
        for (let last = first; last < admitted.length; last += 1)
          assert.ok(last - first + 1 <= rate.burst + (admitted[last]! - start) / rate.intervalUs);
    }
  });

  it('that is a budget is spent once, and never again, at any time', () => {
    const rate = computeRate('3/budget');
    const spent = [0, 5 * SECOND, 9e15].reduce((unusedAt, now) => spend(unusedAt, now, 1, rate), 0);
    assert.equal(spent, 3);
    assert.deepEqual([available(spent, 1e16, rate), availableAt(spent, 1, rate)], [0, Infinity]);
    assert.deepEqual([available(1, 1e16, rate), availableAt(1, 2, rate)], [2, 0]);
  });
});
