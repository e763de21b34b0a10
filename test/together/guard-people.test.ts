import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDoor } from '../../src/features/console/door.tsx';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { Networks } from '../../src/keys/basics/networks.ts';
import { describeOnEach } from '../support/dialects.ts';
import { browse, cookiesOf, nextOf, OPENS_PAGE } from '../support/door.ts';
import { type GuardedService, startGuarded } from '../features/guard/support/guard.ts';
import { connectRaw } from '../support/raw-connection.ts';
import { CLIENT, startProvider, type TestProvider } from '../support/provider.ts';
import { tempFolder } from '../support/temp.ts';

const GRANT = { admins: ['ADMIN'], '*': ['GUEST'] } as const;

describeOnEach('people who have no key, at a guarded service', () => {
  let service: GuardedService;
  let got: string[][];
  let trailers: string[];
  beforeEach(async () => {
    got = [];
    service = await startGuarded(
      (incoming, outgoing) => {
        got.push(incoming.rawHeaders);
        incoming.resume().once('end', () => {
          trailers = incoming.rawTrailers;
          outgoing.end('passed');
        });
      },
      { loadDoor: openDoor, people: { by: { header: 'remote-user', groups: 'remote-groups' }, grant: GRANT } },
    );
  });
  afterEach(() => service.stop());

  const ADA = { 'Remote-User': 'ada', 'Remote-Groups': 'admins' };
  const open = (headers: Record<string, string | string[]>, url = service.url) =>
    browse(`${url}/page`, { headers: { ...OPENS_PAGE, ...headers } });
  const valueOf = (name: string) => {
    const raw = got.at(-1)!;
    return raw.filter((_, index) => index % 2 === 1 && raw[index - 1]!.toLowerCase() === name);
  };

  it('are identified by their proxy, with the permissions of their groups', async () => {
    assert.deepEqual([(await open(ADA)).status, valueOf('x-auth-key-name')], [200, ['ada']]);
    assert.deepEqual(valueOf('remote-user'), ['ada']);
    assert.equal((await open({ 'Remote-User': 'ada' })).status, 403);
    assert.equal((await open({})).status, 401);
    for (const headers of [{ 'Remote-User': ['ada', 'bob'] }, { 'Remote-User': 'a'.repeat(256) }])
      assert.equal((await open(headers)).status, 400);
  });

  it('are out with the next request once they are disabled', async () => {
    await open(ADA);
    const { id } = (await service.keys.findByName('ada', OPERATOR))!;
    await service.keys.setEnabled(id, false, OPERATOR);
    assert.equal((await open(ADA)).status, 401);
  });

  it('send nothing that another site has made them send, or that has no known origin', async () => {
    const post = async (headers: Record<string, string>) =>
      (await browse(`${service.url}/page`, { method: 'POST', headers: { ...ADA, ...headers } })).status;
    for (const said of [
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      {},
    ])
      assert.equal(await post(said as Record<string, string>), 403, JSON.stringify(said));
    assert.equal(await post({ 'sec-fetch-site': 'same-origin' }), 200);
    assert.equal(await post({ origin: service.url }), 200);
  });

  it('are not signed in at a host that no route names, because of DNS rebinding', async () => {
    const hosts = ['*', 'wiki.example.org', '*.apps.example.org'];
    const url = await service.beside({ hosts, publicUrl: 'https://keys.example.org' });
    const { port } = new URL(url);
    const statusAt = async (host: string, headers = {}) =>
      (await open({ ...ADA, 'x-forwarded-proto': 'https', host, ...headers }, url)).status;
    for (const host of ['evil.example', `evil.example:${port}`, 'apps.example.org', 'wiki.example.org.evil.example'])
      assert.equal(await statusAt(host, { 'x-forwarded-host': 'localhost' }), 403, host);
    assert.equal(await service.keys.findByName('ada', OPERATOR), undefined);
    for (const host of ['wiki.example.org', `wiki.example.org:${port}`, 'a.apps.example.org', 'keys.example.org'])
      assert.equal(await statusAt(host), 200, host);
    assert.equal(await statusAt(`localhost:${port}`), 200);
    assert.equal(await statusAt('wiki.example.org', { 'x-forwarded-proto': 'http' }), 403);
    const key = { authorization: `Bearer ${service.secret}` };
    assert.equal((await open({ host: 'evil.example', ...key }, url)).status, 200);
  });

  it('are not signed in by a header from elsewhere, which the service does not get', async () => {
    const url = await service.beside({ trust: new Networks(['192.0.2.0/24']) });
    assert.equal((await open(ADA, url)).status, 401);
    const key = { authorization: `Bearer ${service.secret}` };
    assert.equal((await open({ ...ADA, ...key }, url)).status, 200);
    assert.deepEqual([valueOf('remote-user'), valueOf('remote-groups')], [[], []]);
  });

  it('are not signed in as others by look-alikes of the header, or by trailers', async () => {
    const aliases = { Remote_User: 'root', 'remote.groups': 'x', Remote_Groups: 'x' };
    assert.equal((await open({ ...ADA, ...aliases })).status, 200);
    const names = got.at(-1)!.filter((_, index) => index % 2 === 0 && /^remote/i.test(got.at(-1)![index]!));
    assert.deepEqual([names, valueOf('remote-user')], [['Remote-User', 'Remote-Groups'], ['ada']]);
    const raw = connectRaw(service.url);
    raw.request(
      'POST /page HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${service.secret}`,
      'Remote-User: ada',
      'Transfer-Encoding: chunked',
      'Trailer: Remote-User, X-Sum',
    );
    raw.send('1\r\na\r\n0\r\nRemote-User: root\r\nX-Sum: 1\r\n\r\n');
    await raw.receives('passed');
    assert.deepEqual(trailers, ['X-Sum', '1']);
  });

  it("a key takes precedence over a proxy's headers", async () => {
    const page = await open({ ...ADA, authorization: `Bearer ${service.secret}` });
    assert.equal(page.status, 200);
    assert.notDeepEqual(valueOf('x-auth-key-name'), ['ada']);
  });
});

describeOnEach('people who sign in at a provider, at a guarded service', () => {
  let service: GuardedService;
  let provider: TestProvider;
  beforeEach(async () => {
    provider = await startProvider();
    const secretFile = join(tempFolder(), 'client.secret');
    writeFileSync(secretFile, CLIENT.secret, { mode: 0o600 });
    const by = { issuer: provider.issuer, clientId: CLIENT.id, secretFile, groups: 'groups' };
    service = await startGuarded((_, outgoing) => outgoing.end('passed'), {
      loadDoor: openDoor,
      people: { by, grant: GRANT },
    });
    provider.register(`${service.url}/.svc-api/sign-in/callback`);
    provider.account = { sub: '1', preferred_username: 'ada', groups: ['admins'] };
  });
  afterEach(async () => {
    await service.stop();
    await provider.stop();
  });

  /** Follows the sign-in link to the provider and back. */
  async function signIn(path: string) {
    const page = await browse(service.url + path, { headers: OPENS_PAGE });
    const [, link] = /href="([^"]*sign-in\/start[^"]*)"/.exec(page.body)!;
    const jar = new Map<string, string>();
    let to = new URL(link!.replaceAll('&amp;', '&'), service.url);
    for (;;) {
      const cookie = Array.from(jar, (pair) => pair.join('=')).join('; ');
      const site = to.pathname.endsWith('/start') ? 'same-origin' : 'cross-site';
      const answer = await browse(to.href, { headers: { ...OPENS_PAGE, 'sec-fetch-site': site, cookie } });
      for (const pair of cookiesOf(answer).split('; ')) jar.set(...(pair.split(/=(.*)/) as [string, string]));
      if (answer.headers.location === undefined) return { answer, cookies: cookiesOf(answer) };
      to = new URL(answer.headers.location, to);
    }
  }

  it('come back to where they wanted to go, with a session of that host', async () => {
    const { answer, cookies } = await signIn('/deep/link?a=1');
    assert.deepEqual([answer.status, nextOf(answer)], [200, '/deep/link?a=1']);
    assert.match(cookies, /^svc_api_session_lax=[\w-]{43}$|svc_api_session/);
    const page = await browse(`${service.url}/deep/link`, { headers: { ...OPENS_PAGE, cookie: cookies } });
    assert.deepEqual([page.status, page.body], [200, 'passed']);
    const { id } = (await service.keys.findByName('ada', OPERATOR))!;
    await service.keys.delete([id], OPERATOR);
    const gone = await browse(`${service.url}/deep/link`, { headers: { ...OPENS_PAGE, cookie: cookies } });
    assert.equal(gone.status, 401);
  });

  it('are refused where their groups may not', async () => {
    provider.account = { sub: '2', preferred_username: 'bob', groups: [] };
    const { cookies } = await signIn('/');
    assert.equal((await browse(`${service.url}/`, { headers: { ...OPENS_PAGE, cookie: cookies } })).status, 403);
  });

  it('learn that the provider does not answer', async () => {
    provider.isSilent = true;
    const { answer } = await signIn('/');
    assert.deepEqual([answer.status, answer.body.includes('does not answer. Try again later')], [503, true]);
  });
});
