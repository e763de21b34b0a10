import assert from 'node:assert/strict';
import { startConsoleService, Visitor, visitorWith } from '../features/console/support/console.ts';
import { browse, cookiesOf, OPENS_PAGE, sendKey, SENDS_FORM } from '../support/door.ts';
import { ASKING } from '../features/guard/support/forward-auth.ts';
import { createPrincipal } from '../support/keys.ts';
import type { TestService } from '../support/server.ts';
import { defaultConfig } from '../../src/config/default-config.ts';

const ADA = { name: 'Ada', roles: ['ADMIN'] } as const;

describe('a session of a host', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ app: { config: { ...defaultConfig(), signIn: 'on' } } });
  });
  afterEach(() => test.stop());

  /** The answer to a proxy that asks about a request to a service on the same host. */
  const statusAtDoor = async (cookie: string) => {
    const { host } = new URL(test.url);
    const lines = ASKING.nginx({ host }, '?key').headers.map((line) => line.split(': ') as [string, string]);
    const headers = { ...Object.fromEntries(lines), host, 'x-forwarded-proto': 'http', cookie };
    return (await browse(`${test.url}/auth/nginx?key`, { headers })).status;
  };
  const isInConsole = async (cookie: string) => {
    const visitor = new Visitor(test.url);
    visitor.cookie = cookie;
    return (await visitor.open('keys')).path === 'keys';
  };

  it('that is begun at the door is one of the console', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const cookies = cookiesOf(await sendKey(test.url, secret)).split('; ');
    const [lax, strict] = cookies as [string, string];
    assert.equal(await statusAtDoor(cookies.join('; ')), 200);
    assert.equal(await isInConsole(strict), true);
    // The cookie that is sent with cross-site links does not open the console.
    assert.equal(await isInConsole(lax), false);
    assert.equal(await isInConsole(lax.replace('_lax', '')), true, 'they are of one session');
  });

  it('that is begun in the console is one of the door', async () => {
    const { visitor } = await visitorWith(test, ADA);
    assert.equal(await statusAtDoor(visitor.cookie!), 200);
    const page = await browse(`${test.url}/.svc-api/`, { headers: { ...OPENS_PAGE, cookie: visitor.cookie! } });
    assert.match(page.body, /with the key <strong>Ada<\/strong>/);
  });

  it('ends at both, wherever the person signs out', async () => {
    for (const path of ['console', '.svc-api']) {
      const { secret } = await createPrincipal(test.keys, { ...ADA, name: `Ada at ${path.replaceAll(/\W/g, '')}` });
      const cookie = cookiesOf(await sendKey(test.url, secret));
      const out = await browse(`${test.url}/${path}/sign-out`, { method: 'POST', headers: { ...SENDS_FORM, cookie } });
      assert.equal(out.status, 303);
      assert.equal(out.headers['set-cookie']!.filter((set) => set.includes('Max-Age=0')).length, 2);
      assert.equal(await statusAtDoor(cookie), 401);
      assert.equal(await isInConsole(cookie.split('; ')[1]!), false);
    }
  });

  it('is replaced at both by another one', async () => {
    const { secret } = await createPrincipal(test.keys, ADA);
    const cookie = cookiesOf(await sendKey(test.url, secret));
    const again = await browse(`${test.url}/console/sign-in`, {
      method: 'POST',
      headers: { ...SENDS_FORM, cookie },
      body: new URLSearchParams({ key: secret }).toString(),
    });
    const next = cookiesOf(again);
    assert.equal(next.split('; ').length, 2);
    assert.equal(await statusAtDoor(cookie), 401);
    assert.equal(await statusAtDoor(next), 200);
  });
});
