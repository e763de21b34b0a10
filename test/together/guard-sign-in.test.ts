import assert from 'node:assert/strict';
import { openDoor } from '../../src/features/console/door.tsx';
import { byRoutes } from '../../src/features/guard/access.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { digestToken, SESSIONS } from '../../src/features/sessions/session.ts';
import { tokenAt } from '../../src/features/sessions/cookies.ts';
import { SeenOrigin } from '../../src/features/sessions/index.ts';
import { createRouter } from '../../src/features/routes/router.ts';
import { browse, cookiesOf, nextOf, OPENS_PAGE, type Page, sendKey, SENDS_FORM } from '../support/door.ts';
import { describeOnEach } from '../support/dialects.ts';
import { type GuardedService, PERMISSION, startGuarded } from '../features/guard/support/guard.ts';
import { connectRaw } from '../support/raw-connection.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { until } from '../support/until.ts';

const MINUTE = 60_000;
const isSignInPage = ({ body }: Page) => /<h1>Sign in to [^<]+<\/h1>/.test(body) && body.includes('type="password"');

/** Requests that are not page loads. */
const OTHERS: Readonly<Record<string, { method?: string; headers?: Record<string, string | undefined> }>> = {
  'without an Accept': {},
  'of curl': { headers: { accept: '*/*' } },
  'of a client of JSON': { headers: { accept: 'application/json' } },
  'that takes both alike': { headers: { accept: 'application/json, text/html' } },
  'that would rather have JSON': { headers: { accept: 'text/html;q=0.8, application/json' } },
  'of a script': { headers: { ...OPENS_PAGE, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } },
  'of an older script': { headers: { accept: 'text/html', 'x-requested-with': 'XMLHttpRequest' } },
  'of a frame': { headers: { ...OPENS_PAGE, 'sec-fetch-dest': 'iframe' } },
  'of an image': { headers: { ...OPENS_PAGE, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' } },
  'of a form of a script': { method: 'POST', headers: { ...SENDS_FORM, 'sec-fetch-mode': 'cors' } },
  'of JSON': { method: 'POST', headers: { accept: OPENS_PAGE.accept, 'content-type': 'application/json' } },
  'with another method': { method: 'DELETE', headers: OPENS_PAGE },
  'with a wrong key': { headers: { ...OPENS_PAGE, authorization: 'Bearer svc_nonsense' } },
  'with a malformed key': { headers: { ...OPENS_PAGE, authorization: 'Bearer' } },
  'with Basic and no password': { headers: { ...OPENS_PAGE, authorization: 'Basic YW55Og==' } },
};

describeOnEach('signing in at a guarded service', () => {
  let service: GuardedService;
  let got: string[][];
  const { log, lines } = collectingLog();
  beforeEach(async () => {
    [got, lines.length] = [[], 0];
    service = await startGuarded(
      ({ rawHeaders }, outgoing) => {
        got.push(rawHeaders);
        outgoing.end('passed');
      },
      { loadDoor: openDoor, log, credentials: ['bearer', 'basic'] },
    );
    service.upstream.on('upgrade', (_, socket) => {
      socket.on('error', () => {});
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
  });
  afterEach(() => service.stop());

  const open = (path: string, cookie?: string, headers = {}) =>
    browse(service.url + path, { headers: { ...OPENS_PAGE, cookie, ...headers } });
  const signIn = async (to = '/') => cookiesOf(await sendKey(service.url, service.secret, {}, to));
  /** Opens a WebSocket with a session. */
  const openSocket = async (cookie: string) => {
    const raw = connectRaw(service.url);
    raw.request(
      'GET /live HTTP/1.1',
      `Host: ${new URL(service.url).host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-Fetch-Site: same-origin',
      `Cookie: ${cookie}`,
    );
    await raw.receives(/^HTTP\/1\.1 101 /);
    return raw;
  };
  const valueOf = (raw: readonly string[], name: string) =>
    raw.filter((_, index) => index % 2 === 1 && raw[index - 1]!.toLowerCase() === name);

  it('shows a person a page in place of the answer, with the same status; programs get the answer', async () => {
    const page = await open('/deep/link?a=1&b=%2F');
    assert.deepEqual([page.status, page.headers['content-type']], [401, 'text/html; charset=utf-8']);
    assert.ok(isSignInPage(page));
    assert.ok(page.body.includes('name="to" value="/deep/link?a=1&amp;b=%2F"'));
    // A Basic challenge would make the browser prompt before it shows the page.
    assert.equal(page.headers['www-authenticate'], 'Bearer realm="svc-api"');
    assert.equal(page.headers['cache-control'], 'no-store');
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; .*form-action 'self'/);
    const head = await browse(`${service.url}/`, { method: 'HEAD', headers: OPENS_PAGE });
    assert.deepEqual([head.status, head.body], [401, '']);
    // Older browsers and pages without TLS send no Sec-Fetch headers.
    assert.ok(isSignInPage(await browse(`${service.url}/`, { headers: { accept: OPENS_PAGE.accept } })));

    const plain = await service.beside({ loadDoor: undefined });
    assert.equal((await browse(`${plain}/.svc-api/`)).status, 401);
    for (const [name, asked] of Object.entries(OTHERS)) {
      const [before, after] = [await browse(`${plain}/deep`, asked), await browse(`${service.url}/deep`, asked)];
      assert.deepEqual([name, after.status, after.raw, after.body], [name, before.status, before.raw, before.body]);
      assert.equal(before.status, name === 'with a malformed key' ? 400 : 401, name);
    }
    assert.deepEqual(got, []);
  });

  it('offers Basic to programs and to pages in a frame, but not to scripts and images of a page', async () => {
    const offered = async (headers: Record<string, string>) =>
      (await browse(`${service.url}/`, { headers })).headers['www-authenticate'];
    const [full, quiet] = ['Basic realm="svc-api", charset="UTF-8", Bearer realm="svc-api"', 'Bearer realm="svc-api"'];
    for (const mode of ['cors', 'no-cors', 'same-origin', 'websocket', ''])
      assert.equal(await offered({ 'sec-fetch-mode': mode }), quiet, mode);
    assert.equal(await offered({}), full);
    assert.equal(await offered({ 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }), full);
    const wrong = { 'sec-fetch-mode': 'cors', authorization: 'Bearer svc_nonsense' };
    assert.equal(await offered(wrong), `${quiet}, error="invalid_token"`);
    const alone = await service.beside({ credentials: ['basic'] });
    const answer = await browse(alone, { headers: { 'sec-fetch-mode': 'cors' } });
    assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'ApiKey realm="svc-api"']);
  });

  it('answers a form without a session by a page that leads back to its own page', async () => {
    const send = (headers: Record<string, string | undefined>) =>
      browse(`${service.url}/save`, { method: 'POST', headers: { ...SENDS_FORM, ...headers }, body: 'a=1' });
    for (const [referer, to] of [
      [`${service.url}/edit?id=1`, '/edit?id=1'],
      ['https://evil.example/edit', '/'],
      [`${service.url}/.svc-api/`, '/'],
      [undefined, '/'],
    ] as const) {
      const page = await send({ referer });
      assert.deepEqual([page.status, isSignInPage(page), page.body.includes('nothing was done')], [401, true, true]);
      assert.ok(page.body.includes(`name="to" value="${to}"`), to);
    }
    // Pages without TLS send no Sec-Fetch headers.
    const { accept, 'content-type': type } = SENDS_FORM;
    assert.ok(
      isSignInPage(await browse(`${service.url}/save`, { method: 'POST', headers: { accept, 'content-type': type } })),
    );
    const cookie = await signIn();
    const refused = await send({ cookie, 'sec-fetch-site': 'cross-site' });
    assert.deepEqual([refused.status, refused.body.includes('<h1>Not allowed</h1>')], [403, true]);
    assert.deepEqual([(await send({ cookie })).status, got.length], [200, 1]);
  });

  it('does nothing by a session for a request of unknown origin', async () => {
    const cookie = await signIn();
    const post = async (headers: Record<string, string>) =>
      (await browse(`${service.url}/`, { method: 'POST', headers: { cookie, ...headers } })).status;
    assert.equal(await post({}), 403);
    assert.equal(await post({ origin: service.url }), 200);
    assert.equal(await post({ 'sec-fetch-site': 'same-origin' }), 200);
  });

  it('exchanges a key for a session, which the service does not see', async () => {
    const page = await sendKey(service.url, ` ${service.secret} `, {}, '/deep/link?a=1&b=2');
    assert.deepEqual([page.status, nextOf(page)], [200, '/deep/link?a=1&b=2']);
    const [value] = /[\w-]{43}/.exec(cookiesOf(page))!;
    assert.deepEqual(page.headers['set-cookie'], [
      `svc_api_session_lax=${value}; Max-Age=28800; Path=/; HttpOnly; SameSite=Lax`,
      `svc_api_session=${value}; Max-Age=28800; Path=/; HttpOnly; SameSite=Strict`,
    ]);
    const own = cookiesOf(page);
    for (const [sent, passed] of [
      [own, []],
      [`a="b"; ${own};c==d`, ['a="b";c==d']],
      [`x=svc_api_session; ${own}; y=%zz`, ['x=svc_api_session; y=%zz']],
    ] as const) {
      const answer = await open('/deep/link', sent);
      assert.deepEqual([answer.status, answer.body], [200, 'passed']);
      assert.deepEqual(valueOf(got.at(-1)!, 'cookie'), passed);
      assert.deepEqual(valueOf(got.at(-1)!, 'x-auth-key-name'), ['Caller']);
      assert.deepEqual(valueOf(got.at(-1)!, 'x-auth-permission'), [PERMISSION]);
    }
    const all = JSON.stringify([got, lines]);
    for (const secret of [value, service.secret]) assert.ok(!all.includes(secret));
    assert.match(JSON.stringify(lines), /"signed in".*"reason":"door"|"reason":"door".*"signed in"/);
  });

  it('keeps the cookie to the host by its name where there is TLS, and takes no key without', async () => {
    const encrypted = { host: 'wiki.example.org', 'x-forwarded-proto': 'https' };
    const page = await sendKey(service.url, service.secret, encrypted);
    for (const cookie of page.headers['set-cookie']!)
      assert.match(cookie, /^__Host-svc_api_session(?:_lax)?=[\w-]{43}; .*Path=\/; HttpOnly; Secure; SameSite=/);
    const plain = await sendKey(service.url, service.secret, { host: 'wiki.example.org' });
    assert.deepEqual([plain.status, plain.headers['set-cookie']], [403, undefined]);
    assert.match(plain.body, /over http, because others could read your key/);
    assert.doesNotMatch(plain.body, /type="password"/);
  });

  it('opens nothing on another host, or by another scheme', async () => {
    const at = (host: string, proto = 'https') => ({ host, 'x-forwarded-proto': proto });
    const cookie = cookiesOf(await sendKey(service.url, service.secret, at('wiki.example.org')));
    const statusAt = async (headers: Record<string, string>, sent = cookie) => (await open('/', sent, headers)).status;
    assert.equal(await statusAt(at('wiki.example.org')), 200);
    assert.equal(await statusAt(at('wiki.example.org:8443')), 200, 'cookies know no ports');
    for (const other of ['grafana.example.org', 'example.org', 'x.wiki.example.org', '127.0.0.1'])
      assert.equal(await statusAt(at(other)), 401, other);
    assert.equal(await statusAt(at('wiki.example.org', 'http')), 401);
    assert.equal(await statusAt(at('wiki.example.org', 'http'), cookie.replaceAll('__Host-', '')), 401);
    assert.equal(await statusAt(at('wiki.example.org')), 200, 'it goes on where it was begun');
  });

  it('leads back only to the same host', async () => {
    for (const to of [
      'https://evil.example/',
      '//evil.example',
      '/\\evil.example',
      '\\\\evil.example',
      '/a\\b',
      '/\tevil',
      '/\r\nX: y',
      '/\u0000',
      '/é',
      ' /x',
      'javascript:alert(1)',
      'x',
      '',
      '/.svc-api/sign-out',
      '/.svc-api',
      '/.svc-api?x',
      `/${'x'.repeat(4000)}`,
    ]) {
      assert.equal(nextOf(await sendKey(service.url, service.secret, {}, to)), '/', to);
      const page = await browse(`${service.url}/.svc-api/sign-in?to=${encodeURIComponent(to)}`);
      assert.ok(page.body.includes('name="to" value="/"'), to);
      const cookie = await signIn();
      const signedIn = await open(`/.svc-api/sign-in?to=${encodeURIComponent(to)}`, cookie);
      assert.deepEqual([signedIn.status, signedIn.headers.location], [303, '/'], to);
    }
    const shown = await browse(`${service.url}/.svc-api/sign-in`, { headers: { 'x-original-uri': '//evil.example' } });
    assert.ok(shown.body.includes('name="to" value="/"'));
    for (const to of ['/', '/a//b/../c;d?e=f&g=%0d%0a', "/'%22><x>", '/.svc-apis'])
      assert.equal(
        nextOf(await sendKey(service.url, service.secret, {}, to))?.replace(/&.*?;/g, ''),
        to.replace(/['<>]/g, ''),
      );
  });

  it('says why a key is not accepted, and counts that as everywhere else', async () => {
    const wrong = await sendKey(service.url, 'svc_nonsense', {}, '/deep');
    assert.deepEqual([wrong.status, wrong.headers['set-cookie']], [403, undefined]);
    assert.match(wrong.body, /The API key is not valid\./);
    assert.ok(wrong.body.includes('name="to" value="/deep"'));
    assert.ok(!wrong.body.includes('svc_nonsense'));
    assert.equal((await sendKey(service.url, '')).status, 400);
    for (let count = 0; count < 19; count += 1) await sendKey(service.url, 'svc_nonsense');
    const limited = await sendKey(service.url, 'svc_nonsense');
    assert.equal(limited.status, 429);
    assert.match(limited.headers['retry-after']!, /^\d+$/);
    const byHeader = await browse(service.url, { headers: { authorization: 'Bearer svc_nonsense' } });
    assert.equal(byHeader.status, 429, 'they are counted together');
    assert.notEqual(await signIn(), '');
  });

  it('takes only forms of its own page, so that other sites sign no one in', async () => {
    const { origin } = new URL(service.url);
    const cookie = await signIn();
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': undefined },
      { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
      { 'sec-fetch-site': undefined, origin: 'null' },
    ]) {
      const page = await sendKey(service.url, service.secret, headers);
      assert.deepEqual([page.status, page.headers['set-cookie']], [403, undefined], JSON.stringify(headers));
      const out = await browse(`${service.url}/.svc-api/sign-out`, {
        method: 'POST',
        headers: { ...SENDS_FORM, cookie, ...headers },
      });
      assert.equal(out.status, 403);
    }
    assert.equal((await open('/', cookie)).status, 200);
    assert.notEqual(cookiesOf(await sendKey(service.url, service.secret, { 'sec-fetch-site': undefined, origin })), '');
  });

  it('lets no other site do anything by a session', async () => {
    const url = await service.beside({ requirements: () => ({ allow: { kind: 'key' } }) });
    const shared = await service.beside({
      requirements: byRoutes(
        createRouter([
          { host: '127.0.0.1', path: '/**', allow: { kind: 'key' }, preflightOpen: false, crossSiteAllowed: true },
        ]),
      ),
    });
    const cookie = await signIn();
    const send = async (to: string, method: string, site: string | undefined, headers = {}) =>
      (await browse(`${to}/x`, { method, headers: { cookie, 'sec-fetch-site': site, ...headers } })).status;
    for (const site of ['cross-site', 'same-site', ''])
      for (const method of ['POST', 'PUT', 'DELETE']) {
        assert.equal(await send(url, method, site), 403);
        assert.equal(await send(shared, method, site), 200);
      }
    assert.equal(await send(url, 'POST', undefined, { origin: 'https://evil.example' }), 403);
    assert.equal(await send(url, 'GET', 'cross-site', { 'sec-websocket-key': 'x' }), 403);
    assert.equal(await send(url, 'GET', 'cross-site'), 200, 'a link');
    assert.equal(await send(url, 'POST', 'same-origin'), 200);
    const key = `Bearer ${service.secret}`;
    assert.equal(await send(url, 'POST', 'cross-site', { authorization: key }), 200, 'a key in a header');
  });

  it('prefers a key in the request to the session', async () => {
    const cookie = await signIn();
    const { secret } = await createPrincipal(service.keys, { name: 'Program', permissions: [PERMISSION] });
    assert.equal((await open('/', cookie, { authorization: `Bearer ${secret}` })).status, 200);
    assert.deepEqual(valueOf(got.at(-1)!, 'x-auth-key-name'), ['Program']);
    assert.equal((await open('/', cookie, { authorization: 'Bearer svc_nonsense' })).status, 401);
  });

  it('ends a session after 30 minutes without a request, and after 8 hours', async () => {
    const cookie = await signIn();
    const token = tokenAt(new SeenOrigin(service.url), /[\w-]{43}/.exec(cookie)![0]);
    const usedAt = async () => (await service.store.repository.port(SESSIONS).find(digestToken(token)))?.usedAt;
    for (let minutes = 0; minutes < 8 * 60; minutes += 29) {
      assert.equal((await open('/', cookie)).status, 200, `${minutes} minutes`);
      await until(async () => (await usedAt()) === service.time.now);
      service.time.now += 29 * MINUTE;
    }
    assert.equal((await open('/', cookie)).status, 401);
    const other = await signIn();
    service.time.now += 30 * MINUTE;
    assert.ok(isSignInPage(await open('/', other)));
  });

  it('counts WebSocket messages as uses of the session, while the WebSocket is open', async () => {
    const cookie = await signIn();
    const socket = await openSocket(cookie);
    const token = tokenAt(new SeenOrigin(service.url), /[\w-]{43}/.exec(cookie)![0]);
    const usedAt = async () => (await service.store.repository.port(SESSIONS).find(digestToken(token)))?.usedAt;
    service.time.now += 29 * MINUTE;
    const sending = setInterval(() => socket.send('x'), 50);
    await until(async () => (await usedAt()) === service.time.now);
    clearInterval(sending);
    assert.equal(socket.isClosed, false);
    service.time.now += 30 * MINUTE;
    await socket.closed();
  });

  for (const [what, end] of [
    ['deleted', (id: string) => service.keys.delete([id], OPERATOR)],
    ['disabled', (id: string) => service.keys.setEnabled(id, false, OPERATOR)],
    ['rotated', (id: string) => service.keys.rotate(id, { grace: '0s' }, OPERATOR)],
  ] as const)
    it(`ends a session, and its WebSockets, with a key that is ${what}`, async () => {
      const { secret, principal } = await createPrincipal(service.keys, { name: 'Bea', permissions: [PERMISSION] });
      const cookie = cookiesOf(await sendKey(service.url, secret));
      const socket = await openSocket(cookie);
      await end(principal.apiKey.id);
      assert.ok(isSignInPage(await open('/', cookie)));
      await socket.closed();
      // Polling with an ended session does not count as guessing.
      for (let count = 0; count < 25; count += 1)
        assert.equal((await browse(service.url, { headers: { cookie } })).status, 401);
    });

  it('ends a session and all that is open by it when its holder signs out', async () => {
    const cookie = await signIn();
    const other = await signIn();
    const [socket, others] = [await openSocket(cookie), await openSocket(other)];
    const page = await open('/.svc-api/', cookie);
    assert.match(page.body, /You are signed in to 127\.0\.0\.1:\d+ with the key <strong>Caller<\/strong>/);
    const out = await browse(`${service.url}/.svc-api/sign-out`, {
      method: 'POST',
      headers: { ...SENDS_FORM, cookie },
    });
    assert.deepEqual([out.status, out.headers.location, cookiesOf(out)], [303, './', '']);
    assert.equal(out.headers['set-cookie']!.length, 2);
    assert.ok(isSignInPage(await open('/', cookie)));
    await socket.closed();
    assert.equal((await open('/', other)).status, 200);
    assert.equal(others.isClosed, false);
    others.socket.destroy();
  });

  it('tells people what their key lacks, with a way out, and answers programs as usual', async () => {
    const { secret } = await createPrincipal(service.keys, { name: 'Guest', roles: ['GUEST'] });
    const cookie = cookiesOf(await sendKey(service.url, secret));
    const page = await open('/', cookie);
    assert.equal(page.status, 403);
    assert.match(page.body, /Your key lacks DASHBOARD:READ_ANY\./);
    assert.match(page.body, /action="\/\.svc-api\/sign-out"/);
    const script = await browse(service.url, { headers: { cookie, accept: 'application/json' } });
    const program = await browse(service.url, { headers: { authorization: `Bearer ${secret}` } });
    assert.deepEqual([script.status, script.raw, script.body], [403, program.raw, program.body]);
  });

  it('has nothing else at its addresses, and passes none of them on', async () => {
    for (const [path, status] of [
      ['/.svc-api/x', 404],
      ['/.svc-api', 404],
      ['/.svc-api?x', 404],
      ['/.svc-api/sign-in?to=%ff', 400],
    ] as const)
      assert.equal((await browse(service.url + path)).status, status, path);
    const large = await browse(`${service.url}/.svc-api/sign-in`, {
      method: 'POST',
      headers: SENDS_FORM,
      body: `key=${'x'.repeat(20_000)}`,
    });
    assert.equal(large.status, 413);
    const other = connectRaw(service.url);
    other.request('GET /.svc-api/../x HTTP/1.1', 'Host: a');
    await other.receives(/^HTTP\/1\.1 404 /);
    other.socket.destroy();
    const raw = connectRaw(service.url);
    raw.request('GET /.svc-api/ HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket');
    await raw.receives(/^HTTP\/1\.1 400 /);
    raw.socket.destroy();
    assert.deepEqual(got, []);
  });
});
