import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { countKeys, jsonLines, openTestKeys } from '../support/keys.ts';
import { finished, startCli } from '../support/process.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const KEYS = 6000;

/** How many rows of keys there are, seen or not, and how much is left to be done of imports. */
async function restOf(database: string): Promise<number[]> {
  const counts = ['api_keys', 'imports', 'import_entries'].map(
    (table) => `(select count(*) from ${table}) as ${table}`,
  );
  const [row] = await readDirectly(database, `select ${counts.join(', ')}`);
  return Object.values(row!).map(Number);
}

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
    ['insert into (?:"main".)?"api_keys"', 1],
    ['insert into (?:"main".)?"api_keys"', 5],
    ['insert into "audit_log"', 1],
    ['insert into "audit_log"', 5],
    ['update "audit_head"|insert into "audit_head"', 1],
    ['insert into "imports"', 1],
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
        // Entries of keys that are there may still be to be written.
        const { verification, comparison } = await keys.audit.check();
        assert.ok('entries' in verification && verification.entries <= KEYS, JSON.stringify(verification));
        assert.deepEqual(comparison?.differences, []);
        const report = await keys.transfer.import(
          jsonLines({ name: 'Next', sha256: 'f'.repeat(64), roles: ['VIEWER'] }),
        );
        assert.equal(report.imported, 1);
        // Only now: a database server may still have had the commit before it.
        const made = (await countKeys(store.repository)) - 1;
        assert.ok(made === 0 || made === KEYS, String(made));
        const { compared, differences } = (await keys.audit.check()).comparison!;
        assert.deepEqual([compared, differences], [made + 1, []]);
        assert.deepEqual(await restOf(database), [made + 1, 0, 0]);
      } finally {
        await store.close();
      }
    });
  }
});
