import assert from 'node:assert/strict';
import { describeOnEachAndRemotely, itOnStores } from '../../support/dialects.ts';
import { spawn } from 'node:child_process';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { SECRET, type TestCli, testCli } from '../../support/cli.ts';
import { BIN, cleanEnv, finished } from '../../support/process.ts';
import { startServe } from '../../support/serve.ts';
import { query } from '../../support/server.ts';
import { keyNamed } from '../../support/stored.ts';
import { until } from '../../support/until.ts';
import { migratedStore } from '../../support/temp.ts';

describeOnEachAndRemotely('apikey rotate', () => {
  let cli: TestCli;
  let old: { key: string; id: string };
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    old = await cli.given('CI deploy');
  });
  const rotate = (...args: string[]) => cli.run(['apikey', 'rotate', ...args]);
  /** The status of each secret, or that it is unknown. */
  const statusesOf = (...secrets: string[]) =>
    withKeys({ database: cli.database }, async (keys) => {
      const results = await Promise.all(secrets.map((secret) => keys.identify(secret, OPERATOR)));
      return results.map((found) => ('apiKey' in found ? found.status : found.unknown));
    });
  const rotationOf = async () => (await keyNamed(cli.database, 'CI deploy'))!.rotation;

  it('writes the new secret alone to stdout; the previous one works for a day', async () => {
    const before = Date.now();
    const { stdout, stderr, code } = await rotate('CI deploy');
    const after = Date.now();
    assert.match(stdout, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\n$/);
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^Rotated API key "CI deploy": its new secret is svc_.{12}_…, and is not shown again\. The previous one, svc_.{12}_…, works until \S+Z \(in 1 day\)\.\n$/,
    );
    assert.deepEqual(await statusesOf(old.key, stdout.trim()), ['ACTIVE', 'ACTIVE']);
    const graceBegan = (await rotationOf())!.previousEndsAt! - 86_400_000;
    assert.ok(graceBegan >= before && graceBegan <= after, String(graceBegan - before));
  });

  it('answers in JSON as create does, and takes the name by a flag', async () => {
    const { stdout, stderr } = await rotate('--name', 'CI deploy', '--grace', '0s', '--json');
    const { key, ...rest } = JSON.parse(stdout) as { key: string };
    assert.match(key, SECRET);
    assert.deepEqual(rest, { name: 'CI deploy', id: old.id });
    assert.match(stderr, /^Rotated/);
    assert.deepEqual(await statusesOf(old.key, key), ['ROTATED', 'ACTIVE']);
  });

  it('is shown by list and show while it is under way, and ended by --finish and --rollback', async () => {
    const { stdout } = await rotate('CI deploy', '--activate', 'on-first-use', '--grace', '1h');
    const list = await cli.run(['apikey', 'list']);
    assert.match(
      list.stdout,
      /\tsvc_.{12}_… accepted until the new secret is used and the grace period is over, not used since\n$/,
    );
    const shown = JSON.parse((await cli.run(['apikey', 'show', 'CI deploy', '--json'])).stdout) as { rotation: object };
    assert.deepEqual(Object.keys(shown.rotation), [
      'startedAt',
      'previousPrefix',
      'previousEndsAt',
      'previousLastUsedAt',
    ]);
    const second = await rotate('CI deploy');
    assert.deepEqual([second.code, second.stdout], [1, '']);
    assert.match(
      second.stderr,
      /rotated already, .* once that is in use\. Or end that rotation, with --finish or --rollback\.\nCode: ROTATION_IN_PROGRESS\n/,
    );
    const back = await rotate('CI deploy', '--rollback', '--json');
    assert.equal((JSON.parse(back.stdout) as { apiKey: { rotation: null } }).apiKey.rotation, null);
    assert.deepEqual(await statusesOf(old.key, stdout.trim()), ['ACTIVE', 'ROTATED']);
    const none = await rotate('CI deploy', '--finish', '--json');
    assert.deepEqual([none.code, (JSON.parse(none.stdout) as { code: string }).code], [1, 'ROTATION_NONE']);
    const next = await rotate('CI deploy');
    assert.match(
      (await rotate('CI deploy', '--finish')).stdout,
      /^API key "CI deploy" has one secret, svc_.{12}_…\. The previous secret is refused now\.\n$/,
    );
    assert.deepEqual(await statusesOf(old.key, next.stdout.trim()), ['ROTATED', 'ACTIVE']);
  });

  for (const [what, code, ...args] of [
    ['no name', 'USAGE'],
    ['two names', 'USAGE', 'CI deploy', '--name', 'CI deploy'],
    ['no such key', 'NOT_FOUND', 'nobody'],
    ['a bad grace', 'EXPIRY_INVALID', 'CI deploy', '--grace', '1 day'],
    ['a bad activation', 'USAGE', 'CI deploy', '--activate', 'later'],
    ['finish and rollback', 'USAGE', 'CI deploy', '--finish', '--rollback'],
    ['finish and grace', 'USAGE', 'CI deploy', '--finish', '--grace', '1h'],
  ] as const) {
    it(`refuses ${what}, and changes nothing`, async () => {
      const { stdout, code: exit } = await rotate(...args, '--json');
      assert.deepEqual([(JSON.parse(stdout) as { code: string }).code, exit], [code, code === 'NOT_FOUND' ? 1 : 2]);
      assert.equal(await rotationOf(), null);
    });
  }

  itOnStores('takes the new secret back when it cannot be written out', async () => {
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
        /The key has its old secret alone again, because nobody has the new one\.\nCode: OUTPUT_FAILED\n/,
      );
      assert.deepEqual([await statusesOf(old.key), await rotationOf()], [['ACTIVE'], null]);
    }
  });

  itOnStores(
    'begins the grace when a server sees the new secret, and tells when the previous one was used',
    async () => {
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
    },
  );
});
