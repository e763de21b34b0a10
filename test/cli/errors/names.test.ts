import assert from 'node:assert/strict';
import { didYouMeanKey } from '../../../src/cli/explain/did-you-mean.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { runCliHere } from '../../support/cli-here.ts';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { remoteStore, stopRemoteStores } from '../../support/remote.ts';

const VERBS: readonly (readonly string[])[] = [
  ['show'],
  ['update', '--description', 'x'],
  ['enable'],
  ['disable'],
  ['rotate'],
  ['delete'],
];

describeOnEachAndRemotely('the name of a key that nearly exists', () => {
  it('gets a suggestion from every command that takes one', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    await cli.given('Backup of Zürich');
    const typed = {
      'CI deply': 'CI deploy',
      'ci DEPLOY': 'CI deploy',
      CIdeploy: 'CI deploy',
      'CI dpeloy': 'CI deploy',
    };
    const others = { 'Backup of Zurich': 'Backup of Zürich', 'Backup off Zürich': 'Backup of Zürich' };
    for (const [name, meant] of Object.entries({ ...typed, ...others }))
      for (const [verb, ...flags] of [...VERBS, ['explain', 'DOCKER:READ_ANY']]) {
        const { stdout, code } = await cli.run(['apikey', verb!, name, ...flags, '--json']);
        const { error } = JSON.parse(stdout) as { error: string };
        assert.ok(error.endsWith(`"${name}". Did you mean "${meant}"?`), `${verb} ${name}: ${error}`);
        assert.equal(code, 1);
      }
  });

  it('gets no suggestion without a similar name', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    const { stderr } = await cli.run(['apikey', 'show', 'Grafana']);
    assert.match(stderr, /^Error: There is no API key named "Grafana"\. Run "svc-api apikey list" to see all\.\n/);
  });
});

describe('the name of a key that nearly exists', () => {
  after(stopRemoteStores);

  it('gets a suggestion from the commands that need the store', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    const { stderr } = await cli.run(['apikey', 'update', 'ci deploy', '--detach']);
    assert.match(stderr, /Did you mean "CI deploy"\?/);
  });

  it('gets a suggestion however short it is', async () => {
    const cli = testCli();
    for (const name of ['srv', 'db 1']) await cli.given(name);
    for (const [typed, meant] of [
      ['srw', 'srv'],
      ['drv', 'srv'],
      ['db 2', 'db 1'],
    ]) {
      const { stderr } = await cli.run(['apikey', 'show', typed!]);
      assert.match(stderr, new RegExp(`"${typed}". Did you mean "${meant}"\\?`));
    }
  });

  it('is not shown to a key that may not read it', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    const server = await remoteStore(cli.database);
    const { key: secret } = await withKeys({ database: cli.database }, (keys) =>
      keys.create({ name: 'Own', permissions: ['API_KEY:READ_OWN'] }, OPERATOR),
    );
    const env = { SVC_API_SERVER: server.url, SVC_API_KEY: secret };
    const { stderr } = await runCliHere(['apikey', 'show', 'CI deply'], { env });
    assert.match(stderr, /There is no API key named "CI deply"\. Run "svc-api apikey list"/);
  });

  it('is looked up a few times, whatever was typed, and never if it may be a secret', async () => {
    const searched: string[] = [];
    const search = async (text: string) => {
      searched.push(text);
      return [];
    };
    assert.equal(await didYouMeanKey('x'.repeat(100), search), undefined);
    assert.ok(searched.length <= 6, searched.join());
    searched.length = 0;
    await didYouMeanKey('svc_0a1B2c3D4e5F_' + 'x'.repeat(49), search);
    assert.deepEqual(searched, []);
    const fails = () => Promise.reject(new Error('away'));
    assert.equal(await didYouMeanKey('CI', fails), undefined);
  });
});
