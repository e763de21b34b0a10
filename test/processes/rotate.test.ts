import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { BIN, cleanEnv, finished } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { keyNamed } from '../support/stored.ts';
import { migratedStore } from '../support/temp.ts';
import { until } from '../support/until.ts';

describeOnEach('a program that rotates a key', () => {
  let cli: TestCli;
  let old: { key: string; id: string };
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    old = await cli.given('CI deploy');
  });
  const rotate = (...args: string[]) => cli.run(['apikey', 'rotate', ...args]);
  /** The status of each secret, or `unknown`. */
  const statusesOf = (...secrets: string[]) =>
    withKeys({ database: cli.database }, async (keys) => {
      const results = await Promise.all(secrets.map((secret) => keys.identify(secret, OPERATOR)));
      return results.map((found) => ('apiKey' in found ? found.status : found.unknown));
    });
  const rotationOf = async () => (await keyNamed(cli.database, 'CI deploy'))!.rotation;

  it('takes the new secret back when it cannot be written out', async () => {
    for (const [target, ...more] of [
      ['/dev/full'],
      ['/dev/full', '--grace', '0s'],
      ['&-', '--activate', 'on-first-use'],
    ]) {
      const script = target === '&-' ? '"$@" >&-' : `"$@" > ${target}`;
      const child = spawn(
        'bash',
        ['-c', script, 'bash', process.execPath, BIN, 'apikey', 'rotate', 'CI deploy', ...more],
        {
          env: cleanEnv({ SVC_API_DATABASE: cli.database }),
        },
      );
      const { stderr, code } = await finished(child);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /The new secret could not be delivered, so the rotation was undone\.\nCode: OUTPUT_FAILED\n/,
      );
      assert.deepEqual([await statusesOf(old.key), await rotationOf()], [['ACTIVE'], null]);
    }
  });

  it('begins the grace when a server sees the new secret, and shows when the previous one was used', async () => {
    const { stdout } = await rotate('CI deploy', '--activate', 'on-first-use', '--grace', '1h');
    const server = await startServe(cli.database);
    const use = async (secret: string) => assert.equal((await query(server.url, secret, '{ online }')).status, 200);
    await use(old.key);
    assert.equal((await rotationOf())!.previousEndsAt, null);
    await use(stdout.trim());
    await until(async () => (await rotationOf())!.previousEndsAt !== null);
    await server.stop();
    const list = await cli.run(['apikey', 'list']);
    assert.match(list.stdout, /\t2\tsvc_.{12}_… accepted until \S+Z, last used \S+Z\n$/);
    const log = await cli.run(['apikey', 'log', '--action', 'rotate-activate', '--json']);
    const { entries } = JSON.parse(log.stdout) as { entries: { actor: object }[] };
    assert.deepEqual(
      entries.map(({ actor }) => actor),
      [{ kind: 'KEY', id: old.id, name: 'CI deploy' }],
    );
  });
});
