import assert from 'node:assert/strict';
import { runStoreChild } from '../support/store-process.ts';
import { tempStore } from '../support/temp.ts';

const [PROGRAMS, ROUNDS] = [4, 400];

describe('a store in a file', () => {
  it(`is opened and closed by ${PROGRAMS} programs at once, ${ROUNDS} times each, and none fails`, async () => {
    const database = tempStore();
    const ended = await Promise.all(
      Array.from({ length: PROGRAMS }, () => runStoreChild(['reopen', database, String(ROUNDS)])),
    );
    assert.deepEqual(
      ended,
      Array.from({ length: PROGRAMS }, () => ({ reopened: ROUNDS })),
    );
  });
});
