import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { configFile } from '../../support/config-file.ts';
import { describeOn } from '../../support/dialects.ts';
import { migratedPostgresStore } from '../../support/postgres.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import { type ServeProcess, startServe } from '../../support/serve.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describeOn('postgres', 'three servers of one store, one of them with workers,', () => {
  let servers: ServeProcess[];
  let proxy: Proxy;
  let cli: ReturnType<typeof testCli>;

  before(async () => {
    cli = testCli(await migratedPostgresStore());
    await cli.given('First');
    const url = new URL(cli.database);
    proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    // The tests send more invalid keys than the default limit for an address.
    const args = ['--port', '0', '--config', configFile('limits: { failedCredentials: 10000/m }')];
    servers = await Promise.all([
      startServe(cli.database, args),
      startServe(cli.database, [...args, '--workers', '2']),
      startServe(url.href, args),
    ]);
  });
  after(async () => {
    proxy.close();
    await Promise.all(servers.map((server) => server.stop()));
  });
  const ask = async (server: ServeProcess, secret: string) => (await query(server.url, secret, '{ online }')).status;
  /** Lets each server cache a key, which needs it to be listening. */
  async function warm(secret: string): Promise<void> {
    for (const server of servers) {
      await until(async () => (await ask(server, secret)) === 200);
      for (let request = 0; request < 50; request += 1) await ask(server, secret);
    }
  }
  /** Sends enough requests to reach every worker. */
  async function allRefuse(secret: string): Promise<void> {
    const asked = servers.flatMap((server) => Array.from({ length: 4 }, () => ask(server, secret)));
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([401]));
  }

  it('all refuse a key once the command that deletes it has returned', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { key: secret } = await cli.given(`CI ${round}`);
      await warm(secret);
      assert.equal((await cli.run(['apikey', '--delete', '--name', `CI ${round}`])).code, 0);
      await allRefuse(secret);
    }
  });

  it('refuse it once another server has answered that it is deleted', async () => {
    const { key: admin } = await cli.given('Admin', { roles: ['ADMIN'] });
    await warm(admin);
    for (let round = 0; round < 20; round += 1) {
      const { key: secret, id } = await cli.given(`Job ${round}`);
      await warm(secret);
      const { status } = await query(
        servers[0]!.url,
        admin,
        `mutation { deleteApiKeys(ids: ["${id}"]) { keys { id } } }`,
      );
      assert.equal(status, 200);
      await allRefuse(secret);
    }
  });

  it('refuse it even if one of them hung meanwhile, and wait for that one only as long as it trusts its cache', async () => {
    const { key: secret } = await cli.given('Hanging');
    await warm(secret);
    const [hanging] = servers as [ServeProcess];
    hanging.kill('SIGSTOP');
    const deleted = cli.run(['apikey', '--delete', '--name', 'Hanging']);
    assert.equal((await deleted.finally(() => hanging.kill('SIGCONT'))).code, 0);
    await allRefuse(secret);
  });

  it('answer 503 while cut off from the database, rather than trust their cache, and recover by themselves', async () => {
    const { key: kept } = await cli.given('Kept');
    const { key: deleted } = await cli.given('Deleted');
    await warm(kept);
    await warm(deleted);
    const cutOff = servers[2]!;
    proxy.block();
    assert.equal((await cli.run(['apikey', '--delete', '--name', 'Deleted'])).code, 0);
    assert.deepEqual(await Promise.all([ask(cutOff, deleted), ask(cutOff, kept)]), [503, 503]);
    assert.equal((await fetch(`${cutOff.url}/readyz`)).status, 503);
    assert.equal(await ask(servers[0]!, kept), 200);
    proxy.unblock();
    await until(async () => (await ask(cutOff, kept)) === 200);
    assert.equal(await ask(cutOff, deleted), 401);
  });

  it('recover at once where their connections are terminated', async () => {
    const { key: secret } = await cli.given('Steady');
    await warm(secret);
    for (let round = 0; round < 5; round += 1) {
      proxy.drop();
      assert.equal(await ask(servers[2]!, secret), 200);
    }
    proxy.drop();
    assert.equal((await cli.run(['apikey', '--delete', '--name', 'Steady'])).code, 0);
    assert.equal(await ask(servers[2]!, secret), 401);
  });
});
