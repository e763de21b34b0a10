import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openKeys } from '../../src/service/open-keys.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { startConfiguredService } from '../support/configured-service.ts';
import { createPrincipal } from '../support/keys.ts';
import { tempFolder } from '../support/temp.ts';
import { Consent } from '../../src/features/consent/consent.ts';

const POLICY = 'policy: { maxLifetime: 90d, requireExpiry: true, grantableByKeys: [VIEWER], disableUnused: 60d }\n';
const ENDLESS = 'would never expire, which the policy does not allow (requireExpiry: true)';

describe('the policy of svc-api.yaml', () => {
  let cli: TestCli;
  let folder: string;
  let file: string;
  const run = (args: readonly string[], input = '') =>
    cli.run(['apikey', ...args], { input, env: { SVC_API_CONFIG: file } });
  const passes = async (...args: string[]) => {
    const { code, stderr, stdout } = await run(args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const refuses = async (args: readonly string[], message = ENDLESS, input = '') => {
    const { code, stderr, stdout } = await run(args, input);
    assert.equal(code, 1, stderr);
    const said = stderr + stdout;
    assert.ok(said.replaceAll(/\s+/g, ' ').includes(message), said);
    assert.match(said, /POLICY_VIOLATED/);
  };
  beforeEach(() => {
    cli = testCli();
    folder = tempFolder();
    file = join(folder, 'svc-api.yaml');
    writeFileSync(file, POLICY);
  });

  it('holds on the command line, too, at each command that makes or changes keys', async () => {
    await cli.given('Old');
    await refuses(['create', 'New', '--roles', 'VIEWER']);
    await refuses(['create', 'New', '--roles', 'VIEWER', '--dry-run']);
    await refuses(['--create', '--name', 'Old', '--roles', 'VIEWER', '--overwrite']);
    await refuses(['create', 'New', '--roles', 'VIEWER', '--expires-in', '91d'], '(maxLifetime: 90d). Let it expire');
    await passes('create', 'New', '--roles', 'ADMIN', '--expires-in', '90d');
    await passes('update', 'Old', '--description', 'Before the policy');
    await refuses(['update', 'Old', '--expires-in', '91d'], '(maxLifetime: 90d). Let it expire');
    await refuses(['update', 'New', '--no-expiry']);
    await passes('rotate', 'Old', '--grace', '1h');
    await passes('rotate', 'Old', '--finish');
    await passes('disable', 'Old');
    await refuses(['enable', 'Old']);
    const keys = join(folder, 'keys.yaml');
    writeFileSync(keys, 'keys: [{ name: Declared, roles: [VIEWER] }]');
    await refuses(['apply', '-f', keys, '--json']);
    await refuses(['apply', '-f', keys, '--dry-run']);
    const imported = JSON.stringify({ name: 'Moved', secret: 'a'.repeat(30), roles: ['VIEWER'] });
    await refuses(['import'], ENDLESS, imported);
    await passes('delete', '--name', 'Old');
    await refuses(['exec', '--roles', 'VIEWER', '--ttl', '91d', '--', 'true'], '(maxLifetime: 90d)');
    assert.deepEqual((await passes('list')).match(/^\w+/gm), ['New']);
  });

  it('is reported as JSON, with its code', async () => {
    const { code, stdout } = await run(['create', 'New', '--roles', 'VIEWER', '--json']);
    const { error, code: name } = JSON.parse(stdout) as { error: string; code: string };
    assert.deepEqual([code, name, error.includes('(requireExpiry: true)')], [1, 'POLICY_VIOLATED', true]);
  });

  it('requires an expiry for adopted keys, and for keys that applications request', async () => {
    const keys = await openKeys({ database: cli.database });
    try {
      const { principal } = await createPrincipal(keys, { name: 'Creator', roles: ['ADMIN'] });
      await keys.create({ name: 'Child', roles: ['VIEWER'] }, principal);
      await keys.setEnabled(principal.apiKey.id, false, OPERATOR);
      const wanted = { client: { id: 'app', name: 'App', redirects: [] }, roles: ['VIEWER'], permissions: [] };
      const { handle } = await keys.feature(Consent).ask(wanted);
      await refuses(['update', 'Child', '--detach']);
      await refuses(['requests', 'approve', handle, '--yes']);
      await passes('requests', 'approve', handle, '--expires-in', '90d', '--yes');
    } finally {
      await keys.close();
    }
  });

  it('is that of the server where commands work on one', async () => {
    const test = await startConfiguredService(POLICY);
    try {
      const input = { name: 'Admin', roles: ['ADMIN'], expiresIn: '90d' };
      const { secret } = await createPrincipal(test.keys, input);
      const env = { SVC_API_SERVER: test.url, SVC_API_KEY: secret };
      const create = (...args: string[]) =>
        runCliHere(['apikey', 'create', 'New', '--expires-in', '1d', ...args, '--json'], { env });
      const { code, stdout } = await create('--roles', 'ADMIN');
      assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [1, 'POLICY_VIOLATED']);
      assert.equal((await create('--roles', 'VIEWER')).code, 0);
    } finally {
      await test.stop();
    }
  });
});
