import assert from 'node:assert/strict';
import { edgesAfter, LISTED_MS, TELL_MS } from '../../../src/features/edges/feed.ts';

describe("a process's record of its edges", () => {
  const edge = { id: 'one', name: 'edge', key: { id: 'key', name: 'Edge' }, seenMs: 100 };
  const asking = { ...edge, leaseMs: 900, restMs: 0, lagMs: 20 };
  const resting = { ...edge, leaseMs: 0, restMs: 15_000, lagMs: 0 };
  const late = 2 * TELL_MS;

  it('holds until it is late to tell of them again', () => {
    assert.deepEqual(edgesAfter([asking, resting], late), [asking, resting]);
  });

  it('ages: leases and rests end, and lags grow except for resting edges', () => {
    assert.deepEqual(edgesAfter([asking, resting], late + 1000), [
      { ...asking, leaseMs: 0, lagMs: 1020, seenMs: 1100 },
      { ...resting, restMs: 14_000, seenMs: 1100 },
    ]);
    assert.deepEqual(edgesAfter([resting], late + 15_000), [{ ...resting, restMs: 0, lagMs: 15_000, seenMs: 15_100 }]);
  });

  it('is forgotten once they are listed no more', () => {
    assert.deepEqual(edgesAfter([asking], late + LISTED_MS), []);
  });
});
