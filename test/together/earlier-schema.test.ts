import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { tempFolder } from '../support/temp.ts';

/**
 * A store of schema 33, made by the last version with that schema (commit fdeb30e2): keys Admin, Child and Off, and a
 * deleted one. With its export by the same version, and the secret of Child.
 */
const FIXTURE = join(import.meta.dirname, '../fixtures/schema-33');
const EXPORT = readFileSync(join(FIXTURE, 'export.jsonl'), 'utf8');
const CHILD = readFileSync(join(FIXTURE, 'child.key'), 'utf8');

const linesOf = (text: string) => text.trim().split('\n').toSorted();

describe('a store of the schema before', () => {
  it('is refused with the way by export and import, and stays as it is', async () => {
    const database = join(tempFolder(), 'keys.sqlite');
    const store = gunzipSync(readFileSync(join(FIXTURE, 'keys.sqlite.gz')));
    writeFileSync(database, store);
    const cli = testCli(database);
    for (const args of [
      ['apikey', 'list'],
      ['apikey', 'create', '--name', 'New', '--roles', 'GUEST'],
      ['apikey', 'export'],
      ['backup', join(tempFolder(), 'backup')],
    ]) {
      const { code, stderr } = await cli.run(args);
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /"svc-api apikey export --with-digests" with that version, and "svc-api apikey import" with/,
      );
      assert.match(stderr, /Code: STORE_OLDER/);
    }
    const { code, stdout } = await cli.run(['apikey', 'doctor']);
    assert.equal(code, 1);
    assert.match(stdout, /STORE_OLDER/);
    assert.deepEqual(readFileSync(database), store);
  });
});

describeOnEach('an export by the version with the schema before', () => {
  it('is imported whole: the keys are as they were, and their secrets work', async () => {
    const cli = testCli();
    const run = async (args: string[], input = '') => {
      const { code, stdout, stderr } = await cli.run(args, { input });
      assert.equal(code, 0, stdout + stderr);
      return stdout;
    };
    await run(['apikey', 'import', '-'], EXPORT);
    assert.deepEqual(linesOf(await run(['apikey', 'export', '--with-digests'])), linesOf(EXPORT));
    await run(['apikey', 'verify', '-', '--permission', 'DOCKER:READ_OWN'], CHILD);
    await run(['apikey', 'log', '--verify']);
  });
});
