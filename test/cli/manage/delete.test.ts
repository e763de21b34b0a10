import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { openKeys } from '../../../src/service/open-keys.ts';
import { describeOnEachAndRemotely, isRemote, itOnStores } from '../../support/dialects.ts';
import { testCli } from '../../support/cli.ts';
import { keysIn } from '../../support/stored.ts';
import { errorText } from '../../support/errors.ts';
import { authenticate } from '../../support/keys.ts';

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

describeOnEachAndRemotely('apikey --delete', () => {
  it('deletes a key by its name, in any of its spellings, and says how many', async () => {
    const cli = testCli();
    await cli.given('Caf\u00e9 1');
    const result = await cli.run(['apikey', '--delete', '--name', ' Cafe\u0301 1 ']);
    assert.deepEqual(result, { stdout: 'Successfully deleted 1 API key\n', stderr: '', code: 0, signal: null });
    assert.equal((await cli.run(['apikey', '--delete', '--name', 'Caf\u00e9 1'])).code, 1, 'it is gone');
  });

  it('prints the count, the ids and the names with --json', async () => {
    const cli = testCli();
    const { id } = await cli.given('Robot');
    const result = await cli.run(['apikey', '--delete', '--name', 'Robot', '--json']);
    assert.deepEqual(result, {
      stdout: json({ deleted: 1, keys: [{ id, name: 'Robot' }] }),
      stderr: '',
      code: 0,
      signal: null,
    });
  });

  it('deletes and counts the keys that the key had created', async () => {
    const cli = testCli();
    const parents = [await cli.given('Parent', { roles: ['ADMIN'] }), await cli.given('Other', { roles: ['ADMIN'] })];
    const keys = await openKeys({ database: cli.database });
    const children = [];
    for (const { key } of parents) {
      const result = await authenticate(keys, key);
      assert.ok('principal' in result);
      children.push(
        (await keys.create({ name: `Child of ${result.principal.apiKey.name}`, roles: ['GUEST'] }, result.principal))
          .apiKey,
      );
    }
    const plain = await cli.run(['apikey', '--delete', '--name', 'Parent']);
    const asJson = await cli.run(['apikey', '--delete', '--name', 'Other', '--json']);
    assert.equal(plain.stdout, 'Successfully deleted 2 API keys\n');
    const deleted = [
      { id: parents[1]!.id, name: 'Other' },
      { id: children[1]!.id, name: 'Child of Other' },
    ];
    assert.equal(asJson.stdout, json({ deleted: 2, keys: deleted }));
    await keys.close();
    assert.deepEqual(await keysIn(cli.database), []);
  });

  it('fails when no key has the name: variant A', async () => {
    const cli = testCli();
    await cli.given('robot');
    const [plain, asJson] = await Promise.all([
      cli.run(['apikey', '--delete', '--name', 'Robot']),
      cli.run(['apikey', '--delete', '--name', 'Robot', '--json']),
    ]);
    const text = 'No API keys found to delete: no API key is named "Robot". Did you mean "robot"?';
    assert.deepEqual(plain, { stdout: '', stderr: `${text}\n`, code: 1, signal: null });
    assert.deepEqual(asJson, { stdout: json({ deleted: 0, error: text }), stderr: '', code: 1, signal: null });
  });

  itOnStores('says so if a named key cannot exist because there is no store', async () => {
    const cli = testCli();
    const { database } = cli;
    const { stderr, code } = await cli.run(['apikey', '--delete', '--name', 'Robot']);
    const store = database.startsWith('postgres') ? 'postgres://' : database;
    assert.ok(
      stderr.startsWith(`No API keys found to delete: no API key is named "Robot": the key store ${store}`),
      stderr,
    );
    assert.match(stderr, /does not exist\n/);
    assert.equal(code, 1);
  });

  itOnStores('answers without failing when there is nothing to choose from: variant B', async () => {
    const { stdout, ...result } = await testCli().run(['apikey', '--delete', '--json']);
    const { message, ...rest } = JSON.parse(stdout) as { message: string };
    assert.match(message, /^No API keys found to delete: there are none in \S+$/);
    assert.deepEqual([rest, result], [{ deleted: 0 }, { stderr: '', code: 0, signal: null }]);
  });

  it('asks for --name if there are keys and no terminal', async () => {
    const cli = testCli();
    await cli.given('Robot');
    const [plain, asJson] = await Promise.all([
      cli.run(['apikey', '--delete']),
      cli.run(['apikey', '--delete', '--json']),
    ]);
    const error =
      'The key to delete is missing. Pass --name <name>; you can only choose keys on a terminal, without --json and --no-input.';
    assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error), code: 2, signal: null });
    assert.deepEqual(asJson, { stdout: json({ deleted: 0, error, code: 'USAGE' }), stderr: '', code: 2, signal: null });
  });

  it('refuses a name that no key can have, without making a store', async () => {
    const cli = testCli();
    const [plain, asJson] = await Promise.all([
      cli.run(['apikey', '--delete', '--name', 'my-key']),
      cli.run(['apikey', '--delete', '--name', '', '--json']),
    ]);
    assert.deepEqual(
      [plain.stderr, plain.code],
      [errorText('NAME_INVALID', 'The name may only contain letters, digits and spaces; found "-" (U+002D).'), 2],
    );
    assert.equal(
      asJson.stdout,
      json({ deleted: 0, error: 'The name is empty: it needs at least one letter or digit.', code: 'NAME_INVALID' }),
    );
    assert.equal(asJson.code, 2);
    if (!isRemote()) assert.ok(!existsSync(cli.database));
  });
});
