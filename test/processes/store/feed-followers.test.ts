import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { configFile } from '../../support/config-file.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { query } from '../../support/server.ts';
import { type ServeProcess, startServe } from '../../support/serve.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describeOnEach('an edge', (dialect) => {
  let cli: ReturnType<typeof testCli>;
  let token: string;
  let servers: ServeProcess[];
  beforeEach(async () => {
    cli = testCli(await migratedStore());
    ({ key: token } = await cli.given('Edge', { roles: [], permissions: ['EDGE:READ_ANY'] }));
    servers = [];
  });
  afterEach(async () => {
    for (const server of servers) {
      server.kill('SIGCONT');
      await server.stop();
    }
  });

  const start = async (...args: string[]) => {
    const server = await startServe(cli.database, ['--port', '0', ...args]);
    servers.push(server);
    return server;
  };
  const get = (server: ServeProcess, path: string) =>
    fetch(server.url + path, { headers: { authorization: `Bearer ${token}`, connection: 'close' } });
  const load = async (server: ServeProcess) => lastOf(await (await get(server, '/feed/snapshot')).text()).cursor;
  /** Polls for changes as an edge does. @returns the end of its lease, by `performance.now` */
  const ask = async (server: ServeProcess, after: string, id: string = randomUUID()) => {
    const query = new URLSearchParams({ after, edge: id, name: 'test', lease: '60000' });
    let [askedAt, answer]: [number, Response | undefined] = [0, undefined];
    // It answers 503 until it has checked its store, which takes longer on a busy machine.
    await until(async () => {
      askedAt = performance.now();
      answer = await get(server, `/feed?${String(query)}`);
      return answer.status !== 503;
    });
    const text = await answer!.text();
    const { cursor, leaseMs } = lastOf(text);
    assert.ok(leaseMs > 0, text);
    return { cursor, text, until: askedAt + leaseMs };
  };
  const follow = async (server: ServeProcess) => ask(server, await load(server));
  const deletedAt = async (name: string) => {
    const { code, stderr } = await cli.run(['apikey', 'delete', name, '--yes']);
    assert.equal(code, 0, stderr);
    return performance.now();
  };

  for (const signal of ['SIGKILL', 'SIGTERM'] as const)
    it(`may answer no more once a key is deleted, also where ${signal} has ended the server that it follows`, async () => {
      await cli.given('CI');
      const server = await start();
      const { until: end } = await follow(server);
      servers = [];
      await server.stop(signal);
      assert.ok((await deletedAt('CI')) >= end);
    });

  it('may answer no more where the server that it follows is stopped, and hears of the deletion once that goes on', async () => {
    await cli.given('CI');
    const server = await start();
    const { until: end, cursor } = await follow(server);
    server.kill('SIGSTOP');
    assert.ok((await deletedAt('CI')) >= end);
    server.kill('SIGCONT');
    // It answers 503 until it has checked its store again.
    const query = new URLSearchParams({ after: cursor, edge: randomUUID(), name: 'test', lease: '60000' });
    let answer: Response | undefined;
    await until(async () => (answer = await get(server, `/feed?${String(query)}`)).status !== 503);
    assert.match(await answer!.text(), /^-\["/m);
  });

  it('may answer no more where the worker that it follows is killed', async () => {
    await cli.given('CI');
    const server = await start('--workers', '2');
    const { until: end } = await follow(server);
    const workers = execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.pid)], { encoding: 'utf8' });
    for (const pid of workers.trim().split(/\s+/)) process.kill(Number(pid), 'SIGKILL');
    assert.ok((await deletedAt('CI')) >= end);
  });

  it('is waited for by all that changes keys', async () => {
    await cli.given('Admin', { roles: ['ADMIN'] });
    const server = await start();
    const folder = tempFolder();
    const backup = join(folder, 'backup.sqlite');
    assert.equal((await cli.run(['backup', backup])).code, 0);
    const declared = configFile('keys: [{ name: Declared, roles: [GUEST] }]');
    const lines = join(folder, 'lines');
    writeFileSync(lines, JSON.stringify({ name: 'Imported', sha256: 'a'.repeat(64), roles: ['GUEST'] }));
    const changes = [
      ['apikey', 'apply', '-f', declared, '--json'],
      ['apikey', 'import', lines],
      ['apikey', 'revoke', 'Admin', '--undo-changes', '--yes'],
      ['restore', backup, '--yes'],
      ...(dialect === 'sqlite' ? [['restore', backup, '--force', '--yes']] : []),
    ];
    for (const change of changes) {
      const { until: end } = await follow(server);
      const { code, stderr } = await cli.run(change);
      assert.equal(code, 0, `${change.join(' ')}: ${stderr}`);
      assert.ok(performance.now() >= end, change.join(' '));
    }
  });

  it('is listed by doctor and by a server, which may tell of one that is behind', async () => {
    const server = await start();
    await follow(server);
    type Edge = { name: string; apiKey: { name: string }; leaseMs: number };
    const list = async () => {
      const { stdout } = await cli.run(['doctor', '--json']);
      const { checks } = JSON.parse(stdout) as { checks: { check: string; items?: Edge[] }[] };
      return checks.flatMap(({ check, items = [] }) => (check === 'EDGES' ? items : []));
    };
    await until(async () => (await list()).length === 1);
    await until(async () => (await list())[0]!.leaseMs === 0);
    assert.deepEqual(
      (await list()).map(({ name, apiKey }) => [name, apiKey.name]),
      [['test', 'Edge']],
    );
    const { body } = await query(server.url, token, '{ edges { name keyName } }');
    assert.deepEqual(body.data, { edges: [{ name: 'test', keyName: 'Edge' }] });
    const { stdout } = await cli.run(['doctor']);
    assert.match(stdout, / {2}behind: "test" at 127\.0\.0\.1, with the key "Edge", /);
    assert.match(stdout, /warning +EDGES +The edge "test" refuses all keys/);
  });
});

/** The last line of an answer. */
function lastOf(text: string): { cursor: string; leaseMs: number } {
  const [cursor, leaseMs] = JSON.parse(text.trimEnd().split('\n').at(-1)!.slice(1)) as [string, number];
  return { cursor, leaseMs };
}
