import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { countKeys, openTestKeys } from '../support/keys.ts';
import { finished, startCli } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const KEYS = 10_000;
/** The maximum wait of a change as a fraction of the import's time, and the minimum of changes made meanwhile. */
const [MOST, CHANGES] = [1 / 5, 20];

describeOnEach('an import of many keys', () => {
  it('keeps no change of another key waiting but for a small part of its time', async () => {
    const file = join(tempFolder(), 'keys.jsonl');
    const { database, store, keys, time } = await openTestKeys({ asServer: true });
    time.now = Date.now();
    const { apiKey: key } = await keys.create({ name: 'Changed', roles: ['GUEST'] }, OPERATOR);
    /**
     * Imports more keys while other changes are made.
     * @returns the wait of each change, and the duration of the import
     */
    const importBesideChanges = async (round: number) => {
      const line = (_: unknown, index: number) => {
        const name = `Imported ${round} ${index}`;
        return JSON.stringify({ name, sha256: createHash('sha256').update(name).digest('hex'), roles: ['VIEWER'] });
      };
      writeFileSync(file, Array.from({ length: KEYS }, line).join('\n'));
      const began = performance.now();
      const child = finished(startCli(['apikey', 'import', file, '--database', database]));
      const ended = new AbortController();
      void child.then(() => ended.abort());
      const waits: number[] = [];
      for (let enabled = false; !ended.signal.aborted; enabled = !enabled) {
        const start = performance.now();
        await keys.setEnabled(key.id, enabled, OPERATOR);
        waits.push(performance.now() - start);
        // Real clients pause between changes.
        await new Promise((resolve) => setImmediate(resolve));
      }
      const all = performance.now() - began;
      const { code, stderr } = await child;
      assert.equal(code, 0, stderr);
      return { waits, all };
    };
    let rounds = 0;
    // A pause of the machine can spoil a round, so it can repeat.
    await until(async () => {
      const { waits, all } = await importBesideChanges((rounds += 1));
      return waits.length >= CHANGES && Math.max(...waits) < MOST * all;
    });
    assert.equal(await countKeys(store.repository), rounds * KEYS + 1);
    assert.deepEqual((await keys.audit.check()).comparison!.differences, []);
    await store.close();
  });
});
