import assert from 'node:assert/strict';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { SECRET, type TestCli, testCli } from '../../support/cli.ts';
import { keyNamed } from '../../support/stored.ts';
import { migratedStore } from '../../support/temp.ts';

describeOnEachAndRemotely('apikey rotate', () => {
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

  it('writes only the new secret to stdout; the previous one works for a day', async () => {
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
    assert.match(stderr, /^Rotated .* is refused now\.\n$/);
    assert.deepEqual(await statusesOf(old.key, key), ['ROTATED', 'ACTIVE']);
  });

  it('is shown by list and show while it is under way, and ended by --finish and --rollback', async () => {
    const { stdout } = await rotate('CI deploy', '--activate', 'on-first-use', '--grace', '1h');
    const list = await cli.run(['apikey', 'list']);
    assert.match(
      list.stdout,
      /\tsvc_.{12}_… accepted until the new secret is used and the grace period has ended, not used since\n$/,
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
      /already being rotated, .* once the new secret is in use\. Or end that rotation with --finish or --rollback\.\nCode: ROTATION_IN_PROGRESS\n/,
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
});
