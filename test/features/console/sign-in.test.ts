import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import type { TestService } from '../../support/server.ts';

const MINUTE = 60_000;
const ADA = { name: 'Ada', roles: ['ADMIN'] } as const;
const isSignInPage = (page: { path: string; text: string }) =>
  page.path.startsWith('sign-in') && page.text.includes('Sign in to svc-api');

describeOnEach('signing in to the console', () => {
  let test: TestService;
  const { log, lines } = collectingLog();
  beforeEach(async () => {
    lines.length = 0;
    test = await startConsoleService({ log });
  });
  afterEach(() => test.stop());

  /** The cookies that the server sets. */
  async function cookieFor(secret: string, headers: Record<string, string> = {}) {
    const response = await fetch(`${test.url}/console/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
      body: new URLSearchParams({ key: secret }),
    });
    return { status: response.status, cookies: response.headers.getSetCookie(), text: await response.text() };
  }

  it('exchanges a key for a session', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const visitor = new Visitor(test.url);
    assert.ok(isSignInPage(await visitor.open('keys?search=x')));
    const page = await visitor.submit('sign-in', { key: ` ${secret} ` });
    assert.deepEqual([page.status, page.path], [200, 'keys?search=x']);
    assert.ok(page.text.includes('Ada'));
  });

  it('leads to the own key, or to the first page that the key may see', async () => {
    const { visitor } = await visitorWith(test, { name: 'Log reader', permissions: ['LOGS:READ_ANY'] });
    assert.equal(visitor.page?.path.split('?')[0], 'audit-log');
    const { visitor: viewer } = await visitorWith(test, { name: 'Viewer', roles: ['VIEWER'] });
    assert.equal(viewer.page?.path, 'me');
    const { visitor: other } = await visitorWith(test, { name: 'Docker', permissions: ['DOCKER:READ_ANY'] });
    assert.deepEqual([other.page?.status, other.page?.path], [403, '']);
    assert.match(other.page!.text, /The key Docker cannot open any page/);
  });

  it('gives a token that scripts, other sites, and connections that others can read never get', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const plain = await cookieFor(secret);
    assert.equal(plain.status, 303);
    assert.match(
      plain.cookies.join(),
      /^svc_api_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const encrypted = await cookieFor(secret, {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'keys.example.org',
      'x-forwarded-for': '192.0.2.1',
    });
    assert.match(
      encrypted.cookies.join(),
      /^__Host-svc_api_session=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    );
  });

  it('takes no key by a connection that others can read', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const { status, cookies, text } = await cookieFor(secret, { 'x-forwarded-host': 'keys.example.org' });
    assert.deepEqual([status, cookies], [403, []]);
    assert.match(text, /over http, because others could read your key/);
    assert.doesNotMatch(text, /<input/);
  });

  it('says why a key is not accepted, and counts that as other doors do', async () => {
    const visitor = new Visitor(test.url);
    const wrong = await visitor.signIn('svc_nonsense');
    assert.deepEqual([wrong.status, visitor.cookie], [403, undefined]);
    assert.match(wrong.text, /The API key is not valid\./);
    for (let count = 0; count < 19; count += 1) await visitor.submit('sign-in', { key: 'svc_nonsense' });
    const limited = await visitor.submit('sign-in', { key: 'svc_nonsense' });
    assert.equal(limited.status, 429);
    assert.match(limited.headers.get('retry-after')!, /^\d+$/);
    const { secret } = await createPrincipal(test.keys, ADA);
    assert.equal((await visitor.submit('sign-in', { key: secret })).status, 200);
  });

  it('never leads elsewhere', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    for (const next of [
      '//evil.example',
      'https://evil.example',
      '/\\evil.example',
      '../../x',
      'javascript:x',
      'keys#<x>',
      '#//evil.example',
      '\r\nX: y',
    ])
      for (const path of [`sign-in?next=${encodeURIComponent(next)}`, 'sign-in']) {
        const visitor = new Visitor(test.url);
        await visitor.open(path);
        const page = await visitor.submit('sign-in', { key: secret, ...(path === 'sign-in' && { next }) });
        assert.deepEqual([page.status, page.path], [200, ''], next);
      }
  });

  it('keeps a session through a restart, as it is in the store, which has no token', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const token = visitor.cookie!.split('=')[1]!;
    const other = new Visitor(test.url);
    other.cookie = visitor.cookie;
    assert.equal((await other.open('keys')).path, 'keys');
    if (!test.database.startsWith('postgres'))
      for (const file of [test.database, `${test.database}-wal`])
        assert.ok(!(await readFile(file)).includes(token), file);
  });

  it('opens nothing by its cookie at another name of the host, or by another scheme', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const statusAt = async (headers: Record<string, string>, name = 'svc_api_session') => {
      const cookie = `${name}=${visitor.cookie!.split('=')[1]!}`;
      const page = await fetch(`${test.url}/console/keys`, { redirect: 'manual', headers: { cookie, ...headers } });
      return page.status;
    };
    const { port } = new URL(test.url);
    assert.equal(await statusAt({}), 200);
    assert.equal(await statusAt({ 'x-forwarded-host': '127.0.0.1' }), 200);
    assert.equal(await statusAt({ 'x-forwarded-host': `localhost:${port}` }), 303);
    assert.equal(await statusAt({ 'x-forwarded-proto': 'https' }, '__Host-svc_api_session'), 303);
    assert.equal(await statusAt({}), 200, 'it goes on where it was begun');
  });

  it('ends by signing out, for all who have the token', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const thief = new Visitor(test.url);
    thief.cookie = visitor.cookie;
    assert.ok(isSignInPage(await visitor.submit('sign-out')));
    assert.equal(visitor.cookie, undefined);
    assert.ok(isSignInPage(await thief.open('keys')));
  });

  it('ends the session that the browser had', async () => {
    const { visitor, secret } = await visitorWith(test, ADA);
    const before = new Visitor(test.url);
    before.cookie = visitor.cookie;
    visitor.cookie = before.cookie;
    await cookieFor(secret, { cookie: before.cookie! });
    assert.ok(isSignInPage(await before.open('keys')));
  });

  it('leads back to the page of a form that came too late, and says that it was not done', async () => {
    const { visitor } = await visitorWith(test, ADA);
    await visitor.open('keys?search=a*b');
    const late = new Visitor(test.url, { referer: `${test.url}/console/keys?search=a*b` });
    const { secret } = await createPrincipal(test.keys, { name: 'Bea', roles: ['ADMIN'] });
    const response = await fetch(`${test.url}/console/keys/x/edit`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin', referer: `${test.url}/console/keys?search=a*b` },
      body: new URLSearchParams({ name: 'Too late' }),
    });
    const page = await late.open(response.headers.get('location')!.replace('../../', ''));
    assert.match(page.text, /Your session has ended, so nothing was done/);
    assert.equal((await late.submit('sign-in', { key: secret })).path, 'keys?search=a*b');
  });

  it('is not asked of people who have signed in', async () => {
    const { visitor } = await visitorWith(test, ADA);
    assert.equal((await visitor.open('sign-in?next=audit-log')).path, 'audit-log');
  });

  describe('ends with', () => {
    const ends: Record<string, (id: string) => Promise<unknown>> = {
      'the deletion of the key': (id) => test.keys.delete([id], OPERATOR),
      'the disabling of the key': (id) => test.keys.setEnabled(id, false, OPERATOR),
      'a new secret in place of the one that was shown': (id) => test.keys.rotate(id, { grace: '0s' }, OPERATOR),
      'half an hour without a request': async () => void (test.time.now += 30 * MINUTE),
    };
    for (const [what, end] of Object.entries(ends))
      it(what, async () => {
        const { visitor, principal } = await visitorWith(test, ADA);
        assert.equal((await visitor.open('keys')).path, 'keys');
        await end(principal.apiKey.id);
        const session = await fetch(`${test.url}/console/session`, { headers: { cookie: visitor.cookie! } });
        assert.equal(session.status, 401);
        assert.ok(isSignInPage(await visitor.open('keys')));
      });

    it('the expiry of the key', async () => {
      const { visitor } = await visitorWith(test, { ...ADA, expiresIn: '1m' });
      assert.equal((await visitor.open('keys')).path, 'keys');
      test.time.now += MINUTE;
      assert.ok(isSignInPage(await visitor.open('keys')));
    });
  });

  it('holds the limits of the key', async () => {
    const { visitor } = await visitorWith(test, { ...ADA, limits: ['5/h'] });
    // Signing in and the page after it count as two requests.
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) statuses.push((await visitor.open('keys')).status);
    assert.deepEqual(statuses, [200, 200, 200, 429]);
    assert.match(visitor.page!.text, /The limit of 5\/h is used up\. Try again in/);
    assert.match(visitor.page!.headers.get('retry-after')!, /^\d+$/);
  });

  it('holds the networks of the key', async () => {
    const { secret } = await createPrincipal(test.keys, { ...ADA, allowFrom: ['192.0.2.0/24'] });
    const away = new Visitor(test.url);
    assert.equal((await away.signIn(secret)).status, 403);
    assert.equal(away.cookie, undefined);
    const there = new Visitor(test.url, { 'x-forwarded-for': '192.0.2.7' });
    assert.equal((await there.signIn(secret)).status, 200);
    away.cookie = there.cookie;
    assert.equal((await away.open('keys')).status, 403);
    assert.match(away.page!.text, /address/);
  });

  for (const site of ['cross-site', 'same-site', 'none'])
    it(`refuses forms of pages that are ${site}`, async () => {
      const { visitor, secret } = await visitorWith(test, ADA);
      const forms: Record<string, string>[] = [
        { 'sec-fetch-site': site },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        {},
      ];
      for (const headers of forms)
        for (const path of ['sign-in', 'sign-out', 'keys/x/disable']) {
          const response = await fetch(`${test.url}/console/${path}`, {
            method: 'POST',
            redirect: 'manual',
            headers: { cookie: visitor.cookie!, ...headers },
            body: new URLSearchParams({ key: secret }),
          });
          // Without any Sec-Fetch headers, the request's origin is unknown.
          assert.deepEqual(
            [response.status, response.headers.getSetCookie()],
            [403, []],
            `${path} ${JSON.stringify(headers)}`,
          );
          await response.body?.cancel();
        }
      assert.equal((await visitor.open('keys')).path, 'keys');
    });

  it('takes forms of our own page from browsers that only say the origin', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const response = await fetch(`${test.url}/console/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: test.url },
      body: new URLSearchParams({ key: secret }),
    });
    assert.equal(response.status, 303);
  });

  it('logs the person, and neither key nor token', async () => {
    const { visitor, secret } = await visitorWith(test, ADA);
    const token = visitor.cookie!.split('=')[1]!;
    await visitor.open('keys');
    await visitor.submit('sign-out');
    const text = JSON.stringify(lines);
    assert.match(text, /"signed in"/);
    assert.ok(text.includes(secret.slice(0, 16)) && !text.includes(secret) && !text.includes(token));
  });
});

describe('the pages of the console', () => {
  let test: TestService;
  before(async () => void (test = await startConsoleService()));
  after(() => test.stop());

  it('may load and run only our own files, and be neither framed nor cached', async () => {
    const { visitor } = await visitorWith(test, ADA);
    for (const path of ['sign-in', 'keys', 'nowhere']) {
      const { headers } = await visitor.open(path);
      const policy = headers.get('content-security-policy')!;
      assert.ok(!policy.includes('unsafe') && policy.startsWith("default-src 'none'; script-src 'self'; "));
      assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/);
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('x-frame-options'), 'DENY');
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('referrer-policy'), 'same-origin');
    }
  });

  it('load their script, style sheet and icon, which may be kept, and are small', async () => {
    const { html } = await new Visitor(test.url).open('sign-in');
    const addresses = Array.from(html.matchAll(/(?:src|href)="(\.\/assets\/[^"]+)"/g), ([, address = '']) => address);
    assert.equal(addresses.length, 3);
    for (const address of addresses) {
      const response = await fetch(new URL(address, `${test.url}/console/`));
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('content-encoding'), 'gzip');
      assert.match(response.headers.get('cache-control')!, /immutable/);
      const size = Number(response.headers.get('content-length'));
      await response.body?.cancel();
      assert.ok(size > 0 && size <= 15 * 1024, `${address} has ${size} bytes`);
    }
  });

  it('are not found at other addresses, with or without a session', async () => {
    const { visitor } = await visitorWith(test, { name: 'Bea', roles: ['ADMIN'] });
    for (const path of ['nowhere', 'keys/a/b/c', 'assets/console.js']) {
      const page = await visitor.open(path);
      assert.equal(page.status, 404);
      assert.match(page.text, /Page not found/);
      const [, style = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(page.html)!;
      const response = await fetch(new URL(style, `${test.url}/console/${path}`));
      await response.body?.cancel();
      assert.equal(response.status, 200, style);
    }
  });

  it('are there only if they are wanted', async () => {
    const without = await startConsoleService({ app: { console: false } });
    const { status } = await fetch(`${without.url}/console/sign-in`);
    assert.equal(status, 404);
    await without.stop();
  });
});
