import assert from 'node:assert/strict';
import { createReadStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeOnEach } from '../support/dialects.ts';
import { countKeys, openTestKeys } from '../support/keys.ts';
import { finished, startCli } from '../support/process.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';

const KEYS = 2400;

describeOnEach('import that is killed', () => {
  const file = join(tempFolder(), 'keys.jsonl');
  before(() => {
    const line = (_: unknown, index: number) =>
      JSON.stringify({ name: `Imported ${index}`, sha256: index.toString(16).padStart(64, '0'), roles: ['VIEWER'] });
    writeFileSync(file, Array.from({ length: KEYS }, line).join('\n'));
  });

  /** How many of these statements the log shows at that moment. */
  const moments = [
    ['select * from "api_keys"', 1],
    ['insert into "api_keys"', 1],
    ['insert into "api_keys"', 5],
    ['insert into "audit_log"', 1],
    ['update "audit_head"|insert into "audit_head"', 1],
    ['commit', 2],
    ['commit', 9],
  ] as const;
  for (const [statement, count] of moments) {
    it(`after ${count} of "${statement}" goes on when it runs again`, async () => {
      const database = await migratedStore();
      const { keys, store, time } = await openTestKeys({ database });
      time.now = Date.now();
      const child = startCli(['apikey', 'import', file, '--database', database], { env: { LOG_LEVEL: 'trace' } });
      const ended = finished(child);
      try {
        let [hasEnded, log] = [false, ''];
        void ended.then(() => (hasEnded = true));
        child.stderr!.on('data', (chunk) => (log += String(chunk).replaceAll('\\"', '"')));
        await until(async () => hasEnded || log.split(new RegExp(`"sql":"(?:${statement})`)).length > count);
        child.kill('SIGKILL');
        await ended;
        assert.deepEqual((await keys.audit.check()).comparison?.differences, []);
        const report = await importKeys(keys, createReadStream(file));
        assert.deepEqual([report.imported + report.unchanged, report.failed], [KEYS, 0]);
        assert.equal(await countKeys(store.repository), KEYS);
        const { verification, comparison } = await keys.audit.check();
        assert.ok('entries' in verification && verification.entries === KEYS, JSON.stringify(verification));
        assert.deepEqual([comparison!.compared, comparison!.differences], [KEYS, []]);
      } finally {
        await store.close();
      }
    });
  }
});
