import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

  /** How many of these statements it has made by then, as its log says. */
  const moments = [
    ['select * from "api_keys"', 1],
    ['insert into "api_keys"', 1],
    ['insert into "api_keys"', 5],
    ['insert into "audit_log"', 1],
    ['insert into "audit_log"', 5],
    ['update "audit_head"|insert into "audit_head"', 1],
    ['commit', 2],
  ] as const;
  for (const [statement, count] of moments) {
    it(`after ${count} of "${statement}" has made all keys or none, and leaves nothing for the next one`, async () => {
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
        const made = await countKeys(store.repository);
        assert.ok(made === 0 || made === KEYS, String(made));
        const verified = await keys.audit.verify();
        assert.ok('entries' in verified && verified.entries === made, JSON.stringify(verified));
        const report = await keys.transfer.import(
          jsonLines({ name: 'Next', sha256: 'f'.repeat(64), roles: ['VIEWER'] }),
        );
        assert.equal(report.imported, 1);
        assert.deepEqual((await keys.audit.compare()).differences, []);
      } finally {
        await store.close();
      }
    });
  }
});
