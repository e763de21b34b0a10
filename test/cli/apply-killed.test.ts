import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openKeys } from '../../src/open-keys.ts';
import { testApply } from '../support/apply.ts';
import { finished, startCli } from '../support/process.ts';

const KEYS = 300;

describe('apply that is killed', () => {
  it(`has made all ${KEYS} keys or none, and each has its secret in its file, at 6 moments`, async () => {
    const text = `keys:\n${Array.from({ length: KEYS }, (_, index) => `  - {name: Key ${index}, roles: [GUEST]}\n`).join('')}`;
    // What it takes undisturbed. The first third is spent on loading modules and reading.
    const duration = await run();
    for (let moment = 1; moment <= 6; moment += 1) await run(duration * (0.4 + moment * 0.1));

    /** Applies, and looks at what is there afterwards. @returns how long it took, in milliseconds */
    async function run(killAfter?: number): Promise<number> {
      const test = testApply();
      test.declare(text);
      await test.cli.create('Before');
      const started = performance.now();
      const child = startCli(['apikey', 'apply', '-f', test.file, '--secrets-dir', test.secrets, '--database', test.cli.database]);
      const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfter);
      const { code, signal } = await finished(child);
      clearTimeout(timer);
      const took = performance.now() - started;
      assert.ok(code === 0 || (timer && signal === 'SIGKILL'));

      const file = new Database(test.cli.database);
      const made = file.prepare('SELECT count(*) FROM api_keys WHERE managed = 1').pluck().get();
      const entries = file.prepare("SELECT count(*) FROM audit_log WHERE action = 'CREATE'").pluck().get();
      file.close();
      assert.ok(made === KEYS || (made === 0 && timer), String(made));
      assert.equal(entries, Number(made) + 1);
      const keys = await openKeys({ database: test.cli.database });
      for (let index = 0; index < Number(made); index += 99) {
        const secret = readFileSync(join(test.secrets, `Key ${index}`), 'utf8').trim();
        const found = await keys.authenticate(secret);
        assert.ok('principal' in found && found.principal.key.name === `Key ${index}`);
      }
      await keys.close();

      // The next one goes on from there.
      const again = await test.json('--secrets-dir', test.secrets);
      assert.equal(again['created'], KEYS - Number(made));
      assert.equal(readdirSync(test.secrets).filter((name) => name.startsWith('Key ')).length, KEYS);
      return took;
    }
  });
});
