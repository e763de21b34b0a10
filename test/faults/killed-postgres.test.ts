import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { testCli } from '../support/cli.ts';
import { startPostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** The processes of a server, found by its data folder. */
function processesOf(data: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === data;
    } catch {
      return false; // It has ended.
    }
  });
}

describe('PostgreSQL with synchronous_commit=off', () => {
  it('that is killed has every change that was reported as done', async () => {
    const place = tempFolder();
    chmodSync(place, 0o755);
    const folder = join(place, 'data of it');
    mkdirSync(folder);
    const data = join(folder, 'data');
    const server = await startPostgresServer(folder);
    const client = new Client({ connectionString: server.url });
    client.on('error', () => {});
    await client.connect();
    // Prevents other writes of the database's log within this time.
    await client.query("alter system set wal_writer_delay = '10s'");
    await client.query('select pg_reload_conf()');
    const { rows } = await client.query<{ synchronous_commit: string }>('show synchronous_commit');
    assert.equal(rows[0]!.synchronous_commit, 'off');
    const cli = testCli(server.url);
    await cli.given('Leaked');
    await cli.run(['apikey', 'disable', 'Leaked']);

    process.kill(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0]), 'SIGKILL');
    await until(() => processesOf(data).length === 0);
    await server.stop();
    const again = await startPostgresServer(folder);
    const { stdout } = await testCli(again.url).run(['apikey', 'show', 'Leaked']);
    assert.match(stdout, /disabled/i);
    await again.stop();
  });
});
