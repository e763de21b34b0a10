import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { inBrowserWithSites } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import { isHeaded, problem } from '../support/browser/page.ts';
import { OPENS_PAGE, SENDS_FORM } from '../support/door.ts';
import { type Answer, ask, askForWebSocket, sendBytes } from '../support/proxies/client.ts';
import { SITE } from '../support/proxies/configurations.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';
import { valuesOf } from '../support/proxies/service.ts';

const isSignInPage = ({ body }: Answer) => body.includes(`<h1>Sign in to ${SITE}</h1>`);
const linesOf = (headers: Readonly<Record<string, string>>) => Object.entries(headers);

describeEachProxy('a person', { signIn: 'on' }, (site, { resource }) => {
  const open = (path: string, ...more: [string, string][]) =>
    ask(site().port, { path, headers: [...linesOf(OPENS_PAGE), ...more] });
  const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    ask(site().port, {
      method: 'POST',
      path,
      headers: linesOf({ ...SENDS_FORM, ...headers }),
      body: new URLSearchParams(fields).toString(),
    });
  const signIn = async (key: string, to = '/') => {
    const page = await send('/.svc-api/sign-in', { key, to });
    assert.equal(page.status, 200, page.body);
    return (page.headers['set-cookie'] as string[]).map((cookie) => cookie.split(';')[0]).join('; ');
  };
  const reader = () => site().create({ permissions: [site().may('READ')] });

  it('who opens a page without a key sees where to sign in, with the status that programs get', async () => {
    const before = site().service.requests();
    const page = await open('/deep/link?a=1&b=%2F&c=a+b');
    assert.deepEqual([page.status, page.headers['content-type']], [401, 'text/html; charset=utf-8']);
    assert.ok(isSignInPage(page), page.body);
    assert.ok(page.body.includes('name="to" value="/deep/link?a=1&amp;b=%2F&amp;c=a+b"'), page.body);
    assert.equal(page.headers['www-authenticate'], 'Bearer realm="svc-api"');
    const long = `/deep?${'%25'.repeat(1300)}`;
    assert.ok((await open(long)).body.includes(`name="to" value="${long}"`));
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'/);
    const style = /href="(\/\.svc-api\/assets\/[^"]+\.css)"/.exec(page.body)![1]!;
    assert.equal((await ask(site().port, { path: style })).status, 200);
    const others: Record<string, string>[] = [
      {},
      { accept: '*/*' },
      { accept: 'application/json' },
      { ...OPENS_PAGE, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { ...OPENS_PAGE, authorization: 'Bearer svc_nonsense' },
    ];
    for (const headers of others) {
      const program = await ask(site().port, { path: '/deep', headers: linesOf(headers) });
      assert.equal(program.status, 401);
      assert.ok(!program.body.includes('<form'), program.body);
      // A browser would ask for a password on a request from a page's script.
      const offer =
        headers['sec-fetch-mode'] === 'cors' ? /^Bearer / : /^Basic realm="svc-api", charset="UTF-8", Bearer /;
      assert.match(String(program.headers['www-authenticate']), offer);
    }
    const posted = await send('/deep', { a: 'x'.repeat(10_000) }, { referer: `https://${SITE}/edit?id=1` });
    assert.deepEqual([posted.status, isSignInPage(posted)], [401, true], posted.body);
    assert.match(posted.body, /nothing was done.*name="to" value="\/edit\?id=1"/);
    assert.equal(site().service.requests(), before);
  });

  it('who signs in gets to the service, which gets no cookie of theirs for svc-api', async () => {
    const { key, id } = await reader();
    const page = await send('/.svc-api/sign-in', { key, to: '/deep/link?a=1' });
    assert.ok(page.body.includes('content="0; url=/deep/link?a=1"'), page.body);
    for (const cookie of page.headers['set-cookie'] as string[])
      assert.match(cookie, /^__Host-svc_api_session(?:_lax)?=[\w-]{43}; .*Path=\/; HttpOnly; Secure; SameSite=/);
    const cookie = await signIn(key);
    const [, token] = /=([\w-]{43})/.exec(cookie)!;
    for (const [sent, got] of [
      [cookie, ''],
      [`a="1"; ${cookie}; b=2==`, 'a="1"; b=2=='],
      // Cookies of another site on the same domain, or of a console without TLS.
      [`svc_api_session=other; svc_api_session_lax=other; ${cookie}`, ''],
      [`${cookie.split('; ')[0]}; a=1`, 'a=1'],
    ] as const) {
      const answer = await open('/deep/link?a=1', ['Cookie', sent]);
      assert.equal(answer.status, 200, sent);
      assert.deepEqual(valuesOf(answer.got!, 'x-auth-key-id'), [id]);
      assert.equal(valuesOf(answer.got!, 'cookie').join('; ').replace(/; ?$/, ''), got);
      assert.ok(!JSON.stringify(answer.got).includes(token!));
    }
    // A request from a script of the service's page.
    const script = await ask(site().port, { path: '/data', headers: [['Cookie', cookie]] });
    assert.equal(script.status, 200);
  });

  it('who comes from another site does nothing by a session, and is not signed in', async () => {
    const { key } = await site().create({ roles: ['ADMIN'] });
    const cookie = await signIn(key);
    const sites: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    ];
    for (const foreign of sites) {
      const headers = { ...foreign, cookie };
      assert.equal((await send('/api/x', {}, headers)).status, 403);
      assert.equal((await send('/.svc-api/sign-in', { key }, foreign)).status, 403);
      assert.equal((await send('/.svc-api/sign-out', {}, headers)).status, 403);
      const lines = linesOf(headers).map((header) => header.join(': '));
      const [refused, answer] = await askForWebSocket(site().port, lines);
      refused.destroy();
      assert.match(answer, /^HTTP\/1\.1 403 /);
    }
    const [socket, answer] = await askForWebSocket(site().port, [`Cookie: ${cookie}`, `Origin: https://${SITE}`]);
    socket.destroy();
    assert.match(answer, /^HTTP\/1\.1 101 /);
    assert.equal((await send('/api/x', {}, { cookie })).status, 200);
  });

  it('talks by WebSocket at another port than 443, too', async () => {
    const { key } = await site().create({ roles: ['ADMIN'] });
    const cookie = `Cookie: ${await signIn(key)}`;
    const statusOf = async (host: string, origin: string) => {
      const [socket, answer] = await askForWebSocket(site().port, [cookie, `Origin: https://${origin}`], host);
      socket.destroy();
      return answer.slice(9, 12);
    };
    assert.equal(await statusOf(`${SITE}:8443`, `${SITE}:8443`), '101');
    assert.equal(await statusOf(`${SITE}:8443`, `${SITE}:9443`), '403');
    assert.equal(await statusOf(SITE, `${SITE}:8443`), '403');
  });

  it('is not signed in by the headers of people, which reach neither svc-api nor the service', async () => {
    const headers = [
      'Remote-User',
      'Remote-Groups',
      'X-Remote-User',
      'X-Forwarded-User',
      'X-Forwarded-Groups',
      'X-Auth-Request-User',
      'X-Authentik-Username',
      'X-Authentik-Groups',
      'X-Webauth-User',
      'Tailscale-User-Login',
    ];
    const forged = headers.map((name): [string, string] => [name, 'root']);
    const [name, value] = await site().reader();
    const answer = await ask(site().port, { path: '/', headers: [[name, value], ...forged] });
    assert.equal(answer.status, 200);
    for (const header of headers) assert.deepEqual(valuesOf(answer.got!, header.toLowerCase()).join(''), '', header);
  });

  it('sees the pages for that, and nothing else of svc-api', async () => {
    for (const path of ['/healthz', '/console/', '/graphql', '/auth/nginx?key'])
      for (const up of ['..', '%2e%2e', '.%2E', '..\\..', '..%2f', './..', '/..', '..;']) {
        const bytes = `GET /.svc-api/${up}${path} HTTP/1.1\r\nHost: ${SITE}\r\nConnection: close\r\n\r\n`;
        assert.match(await sendBytes(site().port, bytes), /^HTTP\/1\.1 40[0134] /, up + path);
      }
  });

  it('is led to no other site', async () => {
    const { key } = await reader();
    for (const to of ['https://evil.example/', '//evil.example', '/\\evil.example', '/\tx', 'javascript:x']) {
      const page = await send('/.svc-api/sign-in', { key, to });
      assert.ok(page.body.includes('content="0; url=/"'), to);
      const { status, body } = await open(`/.svc-api/sign-in?to=${encodeURIComponent(to)}`);
      assert.deepEqual([status, body.includes('name="to" value="/"')], [200, true], to);
    }
  });

  it('who opens a page without permission sees why', async () => {
    const { key } = await site().create({ roles: ['GUEST'] });
    const cookie = await signIn(key);
    const page = await open('/', ['Cookie', cookie]);
    assert.equal(page.status, 403);
    assert.match(page.body, /<h1>Not allowed<\/h1>.*Your key (?:lacks|may not open)/);
    assert.match(page.body, /action="\/\.svc-api\/sign-out"/);
    const script = await ask(site().port, { headers: [['Cookie', cookie]] });
    assert.deepEqual([script.status, script.body.includes('<form')], [403, false]);
  });

  it(
    'opens a link, signs in, is back there, talks by WebSocket, and signs out, in a browser',
    inBrowserWithSites(
      () => ({ [SITE]: site().port }),
      async (visit) => {
        const origin = `https://${SITE}`;
        visit.started(origin, async () => {});
        visit.expectTrouble(/^status 401: GET /);
        const { key, id } = await reader();
        visit.isSecret(key);
        const page = await visit.open(`${origin}/deep/link?a=1#part`, { anyCertificate: true });
        await isHeaded(page, `Sign in to ${SITE}`);
        await expectAccessible(page);
        await page.getByLabel('API key').fill(key);
        await page.keyboard.press('Enter');
        // The sign-in page has the same address.
        await page.locator('body', { hasText: 'x-auth-key-id' }).waitFor();
        assert.equal(page.url(), `${origin}/deep/link?a=1#part`);
        const got = async () => page.locator('body').innerText();
        assert.ok((await got()).includes(`["x-auth-key-id","${id}"]`), await got());
        const talks = () =>
          page.evaluate<boolean>(`new Promise((resolve) => {
              const socket = new WebSocket('wss://${SITE}/live');
              socket.onopen = () => resolve(true);
              socket.onerror = () => resolve(false);
            })`);
        // The service sends a line before the first WebSocket message.
        visit.expectTrouble(/WebSocket connection to/);
        assert.equal(await talks(), true);

        const door = await visit.open(`${origin}/.svc-api/`, page.context());
        await isHeaded(door, 'Signed in');
        await expectAccessible(door);
        await door.getByRole('button', { name: 'Sign out' }).click();
        await isHeaded(door, `Sign in to ${SITE}`);
        assert.deepEqual(await page.context().cookies(), []);
        assert.equal(await talks(), false);
        await page.reload();
        await isHeaded(page, `Sign in to ${SITE}`);

        // A wrong key, then the right one, which is deleted meanwhile.
        visit.expectTrouble(/^status 403: POST \S+\/\.svc-api\/sign-in$/);
        await page.getByLabel('API key').fill('svc_nonsense');
        await page.keyboard.press('Enter');
        assert.match(await problem(page), /The API key is not valid/);
        await page.getByLabel('API key').fill(key);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.waitForURL(/\/deep\/link\?a=1/);
        assert.ok((await got()).includes(`["x-auth-permission","${resource}:READ_ANY"]`), await got());
        await site().keys.delete([id], OPERATOR);
        await page.reload();
        await isHeaded(page, `Sign in to ${SITE}`);
      },
    ),
  );
});

describeEachProxy('a proxy whose svc-api has sign-in turned off', { signIn: 'off' }, (site) => {
  it('gives people what programs get', async () => {
    const page = await ask(site().port, { path: '/deep', headers: linesOf(OPENS_PAGE) });
    assert.equal(page.status, 401);
    assert.ok(!page.body.includes('<form'));
    assert.match(String(page.headers['www-authenticate']), /^Basic /);
    const door = await ask(site().port, { path: '/.svc-api/', headers: linesOf(OPENS_PAGE) });
    assert.ok(door.status === 404 || door.status === 401, `${door.status}`);
    assert.equal(site().service.requests(), 0);
  });
});
