import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describeOnEach } from '../support/dialects.ts';
import { jsonLines, openTestKeys } from '../support/keys.ts';
import { workOf } from '../support/work.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

const FEWER = 500;
/** The larger store has FACTOR times as many keys. The work per key may grow by TOLERANCE at most. */
const [FACTOR, TOLERANCE] = [4, 1.5];

describeOnEach('verifying a log, and comparing keys with it,', () => {
  /** How many thousand function calls both need. */
  async function workFor(entries: number): Promise<number> {
    const { keys, store } = await openTestKeys();
    const line = (_: unknown, index: number) => ({
      name: `Key ${index}`,
      sha256: createHash('sha256').update(String(index)).digest('hex'),
      roles: ['VIEWER'],
    });
    try {
      await importKeys(keys, jsonLines(...Array.from({ length: entries }, line)));
      const { count, result } = await workOf(() => keys.audit.check());
      assert.equal('entries' in result.verification && result.verification.entries, entries);
      assert.equal(result.comparison?.compared, entries);
      return count;
    } finally {
      await store.close();
    }
  }

  it('needs work as there are entries, not by their square', async () => {
    const [fewer, more] = [await workFor(FEWER), await workFor(FACTOR * FEWER)];
    assert.ok(more < TOLERANCE * FACTOR * fewer, `${more / fewer} times as much for ${FACTOR} times the entries`);
  });
});
