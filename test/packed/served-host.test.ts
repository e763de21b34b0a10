import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Host, installHost, packPackage } from '../support/host.ts';
import { cleanEnv } from '../support/process.ts';
import { query } from '../support/server.ts';

describe('acme serve', () => {
  let host: Host;
  let server: ChildProcess;
  let url: string;
  before(async () => {
    const tarball = await packPackage();
    host = await installHost({ 'svc-api': `file:${tarball}` });
    server = spawn(process.execPath, [join(host.folder, 'bin/run.js'), 'serve', '--port', '0'], {
      cwd: host.folder,
      env: cleanEnv({ XDG_DATA_HOME: join(host.folder, 'home'), LOG_LEVEL: 'error' }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(server.stdout!, 'data')) as [Buffer];
    url = /^Listening on (http:\S+)\n$/.exec(String(line))![1]!;
  });
  after(async () => {
    server.kill();
    await once(server, 'exit');
  });

  it("guards the host's own resource", async () => {
    const create = async (name: string, ...grants: string[]) =>
      (await host.cli(['apikey', '--create', '--name', name, ...grants])).stdout.trim();
    const [reader, guest] = [
      await create('Backup job', '--permissions', 'BACKUP:READ_ANY,BACKUP:CREATE_ANY'),
      await create('Guest', '--roles', 'GUEST'),
    ];
    assert.deepEqual((await query(url, reader, '{ backups { id } }')).body, { data: { backups: [{ id: '1' }] } });
    assert.deepEqual((await query(url, reader, 'mutation { createBackup { id requestedBy } }')).body, {
      data: { createBackup: { id: '2', requestedBy: 'Backup job' } },
    });
    const refused = await query(url, guest, '{ backups { id } me { name } }');
    assert.deepEqual(refused.body.data, { backups: null, me: { name: 'Guest' } });
    assert.deepEqual(
      refused.body.errors?.map(({ path, extensions }) => ({ path, ...extensions })),
      [{ path: ['backups'], code: 'FORBIDDEN', missing: ['BACKUP:READ_ANY'] }],
    );
  });
});
