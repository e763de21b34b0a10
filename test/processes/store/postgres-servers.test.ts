import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { TRUST_MS } from '../../../src/store/postgres/postgres-listener.ts';
import { testCli } from '../../support/cli.ts';
import { describeOn } from '../../support/dialects.ts';
import { migratedPostgresStore } from '../../support/postgres.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';
import { type ServeProcess, startServe } from '../../support/serve.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describeOn('postgres', 'three servers of one store', () => {
  let servers: ServeProcess[];
  let proxy: Proxy;
  let cli: ReturnType<typeof testCli>;

  before(async () => {
    cli = testCli(await migratedPostgresStore());
    await cli.given('First');
    const url = new URL(cli.database);
    proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    servers = await Promise.all([cli.database, cli.database, url.href].map((database) => startServe(database)));
  });
  after(async () => {
    proxy.close();
    await Promise.all(servers.map((server) => server.stop()));
  });
  const ask = async (server: ServeProcess, secret: string) => (await query(server.url, secret, '{ online }')).status;
  /** Lets each server remember a key: it does so as soon as it listens. */
  async function warm(secret: string): Promise<void> {
    for (const server of servers) {
      await until(async () => (await ask(server, secret)) === 200);
      for (let request = 0; request < 50; request += 1) await ask(server, secret);
    }
  }
  /** For how many other keys a server asks the database until it refuses this one. */
  async function questionsUntilRefused(server: ServeProcess, secret: string): Promise<number> {
    let questions = 0;
    for (; (await ask(server, secret)) !== 401; questions += 1)
      assert.equal(await ask(server, createSecret(randomBytes).text), 401);
    return questions;
  }

  it('refuse a key that the command line deletes as soon as the database notifies them', async () => {
    const questions: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const { key: secret } = await cli.given(`CI ${round}`);
      await warm(secret);
      assert.equal((await cli.run(['apikey', '--delete', '--name', `CI ${round}`])).code, 0);
      questions.push(...(await Promise.all(servers.map((server) => questionsUntilRefused(server, secret)))));
    }
    // By asking every half second alone, it would be a hundred on average. A busy machine holds up one or another.
    const median = questions.toSorted((one, other) => one - other)[4]!;
    assert.ok(median < 10, questions.join(' '));
  });

  it('answer 503 where they are cut off from the database, rather than trust what they remember, and recover by themselves', async () => {
    const { key: kept } = await cli.given('Kept');
    const { key: deleted } = await cli.given('Deleted');
    await warm(kept);
    await warm(deleted);
    const cutOff = servers[2]!;
    proxy.block();
    const blocked = performance.now();
    assert.equal((await cli.run(['apikey', '--delete', '--name', 'Deleted'])).code, 0);
    await until(async () => {
      const begun = performance.now();
      const status = await ask(cutOff, deleted);
      if (status === 200) assert.ok(begun - blocked < TRUST_MS, `accepted ${begun - blocked} ms after it was cut off`);
      return status === 503;
    });
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
