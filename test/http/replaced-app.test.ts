import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query } from '../support/server.ts';

describe('a server whose app is replaced', () => {
  let server: RunningServer;
  let test: TestKeys | undefined;
  afterEach(async () => {
    await server.stop(0);
    await test?.store.close();
    test = undefined;
  });

  it('finishes what the old one has in hand, and lets the new one answer on the same connection', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    let arrived = () => {};
    const inHand = new Promise<void>((resolve) => (arrived = resolve));
    const old = new Hono().get('/', async (c) => {
      arrived();
      await released;
      return c.text('old');
    });
    server = await listen({ app: old, host: '127.0.0.1', port: 0 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = () =>
      new Promise<string>((resolve, reject) => {
        const sent = request(server.url, { agent }, (response) => {
          let text = sent.reusedSocket ? 'reused ' : '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('end', () => resolve(text));
        });
        sent.on('error', reject).end();
      });
    const first = ask();
    await inHand;
    server.replaceApp(new Hono().get('/', (c) => c.text('new')));
    assert.equal(await (await fetch(server.url)).text(), 'new');
    release();
    assert.equal(await first, 'old');
    assert.equal(await ask(), 'reused new');
    agent.destroy();
  });

  it('has run as long as before, and goes by the resources, roles and limits of the new one', async () => {
    test = await openTestKeys();
    const old = await createApp({ keys: test.keys });
    server = await listen({ app: old, host: '127.0.0.1', port: 0 });
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const ask = async () =>
      (await query(server.url, secret, '{ info { startedAt } me { effectivePermissions { resource } } }')).body.data;
    const before = (await ask()) as { info: object; me: { effectivePermissions: object[] } };
    const additions = { resources: ['WIKI'], defaultLimits: ['2/h'] };
    const { limiter } = test.keys;
    const keys = Object.assign(test.keys.withCatalog(createCatalog(additions)), { limiter });
    const next = await createApp({ keys, replaces: old });
    assert.deepEqual(await ask(), before);
    server.replaceApp(next);
    const after = (await ask()) as typeof before;
    assert.deepEqual(after.info, before.info);
    assert.deepEqual(after.me.effectivePermissions, [...before.me.effectivePermissions, { resource: 'WIKI' }]);
    assert.ok(await ask());
    assert.equal(await ask(), undefined, 'its limit is used up');
    assert.ok(next.refusals === old.refusals && next.failures === old.failures, 'what is summed up goes on');
  });
});
