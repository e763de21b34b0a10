import assert from 'node:assert/strict';
import { testCli } from '../support/cli.ts';
import { type LastingPostgres, startLastingPostgres } from '../support/lasting-postgres.ts';
import { startServe, type ServeProcess } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

const CLIENTS = 4;

describe('PostgreSQL that is restarted under a server', () => {
  let postgres: LastingPostgres;
  let server: ServeProcess;
  let secrets: { deleted: string; kept: string };

  beforeEach(async () => {
    postgres = await startLastingPostgres();
    const cli = testCli(postgres.url);
    secrets = { deleted: (await cli.given('Deleted')).key, kept: (await cli.given('Kept')).key };
    server = await startServe(postgres.address);
  });
  afterEach(async () => {
    await server.stop();
    await postgres.end();
  });

  it('refuses keys that it cannot check meanwhile, and accepts all valid keys once it is back', async () => {
    const statuses: Record<keyof typeof secrets, number[]> = { deleted: [], kept: [] };
    const over = new AbortController();
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!over.signal.aborted)
        for (const name of ['deleted', 'kept'] as const)
          statuses[name].push((await query(server.url, secrets[name], '{ online }')).status);
    });
    const last = (name: keyof typeof secrets) => statuses[name].at(-1);
    await until(() => statuses.kept.length > 100);
    assert.deepEqual(new Set([...statuses.kept, ...statuses.deleted]), new Set([200]));

    await postgres.stop();
    await until(() => last('kept') === 503 && last('deleted') === 503);
    await postgres.start();
    // The key is deleted before the server has reconnected.
    await testCli(postgres.url).run(['apikey', '--delete', '--name', 'Deleted']);
    const whileGone = statuses.deleted.length;
    postgres.lead();

    await until(() => last('kept') === 200 && last('deleted') !== 503);
    await until(() => statuses.kept.slice(-100).every((status) => status === 200));
    over.abort();
    await Promise.all(clients);
    assert.deepEqual(new Set(statuses.kept), new Set([200, 503]));
    const since = new Set(statuses.deleted.slice(whileGone));
    assert.ok(!since.has(200) && (since.has(401) || since.has(429)), [...since].join());
  });
});
