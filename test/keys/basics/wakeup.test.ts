import assert from 'node:assert/strict';
import { Wakeup } from '../../../src/keys/basics/wakeup.ts';

describe('waiters for a wake-up', () => {
  it('go on when that happens, each once', async () => {
    const wakeup = new Wakeup();
    const waiting = Promise.all([wakeup.wait(), wakeup.wait(60_000)]);
    wakeup.wake();
    await waiting;
    assert.equal(wakeup.size, 0);
  });

  it('leave nothing behind once they have waited for long enough, or are aborted', async () => {
    const wakeup = new Wakeup();
    const aborted = new AbortController();
    const waiting = [wakeup.wait(1), wakeup.wait(Infinity, aborted.signal)];
    assert.equal(wakeup.size, 2);
    aborted.abort();
    await Promise.all(waiting);
    assert.equal(wakeup.size, 0);
  });

  it('do not wait where there is nothing to wait for', async () => {
    const wakeup = new Wakeup();
    await wakeup.wait(0);
    await wakeup.wait(Infinity, AbortSignal.abort());
    assert.equal(wakeup.size, 0);
  });
});
