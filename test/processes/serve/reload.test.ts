import assert from 'node:assert/strict';
import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestCli, testCli } from '../../support/cli.ts';
import { startCli } from '../../support/process.ts';
import { query } from '../../support/server.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

interface Line {
  pid: number;
  msg: string;
  config?: string;
  faults?: string[];
}

const TAKEN = 'the configuration was loaded';
const REFUSED = 'the configuration was not loaded; the previous one stays in use';
const ROLES = '{ permissions { resources roles { role permissions { resource actions } } } }';

describe('serve, while its configuration changes', () => {
  let cli: TestCli;
  let file: string;
  let child: ChildProcess;
  let log: Line[];
  const declare = (text: string) => writeFileSync(file, text);
  const said = (message: string) => log.filter(({ msg }) => msg === message);
  const start = async (...args: string[]): Promise<string> => {
    log = [];
    child = startCli(['serve', '--port', '0', '--database', cli.database, '--config', file, ...args], {
      env: { LOG_LEVEL: 'info' },
    });
    createInterface({ input: child.stderr! }).on('line', (line) => log.push(JSON.parse(line) as Line));
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    return String(line).slice('Listening on '.length).trim();
  };
  beforeEach(() => {
    cli = testCli();
    file = join(tempFolder(), 'svc-api.yaml');
    declare('resources: [WIKI]\nroles: { EDITOR: [WIKI:READ_ANY, PERMISSION:READ_ANY] }\n');
  });
  afterEach(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  const keyOf = async (...args: string[]) => {
    const { stdout, stderr, code } = await cli.run(['apikey', 'create', 'CI', ...args, '--config', file]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const rolesAt = async (url: string, key: string) => {
    const { body } = await query(url, key, ROLES);
    const found = body.data?.['permissions'] as { roles: { role: string }[] } | null | undefined;
    return found?.roles.map(({ role }) => role).slice(4);
  };

  it('takes it whole or not at all, and says which; keys it has verified follow', async () => {
    const url = await start();
    const key = await keyOf('--roles', 'EDITOR');
    assert.deepEqual(await rolesAt(url, key), ['EDITOR']);
    assert.equal(log.find(({ msg }) => msg === 'listening')?.config, file);

    declare('resources: [WIKI, BOOK]\nroles: { EDITOR: [WIKI:REED_ANY] }\n');
    await until(() => said(REFUSED).length > 0);
    assert.match(said(REFUSED)[0]!.faults![0]!, /svc-api\.yaml:2:19: "WIKI:REED_ANY" is not a permission/);
    assert.deepEqual(await rolesAt(url, key), ['EDITOR']);

    declare('resources: [WIKI]\nroles: { EDITOR: [WIKI:READ_ANY, PERMISSION:READ_ANY], KEEPER: [WIKI:READ_OWN] }\n');
    await until(() => said(TAKEN).length > 0);
    assert.deepEqual(await rolesAt(url, key), ['EDITOR', 'KEEPER']);

    declare('resources: [WIKI]\nroles: { EDITOR: [WIKI:READ_ANY] }\n');
    child.kill('SIGHUP');
    const refusal = async () => (await query(url, key, ROLES)).body.errors?.[0]?.message;
    await until(async () => (await refusal()) === 'This key lacks PERMISSION:READ_ANY.');
    assert.equal(said(REFUSED).length, 1);
  });

  it('takes it in all workers or in none; one that starts later has the same', async () => {
    const url = await start('--workers', '2');
    await until(() => said('listening').length === 2);
    const key = await keyOf('--roles', 'EDITOR');
    const everywhere = async (wanted: string[]) => {
      for (let time = 0; time < 12; time += 1)
        if (JSON.stringify(await rolesAt(url, key)) !== JSON.stringify(wanted)) return false;
      return true;
    };
    declare('resources: [WIKI]\nroles: { KEEPER: [WIKI:READ_OWN], EDITOR: [WIKI:READ_ANY, PERMISSION:READ_ANY] }\n');
    child.kill('SIGHUP');
    // One process can log it twice, for SIGHUP and for the change, before the other does.
    await until(() => new Set(said(TAKEN).map(({ pid }) => pid)).size === 2);
    assert.ok(await everywhere(['KEEPER', 'EDITOR']));

    declare('resources: [wiki]');
    child.kill('SIGHUP');
    await until(() => said(REFUSED).length > 0);
    const [victim] = said('listening');
    process.kill(victim!.pid, 'SIGKILL');
    await until(() => said('listening').length >= 3);
    assert.ok(await everywhere(['KEEPER', 'EDITOR']));
    assert.ok(said(REFUSED).length <= 2, 'one worker says it, for SIGHUP and for the change');
  });

  it('does not start with one that is wrong', async () => {
    declare('resources: [wiki]');
    for (const workers of ['1', '2']) {
      const args = ['serve', '--port', '0', '--config', file, '--workers', workers];
      const { code, stderr } = await cli.runProcess(args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /svc-api\.yaml:1:13: "wiki" is not a resource name/);
    }
  });
});
