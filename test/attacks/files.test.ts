import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { runCli, runCliWithInput } from '../support/process.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

interface Failure {
  error: string;
  code: string;
}

/** Commands that need a store which is there. */
const NEED_A_STORE: readonly (readonly string[])[] = [
  ['list'],
  ['show', 'CI'],
  ['can', 'CI', 'ME:READ_OWN'],
  ['suggest', 'CI'],
  ['log'],
  ['log', '--verify'],
  ['log', '--follow'],
  ['scan', '.'],
  ['scan', '--revoke', '.'],
  ['update', 'CI', '--roles', 'GUEST'],
  ['enable', 'CI'],
  ['disable', 'CI'],
  ['rotate', 'CI'],
  ['adopt', 'CI'],
  ['copy', '--to', 'copy.sqlite'],
];

describeOnEach('a mistyped store', (dialect) => {
  for (const args of NEED_A_STORE) {
    it(`is not created by ${args.join(' ')}, which fails with its path`, async () => {
      const cli = testCli();
      const cwd = tempFolder();
      const { stdout, stderr, code } = await cli.run(
        ['apikey', ...args, '--json'],
        dialect === 'sqlite' ? { cwd } : {},
      );
      const { error, code: reason } = JSON.parse(stdout) as Failure;
      assert.deepEqual([reason, code, stderr], ['STORE_UNAVAILABLE', 1, '']);
      const shown = dialect === 'sqlite' ? cli.database : new URL(cli.database).pathname;
      assert.ok(error.includes(shown) && error.includes('does not exist'), error);
      if (dialect === 'sqlite') assert.deepEqual([readdirSync(dirname(cli.database)), readdirSync(cwd)], [[], []]);
    });
  }

  it('is not created by export, which writes nothing', async () => {
    const cli = testCli();
    const { stdout, stderr, code } = await cli.run(['apikey', 'export']);
    assert.deepEqual([stdout, code], ['', 1]);
    assert.match(stderr, /^Error: The key store \S+ does not exist\. Check the (path|address)\.\n$/);
  });

  it('is not created by delete, which names it', async () => {
    const cli = testCli();
    const chosen = await cli.run(['apikey', '--delete', '--json']);
    const { message } = JSON.parse(chosen.stdout) as { message: string };
    assert.match(message, /^No API keys found to delete: there are none in \S+$/);
    const named = await cli.run(['apikey', '--delete', '--name', 'CI', '--json']);
    assert.deepEqual([chosen.code, named.code], [0, 1]);
    if (dialect === 'sqlite') assert.ok(!existsSync(cli.database));
    assert.equal((await cli.run(['apikey', 'list'])).code, 1, 'there is still none');
  });
});

describe('a mistyped store file', () => {
  it('is not created by verify, which fails with its path', async () => {
    const database = tempStore();
    const args = ['apikey', 'verify', '-', '--json', '--database', database];
    const { stdout, code } = await runCliWithInput('not-a-secret', args);
    const error = `The key store ${database} does not exist. Check the path.`;
    assert.deepEqual([JSON.parse(stdout), code], [{ error, code: 'STORE_UNAVAILABLE' }, 1]);
    assert.ok(!existsSync(database));
  });
});

describe('an empty file in place of the store', () => {
  for (const args of NEED_A_STORE) {
    it(`is not made one by ${args.join(' ')}`, async () => {
      const database = tempStore();
      writeFileSync(database, '');
      const { stdout, code } = await runCli(['apikey', ...args, '--json', '--database', database], {
        cwd: tempFolder(),
      });
      const { error, code: reason } = JSON.parse(stdout) as Failure;
      assert.deepEqual(
        [error, reason, code],
        [`The key store ${database} is an empty file. Check the path.`, 'STORE_UNAVAILABLE', 1],
      );
    });
  }
});
