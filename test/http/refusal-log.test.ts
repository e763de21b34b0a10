import assert from 'node:assert/strict';
import { type Refused, RefusalLog } from '../../src/http/refusal-log.ts';
import { collectingLog } from '../support/log.ts';

describe('the log of refused requests', () => {
  const setUp = () => {
    const { log, lines } = collectingLog();
    const periods: (() => void)[] = [];
    const refusals = new RefusalLog(log, (work) => void periods.push(work));
    const add = (refused: Refused) => refusals.add('key refused', refused);
    const logged = () => lines.splice(0).map(({ fields }) => fields as Refused & { count?: number });
    return { refusals, add, logged, endPeriod: () => periods.splice(0).forEach((work) => work()) };
  };

  it('says a refusal at once, and its repetitions in one line at the end of the period', () => {
    const { add, logged, endPeriod } = setUp();
    const refused = { reason: 'expired', prefix: 'abc', address: '192.0.2.1' };
    for (let time = 0; time < 900; time += 1) add(refused);
    assert.deepEqual(logged(), [refused]);
    endPeriod();
    assert.deepEqual(logged(), [{ ...refused, count: 899 }]);
    add(refused);
    assert.deepEqual(logged(), [refused], 'a new period');
    endPeriod();
    assert.deepEqual(logged(), [], 'nothing was repeated');
  });

  it('writes few lines, and counts all, whatever keys and addresses are sent', () => {
    for (const [addresses, most] of [
      [1, 6],
      [10_000, 150],
    ] as const) {
      const { add, logged, endPeriod } = setUp();
      for (let time = 0; time < 50_000; time += 1)
        add({ reason: 'unknown', prefix: `key${time}`, address: `2001:db8::${time % addresses}` });
      endPeriod();
      const lines = logged();
      assert.ok(lines.length <= most, `${lines.length} lines`);
      assert.equal(
        lines.reduce((sum, { count = 1 }) => sum + count, 0),
        50_000,
      );
    }
  });

  it('still distinguishes another reason and another address from repeated ones', () => {
    const { add, logged } = setUp();
    for (let time = 0; time < 100; time += 1) add({ reason: 'unknown', prefix: `key${time}`, address: '192.0.2.1' });
    logged();
    add({ reason: 'expired', prefix: 'abc', address: '192.0.2.1' });
    add({ reason: 'unknown', prefix: 'abc', address: '192.0.2.2' });
    assert.deepEqual(
      logged().map(({ reason, address }) => [reason, address]),
      [
        ['expired', '192.0.2.1'],
        ['unknown', '192.0.2.2'],
      ],
    );
  });

  it('reports what was only counted, when the server stops', () => {
    const { refusals, add, logged } = setUp();
    for (let time = 0; time < 3; time += 1) add({ reason: 'malformed' });
    refusals.finish();
    assert.deepEqual(logged(), [{ reason: 'malformed' }, { reason: 'malformed', count: 2 }]);
  });
});
