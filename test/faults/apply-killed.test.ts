import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openKeys } from '../../src/service/open-keys.ts';
import { testApply } from '../support/apply.ts';
import { finished, startCli } from '../support/process.ts';
import { authenticate } from '../support/keys.ts';

const KEYS = 300;

describe('apply that is killed', () => {
  const text = `keys:\n${Array.from({ length: KEYS }, (_, index) => `  - {name: Key ${index}, roles: [GUEST]}\n`).join('')}`;
  let duration: number;
  before(async () => {
    duration = await run();
  });

  // The first third is for loading modules and reading.
  for (const part of [0.45, 0.55, 0.65, 0.75, 0.85, 0.95]) {
    it(`after ${part} of its time has made all ${KEYS} keys or none, and the next run leaves each secret in its file`, async () => {
      await run(duration * part);
    });
  }

  /** Applies, and checks the result. @returns the duration in milliseconds */
  async function run(killAfter?: number): Promise<number> {
    const test = testApply();
    test.declare('keys: []');
    await test.json();
    test.declare(text);
    const started = performance.now();
    const child = startCli([
      'apikey',
      'apply',
      '-f',
      test.file,
      '--secrets-dir',
      test.secrets,
      '--database',
      test.cli.database,
    ]);
    const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfter);
    const { code, signal } = await finished(child);
    clearTimeout(timer);
    const took = performance.now() - started;
    assert.ok(code === 0 || (timer && signal === 'SIGKILL'));

    const file = new Database(test.cli.database, { fileMustExist: true });
    const made = file.prepare('SELECT count(*) FROM api_keys WHERE managed = 1').pluck().get();
    const entries = file.prepare("SELECT count(*) FROM audit_log WHERE action = 'CREATE'").pluck().get();
    file.close();
    assert.ok(made === KEYS || (made === 0 && timer), String(made));
    assert.equal(entries, made);
    // The next run continues from there.
    const again = await test.apply(['--secrets-dir', test.secrets, '--json']);
    assert.equal((JSON.parse(again.stdout) as { created: number }).created, KEYS - Number(made));
    const files = readdirSync(test.secrets);
    assert.deepEqual([files.length, files.filter((name) => name.startsWith('Key ')).length], [KEYS, KEYS]);
    const keys = await openKeys({ database: test.cli.database });
    for (let index = 0; index < KEYS; index += 99) {
      const secret = readFileSync(join(test.secrets, `Key ${index}`), 'utf8').trim();
      const found = await authenticate(keys, secret);
      assert.ok('principal' in found && found.principal.apiKey.name === `Key ${index}`);
    }
    await keys.close();
    return took;
  }
});
