import assert from 'node:assert/strict';
import { FailureLog } from '../../src/http/refusal-log.ts';
import { KeysError } from '../../src/keys/basics/errors.ts';
import { collectingLog } from '../support/log.ts';

describe('the log of a store that does not answer', () => {
  const setUp = () => {
    const { log, lines } = collectingLog();
    const periods: (() => void)[] = [];
    const failures = new FailureLog(log, (work) => void periods.push(work));
    return {
      failures,
      logged: () => lines.splice(0).map(({ level, fields, message }) => [level, fields, message]),
      endPeriod: () => periods.splice(0).forEach((work) => work()),
    };
  };
  const message = 'the store did not answer';

  it('says the cause at once, and how often it came again in one line at the end of the period', () => {
    const { failures, logged, endPeriod } = setUp();
    const err = new KeysError('STORE_LOCKED', 'The key store is locked.');
    for (let request = 0; request < 900; request += 1) failures.add(err);
    assert.deepEqual(logged(), [['error', { err }, message]]);
    endPeriod();
    assert.deepEqual(logged(), [['error', { code: 'STORE_LOCKED', count: 899 }, message]]);
    failures.add(err);
    assert.deepEqual(logged(), [['error', { err }, message]], 'a new period');
    endPeriod();
    assert.deepEqual(logged(), [], 'nothing was repeated');
  });

  it('distinguishes another failure from a repeated one', () => {
    const { failures, logged } = setUp();
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    const broken = new TypeError('broken');
    for (const err of [refused, broken, refused, broken]) failures.add(err);
    assert.deepEqual(logged(), [
      ['error', { err: refused }, message],
      ['error', { err: broken }, message],
    ]);
    failures.finish();
    assert.deepEqual(logged(), [
      ['error', { code: 'ECONNREFUSED', count: 1 }, message],
      ['error', { code: 'TypeError', count: 1 }, message],
    ]);
  });

  it('writes few lines, and counts all, whatever fails', () => {
    const { failures, logged, endPeriod } = setUp();
    for (let request = 0; request < 10_000; request += 1)
      failures.add(Object.assign(new Error('failed'), { code: `E${request}` }));
    endPeriod();
    const lines = logged() as [string, { count?: number }, string][];
    assert.ok(lines.length <= 22, `${lines.length} lines`);
    assert.equal(
      lines.reduce((sum, [, { count = 1 }]) => sum + count, 0),
      10_000,
    );
  });
});
