import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { NO_LOG } from '../../src/log.ts';
import { packageVersion } from '../../src/version.ts';
import { startTestService, type TestService } from '../support/server.ts';

describe('the page at /', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  const ask = async (accept: string, method = 'GET') => {
    const reply = await fetch(test.url, { method, headers: { accept } });
    return { status: reply.status, headers: reply.headers, text: await reply.text() };
  };

  it('says in HTML to a browser what this is, and in JSON to others', async () => {
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
    for (const accept of [browser, 'text/html', 'text/*', 'application/json;q=0.5, text/html']) {
      const { status, headers, text } = await ask(accept);
      assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'], accept);
      assert.match(
        text,
        /^<!doctype html>\n<html lang="en">[^]*POST \/graphql[^]*Authorization: Bearer &lt;API key&gt;/,
      );
    }
    for (const accept of ['*/*', 'application/json', 'text/plain', 'application/json, text/html']) {
      const { status, headers, text } = await ask(accept);
      assert.deepEqual([status, headers.get('content-type')], [200, 'application/json'], accept);
      const { graphql, health } = JSON.parse(text) as Record<string, unknown>;
      assert.deepEqual([graphql, health], ['/graphql', ['/healthz', '/readyz']]);
    }
  });

  it('is not kept, is not framed, and loads, runs and sends nothing', async () => {
    const { headers, text } = await ask('text/html');
    const [, style] = /<style>([^]*)<\/style>/.exec(text)!;
    const hash = createHash('sha256').update(style!).digest('base64');
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    assert.deepEqual(
      ['cache-control', 'referrer-policy', 'vary', 'x-content-type-options'].map((name) => headers.get(name)),
      ['no-store', 'no-referrer', 'Accept', 'nosniff'],
    );
    assert.doesNotMatch(text, /<script|https?:|src=|href=|url\(|@import/);
  });

  it('does not tell which version runs', async () => {
    for (const accept of ['text/html', '*/*']) {
      const { headers, text } = await ask(accept);
      assert.ok(!`${text}${JSON.stringify([...headers])}`.includes(packageVersion()));
    }
  });

  it('has no body for HEAD', async () => {
    const { status, headers, text } = await ask('text/html', 'HEAD');
    assert.deepEqual([status, headers.get('content-type'), text], [200, 'text/html; charset=utf-8', '']);
    assert.equal((await ask('*/*', 'POST')).status, 404);
  });

  it('names the addresses of an app that is mounted in another one', async () => {
    const app = await createApp({ keys: test.keys, log: NO_LOG, console: true });
    const host = new Hono({ strict: false }).route('/:tenant/keys', app);
    const open = async (path: string, accept: string) => (await host.request(path, { headers: { accept } })).text();
    const { graphql, health } = JSON.parse(await open('/acme/keys', '*/*')) as Record<string, unknown>;
    assert.deepEqual([graphql, health], ['/acme/keys/graphql', ['/acme/keys/healthz', '/acme/keys/readyz']]);
    for (const [path, link] of [
      ['/acme/keys', './keys/console/'],
      ['/acme/keys/', './console/'],
    ] as const) {
      const text = await open(path, 'text/html');
      assert.match(text, /POST \/acme\/keys\/graphql/);
      assert.ok(text.includes(`href="${link}"`), text);
    }
    assert.doesNotMatch(await open('/%22%3E<script>"/keys', 'text/html'), /<script|"\/keys/);
  });
});
