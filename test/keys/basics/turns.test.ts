import assert from 'node:assert/strict';
import { sortYielding } from '../../../src/keys/basics/turns.ts';

describe('a long list', () => {
  it('is sorted as a short one is, with turns for others in between', async () => {
    // Each number occurs several times, since equal items must keep their order.
    const items = Array.from({ length: 10_000 }, (_, at) => ({ number: (at * 7919) % 3001, at }));
    const compare = (one: { number: number }, other: { number: number }) => one.number - other.number;
    let isDone = false;
    let turns = 0;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const sorted = await sortYielding(items, compare);
    isDone = true;
    const expected = items.toSorted(compare);
    assert.ok(sorted.every((item, index) => item === expected[index]) && sorted.length === expected.length);
    assert.ok(turns >= 5, String(turns));
  });
});
