import assert from 'node:assert/strict';
import { openStore } from '../../src/store/open.ts';
import { largeStore } from '../support/large-store.ts';

const NOW = 1000;

describe('the count of many keys that created one another', () => {
  it('lets others have their turns', async () => {
    const { path } = await largeStore({ keys: 24_000, entries: 0 });
    const store = await openStore({ database: path });
    /** The part of the time that the longest turn takes. */
    const longest = async () => {
      let most = 0;
      let sum = 0;
      let isCounting = true;
      let before = process.threadCpuUsage();
      const turn = () => {
        const { user, system } = process.threadCpuUsage(before);
        before = process.threadCpuUsage();
        most = Math.max(most, user + system);
        sum += user + system;
        if (isCounting) setImmediate(turn);
      };
      setImmediate(turn);
      await store.repository.count(NOW);
      isCounting = false;
      return most / sum;
    };
    // V8 has compiled it then.
    await longest();
    const turns = [await longest(), await longest(), await longest()];
    await store.close();
    assert.ok(Math.min(...turns) < 0.4, turns.join());
  });
});
