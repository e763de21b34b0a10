import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { testCli } from '../../support/cli.ts';
import { describeOn } from '../../support/dialects.ts';
import { postgresStore } from '../../support/postgres.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import { type ServeProcess, startServe } from '../../support/serve.ts';
import { query } from '../../support/server.ts';

/** In which a change must be known everywhere, in milliseconds. */
const SOON = 100;
/** In which a server that is cut off must stop to trust what it remembers, and in which it must answer. */
const TRUST_MS = 2000;
const ANSWER = 5000;

describeOn('postgres', 'three servers of one store', () => {
  let servers: ServeProcess[];
  let proxy: Proxy;
  let cli: ReturnType<typeof testCli>;

  before(async () => {
    cli = testCli(postgresStore());
    await cli.given('First');
    const url = new URL(cli.database);
    proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    servers = await Promise.all([cli.database, cli.database, url.href].map(startServe));
  });
  after(async () => {
    proxy.close();
    await Promise.all(servers.map((server) => server.stop()));
  });
  const ask = async (server: ServeProcess, secret: string) => (await query(server.url, secret, '{ online }')).status;
  /** Asks until the answer is another one, or for so long. @returns the answer, and when it came */
  async function askUntil(status: number, server: ServeProcess, secret: string, patience: number) {
    const deadline = performance.now() + patience;
    for (;;) {
      const answer = await ask(server, secret);
      if (answer === status || performance.now() > deadline) return { status: answer, at: performance.now() };
      await delay(1);
    }
  }
  /** Lets each server remember a key: it does so as soon as it listens. */
  async function warm(secret: string): Promise<void> {
    for (const server of servers) {
      assert.equal((await askUntil(200, server, secret, ANSWER)).status, 200);
      for (let request = 0; request < 50; request += 1) await ask(server, secret);
    }
  }

  it('refuse a key that the command line deletes, within 100 ms', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { key: secret } = await cli.given(`CI ${round}`);
      await warm(secret);
      const refused = servers.map((server) => askUntil(401, server, secret, ANSWER));
      const { code } = await cli.run(['apikey', '--delete', '--name', `CI ${round}`]);
      const deleted = performance.now();
      assert.equal(code, 0);
      for (const { status, at } of await Promise.all(refused)) {
        assert.equal(status, 401);
        assert.ok(at - deleted < SOON, `refused after ${at - deleted} ms`);
      }
    }
  });

  it('answer 503 where they are cut off from the database, rather than trust what they remember, and recover by themselves', async () => {
    const { key: kept } = await cli.given('Kept');
    const { key: deleted } = await cli.given('Deleted');
    await warm(kept);
    await warm(deleted);
    const cutOff = servers[2]!;
    proxy.block();
    assert.equal((await cli.run(['apikey', '--delete', '--name', 'Deleted'])).code, 0);
    const { status, at } = await askUntil(503, cutOff, deleted, TRUST_MS + ANSWER);
    assert.equal(status, 503);
    const later = performance.now();
    assert.deepEqual(await Promise.all([ask(cutOff, deleted), ask(cutOff, kept)]), [503, 503]);
    assert.ok(performance.now() - later < ANSWER, `answered after ${performance.now() - at} ms`);
    assert.equal((await fetch(`${cutOff.url}/readyz`)).status, 503);
    assert.equal(await ask(servers[0]!, kept), 200);
    proxy.unblock();
    assert.equal((await askUntil(200, cutOff, kept, ANSWER)).status, 200);
    assert.equal(await ask(cutOff, deleted), 401);
  });

  it('go on at once where their connections are ended', async () => {
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
