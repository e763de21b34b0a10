import assert from 'node:assert/strict';
import { Mutex } from '../../src/store/mutex.ts';

describe('a mutex', () => {
  it('runs one piece of work at a time, in order of arrival, also after one that failed', async () => {
    const mutex = new Mutex();
    const events: string[] = [];
    const work = (name: string) => async () => {
      events.push(`${name} begins`);
      await Promise.resolve();
      events.push(`${name} ends`);
      if (name === 'b') throw new Error('b failed');
      return name;
    };
    const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => mutex.run(60_000, work(name))));
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(events, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('refuses work at its deadline, while earlier work still runs, and never runs it', async () => {
    const mutex = new Mutex();
    let end = () => {};
    const first = mutex.run(60_000, () => new Promise<void>((resolve) => (end = resolve)));
    let ran = false;
    await assert.rejects(
      mutex.run(1, async () => void (ran = true)),
      { code: 'STORE_LOCKED' },
    );
    end();
    await first;
    await mutex.run(60_000, async () => {});
    assert.equal(ran, false);
  });
});
