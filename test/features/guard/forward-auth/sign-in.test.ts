import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { browse, cookiesOf, nextOf, OPENS_PAGE, sendKey, SENDS_FORM } from '../../../support/door.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  routeTo,
  SITE,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';

const READ = '?permission=GRAFANA:READ_ANY';
const linesOf = (headers: Readonly<Record<string, string | undefined>>) =>
  Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
/** The headers of a proxy that forwards requests for the pages. */
const AT_SITE = { host: SITE, 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' };

for (const proxy of ALL_PROXIES)
  describe(`signing in to a service for which ${proxy} asks`, () => {
    let server: AskedServer;
    let secret: string;
    before(async () => {
      server = await startAskedServer({
        config: { signIn: 'on', credentials: ['bearer', 'basic'], routes: [routeTo('/open', { kind: 'open' })] },
      });
      secret = (await server.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR)).key;
    });
    after(() => server.stop());

    const asked = (headers: Readonly<Record<string, string | undefined>>, target = '/deep?a=1', query = READ) => {
      // These headers replace the proxy's own.
      const asking = ASKING[proxy]({ target }, query);
      const own = asking.headers.filter((line) => !Object.keys(headers).some((name) => line.startsWith(`${name}:`)));
      return server.send(withHeaders({ ...asking, headers: own }, ...linesOf(headers)));
    };
    const signIn = async () => cookiesOf(await sendKey(server.url, secret, AT_SITE));

    it('answers a person by a page, or by where that is, and programs as before', async () => {
      const { status, headers, body } = await asked(OPENS_PAGE);
      const page = headers.get('x-auth-page');
      assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer realm="svc-api"']);
      if (proxy === 'nginx') assert.equal(page, '/.svc-api/sign-in');
      else assert.match(body, new RegExp(`<h1>Sign in to ${SITE}</h1>.*name="to" value="/deep\\?a=1"`));
      assert.equal(page === null, proxy !== 'nginx');
      for (const others of [
        { accept: '*/*' },
        { ...OPENS_PAGE, 'sec-fetch-dest': 'iframe' },
        { ...OPENS_PAGE, authorization: 'Bearer svc_nonsense' },
      ]) {
        const program = await asked(others);
        assert.deepEqual([program.status, program.headers.get('x-auth-page')], [401, null]);
        assert.match(program.headers.get('www-authenticate')!, /^Basic /);
        assert.match(program.body, /^\{"errors"/);
      }
    });

    it('accepts a session on that host only, and tells the proxy the cookies of the service', async () => {
      const cookie = await signIn();
      assert.match(cookie, /^__Host-svc_api_session_lax=/);
      const passed = await asked({ ...OPENS_PAGE, cookie: `a="1"; ${cookie};b=2==` });
      assert.deepEqual([passed.status, passed.headers.get('cookie')], [200, 'a="1";b=2==']);
      assert.equal(passed.headers.get('x-auth-key-name'), 'Reader');
      assert.equal((await asked({ cookie })).headers.get('cookie'), '');
      const other = ASKING[proxy]({ host: 'wiki.example.org' }, READ);
      assert.equal((await server.send(withHeaders(other, `cookie: ${cookie}`))).status, 401);
    });

    it('tells the proxy the cookies of the service, for every caller', async () => {
      const cookies = 'x=1; svc_api_session=2; y=3; __Host-svc_api_session_lax=4';
      const byKey = await asked({ cookie: cookies, authorization: `Bearer ${secret}` });
      assert.deepEqual([byKey.status, byKey.headers.get('cookie')], [200, 'x=1; y=3']);
      const open = await asked({ cookie: cookies }, '/open', '');
      assert.deepEqual([open.status, open.headers.get('cookie')], [200, 'x=1; y=3']);
      const without = await server.send(withHeaders(ASKING[proxy]({}, READ), keyLine(secret)));
      assert.deepEqual([without.status, without.headers.get('cookie')], [200, null]);
    });

    it('lets other sites do nothing by a session', async () => {
      const cookie = await signIn();
      const post = (headers: Record<string, string>) => {
        const asking = ASKING[proxy]({ method: 'POST' }, '?key');
        return server.send(withHeaders(asking, ...linesOf({ cookie, ...headers })));
      };
      for (const site of ['cross-site', 'same-site'])
        assert.equal((await post({ 'sec-fetch-site': site })).status, 403);
      assert.equal((await post({ 'sec-fetch-site': 'same-origin' })).status, 200);
      const byKey = { 'sec-fetch-site': 'cross-site', authorization: `Bearer ${secret}` };
      assert.equal((await post(byKey)).status, 200);
    });

    it('explains refusals to people, and answers programs as usual', async () => {
      const cookie = await signIn();
      const UPDATE = '?permission=GRAFANA:UPDATE_ANY';
      const { status, headers, body } = await asked({ ...OPENS_PAGE, cookie }, '/deep', UPDATE);
      assert.equal(status, 403);
      if (proxy === 'nginx') assert.equal(headers.get('x-auth-page'), '/.svc-api/refused');
      else assert.match(body, /<h1>Not allowed<\/h1>.*Your key lacks GRAFANA:UPDATE_ANY\./);
      const program = await asked({ accept: '*/*', cookie }, '/deep', UPDATE);
      assert.deepEqual([program.status, program.headers.get('x-auth-page')], [403, null]);
      assert.match(program.body, /^\{"errors"/);
    });

    it('answers a form without a session by a page, or by its address', async () => {
      const referer = `https://${SITE}/edit?id=1`;
      const asking = ASKING[proxy]({ method: 'POST', target: '/save' }, '?key');
      const own = asking.headers.filter((line) => !/^(?:accept|sec-)/i.test(line));
      const lines = linesOf({ ...OPENS_PAGE, 'sec-fetch-site': 'same-origin', referer });
      const { status, headers, body } = await server.send(withHeaders({ ...asking, headers: own }, ...lines));
      assert.equal(status, 401);
      if (proxy !== 'nginx') assert.match(body, /nothing was done.*name="to" value="\/edit\?id=1"/);
      else {
        assert.equal(headers.get('x-auth-page'), '/.svc-api/lost');
        const page = await browse(`${server.url}/.svc-api/lost`, { headers: { ...AT_SITE, ...OPENS_PAGE, referer } });
        assert.match(page.body, /nothing was done.*name="to" value="\/edit\?id=1"/);
      }
    });

    it('refuses its own addresses, which the proxy has not passed on to it', async () => {
      for (const target of ['/.svc-api/sign-in', '/.svc-api', '/.svc-api?x'])
        for (const query of [READ, ''])
          assert.equal((await asked({ authorization: `Bearer ${secret}` }, target, query)).status, 403);
      assert.match(JSON.stringify(server.lines), /the proxy asks about \/\.svc-api\/: let it pass these requests on/);
    });
  });

describe('the pages to sign in to services for which proxies ask', () => {
  it('are not there unless that is configured', async () => {
    for (const signIn of [undefined, 'off'] as const) {
      const server = await startAskedServer({ config: { signIn } });
      for (const proxy of ALL_PROXIES) {
        const asking = withHeaders(ASKING[proxy]({}, READ), ...linesOf({ ...OPENS_PAGE, accept: undefined }));
        const { status, headers, body } = await server.send(asking);
        assert.deepEqual([status, headers.get('x-auth-page'), body.startsWith('{"errors"')], [401, null, true]);
      }
      assert.equal((await browse(`${server.url}/.svc-api/`)).status, 404);
      await server.stop();
    }
  });

  it('trust the scheme and the host of trusted proxies only', async () => {
    const server = await startAskedServer({ config: { signIn: 'on' }, trust: ['192.0.2.1'] });
    const { key } = await server.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const page = await sendKey(server.url, key, AT_SITE);
    assert.deepEqual([page.status, page.headers['set-cookie']], [403, undefined]);
    assert.match(page.body, /over http, because others could read your key/);
    await server.stop();
  });

  it('lead back to the same host, and sign out', async () => {
    const server = await startAskedServer({ config: { signIn: 'on' } });
    const { key } = await server.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    assert.equal(nextOf(await sendKey(server.url, key, AT_SITE, '//evil.example')), '/');
    const signedIn = await sendKey(server.url, key, AT_SITE, '/deep');
    assert.equal(nextOf(signedIn), '/deep');
    const cookie = cookiesOf(signedIn);
    const passes = async () =>
      (await server.send(withHeaders(ASKING.caddy({}, READ), `cookie: ${cookie}`))).status === 200;
    assert.equal(await passes(), true);
    const out = await browse(`${server.url}/.svc-api/sign-out`, {
      method: 'POST',
      headers: { ...SENDS_FORM, ...AT_SITE, cookie },
    });
    assert.equal(out.status, 303);
    assert.equal(await passes(), false);
    await server.stop();
  });
});
