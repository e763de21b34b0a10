import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { testCli } from '../../support/cli.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { describeOnEach, describeOnEachAndRemotely } from '../../support/dialects.ts';
import { authenticate } from '../../support/keys.ts';
import { cliOnTerminal, KEYS } from '../../support/pty.ts';
import { remoteStore, stopRemoteStores } from '../../support/remote.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';

type Json = Record<string, unknown>;
const parsed = (stdout: string) => JSON.parse(stdout) as Json;
const namesIn = ({ keys }: Json) => (keys as { name: string }[]).map(({ name }) => name);

describeOnEachAndRemotely('revoking a key by its name', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
  });
  const revoke = async (...args: string[]) => {
    const { stdout, code } = await cli.run(['apikey', 'revoke', ...args, '--json']);
    return { exit: code, ...parsed(stdout) } as Json;
  };
  const statusOf = async (name: string) => parsed((await cli.run(['apikey', 'show', name, '--json'])).stdout)['status'];

  it('disables it, once', async () => {
    const { id } = await cli.create('CI');
    assert.equal((await revoke('CI'))['changed'], true);
    assert.equal(await statusOf('CI'), 'DISABLED');
    assert.equal((await revoke(id))['changed'], false);
  });

  it('deletes it with --delete', async () => {
    await cli.create('CI');
    const { deleted } = await revoke('--name', 'CI', '--delete');
    assert.equal(deleted, 1);
    assert.equal((await revoke('CI'))['code'], 'NOT_FOUND');
  });

  it('changes nothing with --dry-run', async () => {
    await cli.create('CI');
    for (const more of [[], ['--delete']]) {
      const plan = await revoke('CI', '--dry-run', ...more);
      assert.deepEqual([plan['dryRun'], namesIn(plan)], [true, ['CI']]);
    }
    assert.equal(await statusOf('CI'), 'ACTIVE');
  });

  it('refuses flags that do not go together, and a missing name', async () => {
    await cli.create('CI');
    for (const args of [
      ['CI', '--delete', '--undo-changes', '--yes'],
      ['CI', '--since', '2h'],
      [],
      ['CI', '--name', 'CI'],
    ])
      assert.deepEqual([(await revoke(...args))['code'], await statusOf('CI')], ['USAGE', 'ACTIVE'], args.join(' '));
  });

  it('refuses a secret as an argument, and does not repeat it', async () => {
    const { key } = await cli.create('CI');
    for (const secret of [key, 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', '4eC39HqLyjWDarjtT1zdp7dc', `${key} `]) {
      const { stdout, stderr, code } = await cli.run(['apikey', 'revoke', secret]);
      assert.match(stderr, /Pipe it: svc-api apikey revoke - < file/);
      assert.deepEqual([stdout, code, stderr.includes(secret.trim().slice(-20))], ['', 2, false]);
    }
    assert.equal(await statusOf('CI'), 'ACTIVE');
  });
});

describeOnEach('revoking a key by its secret', () => {
  let cli: ReturnType<typeof testCli>;
  let key: string;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    ({ key } = await cli.create('CI'));
  });
  const revoke = async (secret: string, ...args: string[]) => {
    const { stdout, code } = await cli.run(['apikey', 'revoke', '-', ...args, '--json'], { input: `${secret}\n` });
    return { exit: code, ...parsed(stdout) } as Json;
  };
  const accepts = (secret: string) =>
    withKeys({ database: cli.database }, async (keys) => 'principal' in (await authenticate(keys, secret)));

  it('disables it, deletes it, or undoes its changes', async () => {
    assert.deepEqual(namesIn(await revoke(key, '--dry-run')), ['CI']);
    assert.equal(await accepts(key), true);
    assert.equal((await revoke(key))['changed'], true);
    assert.equal(await accepts(key), false);
    assert.equal((await revoke(key, '--undo-changes', '--yes'))['exists'], true);
    assert.equal((await revoke(key, '--delete'))['deleted'], 1);
    assert.equal((await revoke(key))['code'], 'NOT_FOUND');
  });

  it('ends only the previous secret of a rotation, if it is that', async () => {
    const rotated = await cli.run(['apikey', 'rotate', 'CI', '--grace', '1h', '--json']);
    const { key: next } = parsed(rotated.stdout) as { key: string };
    assert.deepEqual(namesIn(await revoke(key, '--dry-run')), ['CI']);
    assert.equal(await accepts(key), true);
    assert.equal((await revoke(key))['changed'], true);
    assert.deepEqual([await accepts(key), await accepts(next)], [false, true]);
    assert.equal((await revoke(key))['code'], 'NOT_FOUND');
    assert.equal((await revoke(key, '--delete', '--dry-run'))['exit'], 0);
  });
});

describe('a question whether to revoke a key', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    await cli.create('CI');
  });
  const onTerminal = (...args: string[]) =>
    cliOnTerminal(['apikey', 'revoke', 'CI', ...args], { SVC_API_DATABASE: cli.database });
  const statusOf = async (name: string) => parsed((await cli.run(['apikey', 'show', name, '--json'])).stdout)['status'];

  it('changes nothing if the answer is no, and is not asked with --yes', async () => {
    const asked = onTerminal();
    await asked.answer('Disable "CI"?', KEYS.enter);
    assert.deepEqual([await asked.end(), await statusOf('CI')], [130, 'ACTIVE']);
    assert.deepEqual([await onTerminal('--yes').end(), await statusOf('CI')], [0, 'DISABLED']);
  });

  for (const [question, exit, ...flags] of [
    ['Disable "CI"?', 1],
    ['Delete "CI"?', 0, '--delete'],
    ['Revoke "CI" and undo its changes?', 1, '--undo-changes'],
  ] as const)
    it(`is about that key, and not about a later one of its name: ${question}`, async () => {
      const asked = onTerminal(...flags);
      await asked.see(question);
      await cli.run(['apikey', 'create', 'CI', '--roles', 'GUEST', '--overwrite']);
      asked.type(`y${KEYS.enter}`);
      assert.deepEqual([await asked.end(), await statusOf('CI')], [exit, 'ACTIVE']);
    });
});

describe('revoking a key while svc-api.yaml has an error', () => {
  it('works by its name and its secret, with one warning; only undoing its changes needs the file', async () => {
    const cli = testCli(await migratedStore());
    const file = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(file, 'prefix: acme');
    const run = (args: readonly string[], input = '') =>
      cli.run(['apikey', ...args], { input, env: { SVC_API_CONFIG: file } });
    for (const name of ['Named', 'Deleted', 'Changed']) await run(['create', name, '--roles', 'GUEST']);
    const { stdout: secret } = await run(['create', 'Read', '--roles', 'GUEST']);
    writeFileSync(file, 'prefix: acme\nroles: { EDITOR: [WIKI:READ_ANY] }');
    for (const args of [['Named'], ['Deleted', '--delete'], ['-']]) {
      const { code, stderr } = await run(['revoke', ...args], secret);
      assert.equal(code, 0, stderr);
      assert.equal(stderr.match(/"WIKI" is not a resource/g)?.length, 1, stderr);
    }
    const undone = await run(['revoke', 'Changed', '--undo-changes', '--yes', '--json']);
    assert.deepEqual([undone.code, parsed(undone.stdout)['code']], [2, 'CONFIG_INVALID']);
    writeFileSync(file, 'prefix: acme');
    const { keys } = parsed((await run(['list', '--json'])).stdout) as { keys: { name: string; status: string }[] };
    assert.deepEqual(
      keys.map(({ name, status }) => `${name} ${status}`),
      ['Named DISABLED', 'Changed ACTIVE', 'Read DISABLED'],
    );
  });
});

describe('revoking a key by its secret at a server', () => {
  after(stopRemoteStores);

  it('needs no other key, and does not learn whose it was', async () => {
    const cli = testCli(await migratedStore());
    const { key, id } = await cli.given('CI');
    const { url } = await remoteStore(cli.database);
    const run = (...args: string[]) =>
      runCliHere(['apikey', 'revoke', '-', '--json', '--server', url, ...args], { input: key });
    for (const flag of ['--delete', '--dry-run', '--undo-changes'])
      assert.equal(parsed((await run(flag, '--yes')).stdout)['code'], 'USAGE', flag);
    assert.deepEqual(parsed((await run()).stdout), { apiKey: null, changed: null });
    const disabled = await withKeys({ database: cli.database }, (keys) => keys.findById(id, OPERATOR));
    assert.notEqual(disabled!.disabledAt, null);
  });
});
