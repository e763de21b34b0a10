import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { blockWith } from '../../support/pages.ts';
import { freePort } from '../../support/port.ts';
import { startCli } from '../../support/process.ts';
import { needsPrograms } from '../../support/skip.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const PAGE = 'examples/guard/README.md';
const ACTIONS = ['READ', 'CREATE', 'UPDATE', 'DELETE'];

type Ask = (actions: readonly string[], method: string, path: string, body?: string) => Promise<number>;

describe('recipes of examples/guard/README.md', () => {
  const children: ChildProcess[] = [];
  after(async () => {
    for (const child of children) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  });

  /** Starts the guard as documented. @returns a function for the status of a key with these actions */
  async function startRecipe(resource: string, port: number): Promise<Ask> {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, blockWith(`resources: [${resource}]`, PAGE, 'yaml'), { mode: 0o600 });
    const cli = testCli();
    const env = { SVC_API_CONFIG: config };
    const keys = new Map<string, string>();
    for (const actions of [['READ'], ACTIONS]) {
      const permissions = actions.map((action) => `${resource}:${action}_ANY`).join();
      const { stdout } = await cli.run(
        ['apikey', 'create', '--name', actions.join(' '), '--permissions', permissions],
        {
          env,
        },
      );
      keys.set(actions.join(), stdout.trim());
    }
    const guard = startCli(['guard', `http://127.0.0.1:${port}`, '--port', '0'], {
      env: { SVC_API_DATABASE: cli.database, LOG_LEVEL: 'error', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(guard);
    const [line] = (await once(guard.stdout!, 'data')) as [Buffer];
    const [, url] = /^Listening on (\S+)\n$/.exec(String(line)) ?? assert.fail(String(line));
    return async (actions, method, path, body) => {
      const headers = {
        authorization: `Bearer ${keys.get(actions.join())}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      return (await fetch(url + path, { method, headers, ...(body !== undefined && { body }) })).status;
    };
  }

  it('Grafana: readers see panels, which query by POST, and cannot change anything', async () => {
    const got: string[] = [];
    const grafana = createServer((incoming, outgoing) => {
      got.push(`${incoming.method} ${incoming.url} of ${typeof incoming.headers['x-auth-key-id']}`);
      incoming.resume().once('end', () => outgoing.end('{}'));
    });
    await once(grafana.listen(0, '127.0.0.1'), 'listening');
    const ask = await startRecipe('GRAFANA', (grafana.address() as AddressInfo).port);
    const reads = ['GET /d/abc/home?orgId=1', 'GET /api/search', 'POST /api/ds/query?ds_type=prometheus&requestId=Q1'];
    const changes = [
      'POST /api/dashboards/db',
      'POST /api/ds/query/x',
      'PUT /api/ds/query',
      'DELETE /api/dashboards/uid/a',
    ];
    const statuses = (actions: readonly string[], requests: readonly string[]) =>
      Promise.all(requests.map((each) => ask(actions, ...(each.split(' ') as [string, string]))));
    assert.deepEqual(new Set(await statuses(['READ'], reads)), new Set([200]));
    assert.deepEqual(got.toSorted(), reads.map((each) => `${each} of string`).toSorted());
    assert.deepEqual(new Set(await statuses(['READ'], changes)), new Set([403]));
    assert.equal(got.length, reads.length);
    assert.deepEqual(new Set(await statuses(ACTIONS, changes)), new Set([200]));
    grafana.close();
    grafana.closeAllConnections();
  });

  it('Prometheus: readers query it by GET and POST, and cannot reload or delete anything', async function () {
    needsPrograms(this, 'prometheus');
    const [folder, port] = [tempFolder(), await freePort()];
    writeFileSync(join(folder, 'prometheus.yml'), 'scrape_configs: []\n');
    const flags = ['--web.enable-lifecycle', '--web.enable-admin-api', `--web.listen-address=127.0.0.1:${port}`];
    const files = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    children.push(spawn('prometheus', [...flags, ...files], { stdio: 'ignore' }));
    const ask = await startRecipe('PROMETHEUS', port);
    await until(async () => (await ask(['READ'], 'GET', '/-/ready')) === 200);
    const reads = {
      query: 'query=1',
      query_range: 'query=1&start=0&end=10&step=5',
      labels: '',
      series: 'match[]=up',
    };
    for (const [path, form] of Object.entries(reads))
      for (const [method, query, body] of [
        ['GET', `?${form}`],
        ['POST', '', form],
      ] as const)
        assert.deepEqual(
          [path, method, await ask(['READ'], method, `/api/v1/${path}${query}`, body)],
          [path, method, 200],
        );
    const changes = { '/-/reload': 200, '/api/v1/admin/tsdb/delete_series?match[]=up': 204 };
    for (const [path, status] of Object.entries(changes)) {
      assert.deepEqual([path, await ask(['READ'], 'POST', path)], [path, 403]);
      assert.deepEqual([path, await ask(ACTIONS, 'POST', path)], [path, status]);
    }
  });
});
