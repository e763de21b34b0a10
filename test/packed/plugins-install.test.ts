import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type Host, installHost, packedFile, serveHost, withPluginsCommand } from '../support/host.ts';
import { runCli } from '../support/process.ts';
import { query } from '../support/server.ts';

describe('a host whose users install plugins', () => {
  const install = async (host: Host) => {
    const { code, stderr } = await host.cli(['plugins', 'install', `file:${packedFile()}`]);
    assert.equal(code, 0, stderr);
  };

  it('gets the commands by `plugins install`, and loses them by `plugins uninstall`', async () => {
    // No hook svc-api:schema here.
    const host = await installHost({ '@oclif/plugin-plugins': '^7' }, (manifest) => {
      withPluginsCommand(manifest);
      delete manifest.oclif.hooks;
    });
    const before = await host.cli(['--help']);
    await install(host);
    const help = await host.cli(['apikey', '--help']);
    assert.match(help.stdout, /\$ acme apikey/);
    const created = await host.cli(['apikey', '--create', '--name', 'From acme', '--roles', 'GUEST']);
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stdout, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\n$/);
    const unknown = await host.cli(['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY', '--json']);
    assert.deepEqual([unknown.code, (JSON.parse(unknown.stdout) as { code: string }).code], [2, 'PERMISSION_INVALID']);
    const { url, stop } = await serveHost(host);
    assert.deepEqual((await query(url, created.stdout.trim(), '{ me { name } }')).body, {
      data: { me: { name: 'From acme' } },
    });
    await stop();
    const read = await runCli(['apikey', '--delete', '--name', 'From acme'], {
      env: { XDG_DATA_HOME: join(host.folder, 'home') },
    });
    assert.equal(read.stdout, 'Successfully deleted 1 API key\n', 'svc-api itself uses the same store');
    assert.equal((await host.cli(['plugins', 'uninstall', 'svc-api'])).code, 0);
    assert.deepEqual(await host.cli(['--help']), before);
    assert.notEqual((await host.cli(['apikey', '--delete'])).code, 0);
  });

  it('may bring its own schema, on oclif core 4 as well', async () => {
    const packages = { '@oclif/core': '^4', '@oclif/plugin-help': '^6', '@oclif/plugin-plugins': '^5' };
    const host = await installHost(packages, withPluginsCommand);
    await install(host);
    const created = await host.cli(['apikey', '--create', '--name', 'Backup job', '--permissions', 'BACKUP:READ_ANY']);
    assert.equal(created.code, 0, created.stderr);
    const { url, stop } = await serveHost(host);
    assert.deepEqual((await query(url, created.stdout.trim(), '{ backups { id } }')).body, {
      data: { backups: [{ id: '1' }] },
    });
    await stop();
  });
});
