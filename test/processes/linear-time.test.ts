import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpuTime } from '../support/cpu.ts';
import { describeOnEach } from '../support/dialects.ts';
import { jsonLines, openTestKeys } from '../support/keys.ts';

const FEWER = 1000;
/** So many times the keys and entries take so many times as long, and at most so many times that. */
const [FACTOR, TOLERANCE] = [8, 3];
const RUNS = 3;

describeOnEach('verifying a log, and comparing keys with it,', () => {
  /** How much processor time of this process both take, at best, in milliseconds. */
  async function timeOf(count: number): Promise<number> {
    const { keys, store } = await openTestKeys();
    const line = (_: unknown, index: number) => ({
      name: `Key ${index}`,
      sha256: createHash('sha256').update(String(index)).digest('hex'),
      roles: ['VIEWER'],
    });
    try {
      await keys.transfer.import(jsonLines(...Array.from({ length: count }, line)));
      const times: number[] = [];
      for (let run = 0; run < RUNS; run += 1) {
        const began = cpuTime();
        const { verification, comparison } = await keys.audit.check();
        times.push(cpuTime() - began);
        assert.equal('entries' in verification && verification.entries, count);
        assert.equal(comparison?.compared, count);
      }
      return Math.min(...times);
    } finally {
      await store.close();
    }
  }

  it('takes time as there are entries, not by their square', async () => {
    const [fewer, more] = [await timeOf(FEWER), await timeOf(FACTOR * FEWER)];
    assert.ok(more < TOLERANCE * FACTOR * fewer, `${more / fewer} times as long for ${FACTOR} times the entries`);
  });
});
