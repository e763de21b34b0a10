import assert from 'node:assert/strict';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Hono } from 'hono';
import { createApp } from '../../../src/service/create-app.ts';
import { listen } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { mountSmallDisk } from '../../support/full-disk.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { skipUnlessCI } from '../../support/skip.ts';
import type { TestService } from '../../support/server.ts';

const ADA = { name: 'Ada', roles: ['ADMIN'] } as const;
const MANY = 20_000;

describe('the console, asked oddly', () => {
  let test: TestService;
  const { log, lines } = collectingLog();
  before(async () => void (test = await startConsoleService({ log })));
  after(() => test.stop());

  it('makes no key with an expiry that the form does not offer', async () => {
    const { visitor } = await visitorWith(test, { ...ADA, name: 'Ends' });
    for (const expiry of ['zzz', 'asked', 'constructor', '']) {
      await visitor.open('keys/new');
      const page = await visitor.submit('keys/new', { name: 'Odd', permission: 'ME:READ_OWN', expiry });
      assert.equal(page.status, 400, expiry);
      assert.match(page.text, /Choose an expiry\./);
    }
    assert.deepEqual(
      lines.filter(({ level }) => level === 'error'),
      [],
    );
  });

  it('shows only existing ones of thousands of grants', async () => {
    const { visitor, principal } = await visitorWith(test, { ...ADA, name: 'Many' });
    for (const path of ['keys/new', `keys/${principal.apiKey.id}/edit`]) {
      const { html } = await visitor.open(path);
      for (const name of ['role', 'permission']) {
        const given = Array.from({ length: MANY }, (_, index) => `X${index.toString(36)}`);
        await visitor.open(path);
        const page = await visitor.submit(path, { name: 'Many', [name]: given, step: 'change', version: 'x' });
        assert.ok(page.html.length < 2 * html.length, `${path}, ${name}: ${page.html.length} characters`);
      }
    }
  });

  it('says of a text that can be no key what to do, not of a header', async () => {
    const page = await new Visitor(test.url).signIn('Bearer svc_x');
    assert.equal(page.status, 403);
    assert.match(page.text, /This is not an API key\. Copy all of it, and nothing else\./);
    assert.doesNotMatch(page.text, /header/);
  });

  it('takes no name for this machine that only looks like an address of it', async () => {
    for (const [host, isPrivate] of [
      ['127.example.org', false],
      ['127.0.0.1.example.org', false],
      ['127.0.0.2', true],
    ] as const) {
      const { html } = await new Visitor(test.url, { 'x-forwarded-host': host }).open('sign-in');
      assert.equal(html.includes('name="key"'), isPrivate, host);
    }
  });

  it('names characters of a description that would show another one', async () => {
    const { visitor } = await visitorWith(test, { ...ADA, name: 'Reader' });
    const { apiKey: key } = await test.keys.create(
      { name: 'Hidden', roles: ['GUEST'], description: 'a\u202eb' },
      OPERATOR,
    );
    const { html } = await visitor.open(`keys/${key.id}`);
    assert.ok(!html.includes('\u202e'));
    assert.equal(html.split('a&lt;U+202E&gt;b').length, 3, 'above, and in the timeline');
  });

  it('names the methods of an address, and how to continue after signing in', async () => {
    const { visitor, principal } = await visitorWith(test, { ...ADA, name: 'Methods' });
    const { id } = principal.apiKey;
    const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
      fetch(`${test.url}/console${path}`, { method, headers, redirect: 'manual' });
    for (const [method, path, allowed] of [
      ['PUT', '/', 'GET, HEAD'],
      ['PUT', '', 'GET, HEAD'],
      ['OPTIONS', '/keys', 'GET, HEAD'],
      ['DELETE', `/keys/${id}`, 'GET, HEAD'],
      ['PATCH', '/keys/new', 'GET, HEAD, POST'],
      ['PUT', '/sign-in', 'GET, HEAD, POST'],
      ['GET', '/sign-out', 'POST'],
      ['GET', `/keys/${id}/enable`, 'POST'],
      ['POST', '/health', 'GET, HEAD'],
    ] as const)
      for (const headers of [{}, { cookie: visitor.cookie! }] as Record<string, string>[]) {
        const response = await ask(method, path, headers);
        assert.deepEqual([response.status, response.headers.get('allow')], [405, allowed], `${method} ${path}`);
        assert.equal((await response.text()).includes('aria-label="Pages"'), 'cookie' in headers);
      }
    assert.equal((await ask('PUT', '/nowhere')).status, 404);
    assert.equal((await ask('HEAD', '/sign-in')).status, 200);
  });

  it('has the navigation beside what went wrong', async () => {
    const { visitor } = await visitorWith(test, { ...ADA, name: 'Astray' });
    for (const path of ['nowhere', 'audit-log?after=nonsense', 'audit-log?after=nonsense']) {
      const { status, html } = await visitor.open(path);
      assert.ok(status >= 400, path);
      assert.match(html, /<nav aria-label="Pages">/, path);
    }
    assert.doesNotMatch((await new Visitor(test.url).open('nowhere')).html, /<nav/);
  });

  it('says nothing was done where the address says an odd word', async () => {
    const { visitor, principal } = await visitorWith(test, { ...ADA, name: 'Odd word' });
    const { html } = await visitor.open(`keys/${principal.apiKey.id}?done=constructor`);
    assert.ok(!html.includes('notice done'));
  });
});

describe('the console of an app under a path', () => {
  for (const base of ['/base', '/console'])
    it(`leads to its own pages, and names its own addresses: ${base}`, async () => {
      const { keys, store } = await openTestKeys({ asServer: true });
      const outer = new Hono().route(base, await createApp({ keys, console: true }));
      const server = await listen({ app: outer, host: '127.0.0.1', port: 0 });
      const { secret } = await createPrincipal(keys, ADA);
      const url = server.url + base;
      const visitor = new Visitor(url);
      await visitor.open('keys?search=x');
      assert.equal((await visitor.submit('sign-in', { key: secret })).path, 'keys?search=x');
      assert.match((await visitor.open('nowhere/at/all')).html, /<a href="\.\.\/\.\.\/">Back to the console/);
      assert.ok((await visitor.open('requests')).text.includes(`svc-api login --server ${url} `));
      await server.stop(0);
      await store.close();
    });
});

describe('the console over a store that takes no writes', () => {
  it('signs a browser out all the same, and says that something is wrong', async () => {
    const test = await startConsoleService();
    const { visitor } = await visitorWith(test, ADA);
    const database = new Database(test.database);
    database.exec("CREATE TRIGGER no_end BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'no'); END");
    database.close();
    const page = await visitor.submit('sign-out');
    assert.equal(page.status, 503);
    assert.equal(visitor.cookie, undefined);
    assert.ok((await visitor.open('keys')).path.startsWith('sign-in'));
    await test.stop();
  });

  it('reports a full disk when people sign in', async function () {
    const disk = mountSmallDisk(8) ?? skipUnlessCI(this, 'a small disk could not be mounted');
    try {
      const test = await startConsoleService({ database: join(disk.folder, 'keys.sqlite') });
      const { secret } = await createPrincipal(test.keys, ADA);
      disk.fill();
      const signIn = async () => {
        const visitor = new Visitor(test.url);
        return { ...(await visitor.signIn(secret)), cookie: visitor.cookie };
      };
      // Free space remains inside the store's files.
      const description = 'x'.repeat(1000);
      const fill = async () => {
        for (let count = 0; ; count += 1)
          await test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], description }, OPERATOR);
      };
      await assert.rejects(fill, { code: 'STORE_FULL' });
      // A session needs less space than a key.
      let last = await signIn();
      for (let count = 0; count < 100 && last.status === 200; count += 1) last = await signIn();
      assert.deepEqual([last.status, last.cookie], [503, undefined]);
      assert.match(last.text, /The disk of the key store is full, so signing in is not possible/);
      disk.empty();
      assert.equal((await signIn()).path, '');
      await test.stop();
    } finally {
      disk.unmount();
    }
  });
});
