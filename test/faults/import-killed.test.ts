import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openConnection } from '../../src/store/open.ts';
import { describeOnEach } from '../support/dialects.ts';
import { countKeys, jsonLines, openTestKeys } from '../support/keys.ts';
import { finished, startCli } from '../support/process.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const KEYS = 6000;

describeOnEach('import that is killed', () => {
  const file = join(tempFolder(), 'keys.jsonl');
  before(() => {
    const line = (_: unknown, index: number) =>
      JSON.stringify({ name: `Imported ${index}`, sha256: index.toString(16).padStart(64, '0'), roles: ['VIEWER'] });
    writeFileSync(file, Array.from({ length: KEYS }, line).join('\n'));
  });

  const moments = [
    ...[1, 2000, 4000].map((count) => ({ title: `when ${count} keys are staged`, count, wait: 0 })),
    // Its last transaction takes some 100 ms, and so does removing what was staged.
    ...[0, 20, 50, 90, 140, 200].map((wait) => ({ title: `${wait} ms after all are staged`, count: KEYS, wait })),
  ];
  for (const { title, count, wait } of moments) {
    it(`${title} has made all keys or none, and the next one removes what it left`, async () => {
      const database = await migratedStore();
      const connection = await openConnection({ database });
      const { keys, store, time } = await openTestKeys({ database });
      time.now = Date.now();
      const staged = async () =>
        Number(
          (
            await connection.run((db) =>
              db
                .selectFrom('staged_keys')
                .select((row) => row.fn.countAll().as('count'))
                .executeTakeFirstOrThrow(),
            )
          ).count,
        );
      const child = startCli(['apikey', 'import', file, '--database', database]);
      const ended = finished(child);
      try {
        let hasEnded = false;
        void ended.then(() => (hasEnded = true));
        await until(async () => hasEnded || (await staged()) >= count);
        await delay(wait);
        child.kill('SIGKILL');
        await ended;
        const made = await countKeys(store.repository);
        assert.ok(made === 0 || made === KEYS, String(made));
        const verified = await keys.audit.verify();
        assert.ok('entries' in verified && verified.entries === made, JSON.stringify(verified));
        const report = await keys.transfer.import(
          jsonLines({ name: 'Next', sha256: 'f'.repeat(64), roles: ['VIEWER'] }),
        );
        assert.equal(report.imported, 1);
        assert.equal(await staged(), 0);
        assert.deepEqual((await keys.audit.compare()).differences, []);
      } finally {
        await store.close();
        await connection.close();
      }
    });
  }
});
