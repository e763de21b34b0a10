import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { openStore } from '../../src/store/open.ts';
import { largeStore } from '../support/large-store.ts';

const NOW = 1000;
/** A count in one turn would let other work run only a few times. */
const LEAST_TURNS = 10;

describe('the count of many keys that created one another', () => {
  it('lets others have their turns', async () => {
    const { path } = await largeStore({ keys: 24_000, entries: 0 });
    const store = await openStore({ database: path });
    const ended: string[] = [];
    const counted = store.repository.count(NOW).finally(() => ended.push('counted'));
    let turns = 0;
    for (; ended.length === 0; turns += 1) await setImmediate();
    await counted;
    await store.close();
    assert.ok(turns >= LEAST_TURNS, `${turns} turns`);
  });
});
