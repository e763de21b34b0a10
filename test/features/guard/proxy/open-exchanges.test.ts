import assert from 'node:assert/strict';
import { OpenExchanges } from '../../../../src/features/guard/guard.ts';
import { until } from '../../../support/until.ts';

/** Keeps the processor busy. */
const work = (milliseconds: number) => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

describe('the check of open exchanges', () => {
  it('gives others a turn where it takes long, and then goes on', async () => {
    const open = new OpenExchanges();
    const forget: (() => void)[] = [];
    /** The checked exchanges, and how many were checked in one turn of the event loop. */
    const asked: number[] = [];
    let beforeOthers: number | undefined;
    for (let index = 0; index < 100; index += 1)
      forget.push(
        open.add({
          refusedNow: () => {
            if (index === 0) setImmediate(() => (beforeOthers ??= asked.length));
            asked.push(index);
            work(1);
            return undefined;
          },
          end: () => {},
        }),
      );
    await until(() => beforeOthers !== undefined);
    assert.ok(beforeOthers! < 100, `${beforeOthers} were asked about at once`);
    // Exchanges that have ended meanwhile are not checked.
    forget[99]!();
    await until(() => asked.includes(98));
    for (const end of forget) end();
    assert.deepEqual(
      asked,
      Array.from({ length: 99 }, (_, index) => index),
    );
  });

  it('ends those that it cannot check, and continues', async () => {
    const open = new OpenExchanges();
    const ended: string[] = [];
    const failing = { refuses: () => Promise.reject(new Error('down')), throws: () => assert.fail('down') };
    const forget = Object.entries(failing).map(([name, refusedNow]) =>
      open.add({ refusedNow, end: () => void ended.push(name) }),
    );
    await until(() => ended.length === 2);
    for (const end of forget) end();
    let looks = 0;
    const end = open.add({ refusedNow: () => void (looks += 1), end: () => {} });
    await until(() => looks > 0);
    end();
    assert.deepEqual(ended.toSorted(), ['refuses', 'throws']);
  });
});
