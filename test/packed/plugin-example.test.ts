import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, hostEnv, installHost, mustRun, ON_CORE, packedFile } from '../support/host.ts';
import { finished, ROOT, startCli } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

type Cli = (...args: readonly string[]) => Promise<string>;

describe('the plugin of the examples, packed', () => {
  let tarball: string;
  before(async () => {
    const folder = tempFolder();
    await mustRun('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], {
      cwd: join(ROOT, 'examples/plugins/svc-api-team'),
    });
    tarball = join(folder, readdirSync(folder)[0]!);
  });

  async function hasTeams(cli: Cli): Promise<void> {
    await cli('apikey', 'create', '--name', 'CI', '--roles', 'GUEST', '--team', 'Payments');
    await cli('apikey', 'create', '--name', 'Other', '--roles', 'GUEST');
    const { keys } = JSON.parse(await cli('apikey', 'list', '--team', 'payments', '--json')) as { keys: object[] };
    assert.deepEqual(
      keys.map((key) => [(key as { name: string }).name, (key as { team: string }).team]),
      [['CI', 'Payments']],
    );
    assert.match(await cli('apikey', 'create', '--help'), /--team=<text>/);
  }

  it('works in svc-api, by plugins install, and is gone after plugins uninstall', async () => {
    const home = tempFolder();
    const env = hostEnv({ XDG_DATA_HOME: home, HOME: home });
    const run = (...args: readonly string[]) => finished(startCli(args, { env }));
    const cli: Cli = async (...args) => {
      const { code, stdout, stderr } = await run(...args);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.equal(await cli('plugins'), 'No plugins installed.\n');
    assert.equal(await cli('plugins', 'install', tarball), 'Installed svc-api-team 1.0.0.\n');
    assert.equal(await cli('plugins', 'install', tarball), 'Installed svc-api-team 1.0.0.\n');
    assert.equal(await cli('plugins'), 'svc-api-team 1.0.0\n');
    await hasTeams(cli);
    assert.equal(await cli('plugins', 'uninstall', 'svc-api-team'), 'Uninstalled svc-api-team.\n');
    assert.doesNotMatch(await cli('apikey', 'show', 'CI', '--json'), /team/);
    await cli('plugins', 'install', join(ROOT, 'examples/plugins/svc-api-team'));
    assert.match(await cli('apikey', 'show', 'CI', '--json'), /"team": "Payments"/);

    const unknown = await run('plugins', 'uninstall', 'svc-api-taem');
    assert.deepEqual([unknown.code, /Did you mean svc-api-team/.test(unknown.stderr)], [2, true]);
    const missing = await run('plugins', 'install', join(home, 'nothing.tgz'));
    assert.deepEqual([missing.code, /PLUGIN_FAILED/.test(missing.stderr)], [1, true]);
    const noPlugin = await run('plugins', 'install', join(ROOT, 'examples/web-app'));
    assert.match(noPlugin.stderr, /is not a plugin/);
    assert.equal(await cli('plugins'), 'svc-api-team 1.0.0\n');
  });

  it('works in a host that lists it', async () => {
    const host: Host = await installHost(
      { 'svc-api': `file:${packedFile()}`, ...ON_CORE[5], 'svc-api-team': `file:${tarball}` },
      (manifest) => manifest.oclif.plugins?.push('svc-api-team'),
    );
    await hasTeams(async (...args) => {
      const { code, stdout, stderr } = await host.cli(args);
      assert.equal(code, 0, stderr);
      return stdout;
    });
  });
});
