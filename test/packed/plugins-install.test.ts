import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { installHost, packedFile, run, serveHost, withPluginsCommand } from '../support/host.ts';
import { blockWith } from '../support/pages.ts';
import { ROOT, runCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

describe('a host whose users install plugins', () => {
  it('gets the commands as docs/installing.md has it, and loses them by `plugins uninstall`', async () => {
    // This host has no hook svc-api:schema.
    const host = await installHost({ '@oclif/plugin-plugins': '^7' }, (manifest) => {
      withPluginsCommand(manifest);
      delete manifest.oclif.hooks;
    });
    const before = await host.cli(['--help']);
    const bin = tempFolder();
    symlinkSync(join(host.folder, 'bin/run.js'), join(bin, 'acme'));
    const created = await run('sh', ['-ec', blockWith('acme plugins install', 'docs/installing.md')], {
      cwd: dirname(packedFile()),
      env: {
        PATH: [bin, join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
        XDG_DATA_HOME: join(host.folder, 'home'),
      },
    });
    assert.equal(created.code, 0, created.stderr);
    const [secret] = /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/m.exec(created.stdout)!;
    const help = await host.cli(['apikey', '--help']);
    assert.match(help.stdout, /\$ acme apikey/);
    const unknown = await host.cli(['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY', '--json']);
    assert.deepEqual([unknown.code, (JSON.parse(unknown.stdout) as { code: string }).code], [2, 'PERMISSION_INVALID']);
    const { url, stop } = await serveHost(host);
    assert.deepEqual((await query(url, secret, '{ me { name } }')).body, {
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
    const installed = await host.cli(['plugins', 'install', `file:${packedFile()}`]);
    assert.equal(installed.code, 0, installed.stderr);
    const created = await host.cli(['apikey', '--create', '--name', 'Backup job', '--permissions', 'BACKUP:READ_ANY']);
    assert.equal(created.code, 0, created.stderr);
    const { url, stop } = await serveHost(host);
    assert.deepEqual((await query(url, created.stdout.trim(), '{ backups { id } }')).body, {
      data: { backups: [{ id: '1' }] },
    });
    await stop();
  });
});
