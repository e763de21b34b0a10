import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Config } from '../../../src/config/config.ts';
import { defaultConfig } from '../../../src/config/default-config.ts';
import { GrantableAccess } from '../../../src/features/console/grantable-access.ts';
import { OPERATOR, principalOf } from '../../../src/keys/authorization/index.ts';
import type { PeopleSettings } from '../../../src/features/people/people.ts';
import { fieldsIn } from '../consent/support/consent.ts';
import { startConsoleService, Visitor } from './support/console.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { collectingLog } from '../../support/log.ts';
import { CLIENT, startProvider, type TestProvider } from '../../support/provider.ts';
import type { TestService } from '../../support/server.ts';
import { tempFolder } from '../../support/temp.ts';

const GRANT = { admins: ['ADMIN'], '*': ['VIEWER', 'API_KEY:CREATE_OWN', 'API_KEY:READ_OWN'] } as const;
const BY_HEADER: PeopleSettings = { by: { header: 'remote-user', groups: 'remote-groups' }, grant: GRANT };

describeOnEach('a person signed in by a proxy', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ app: { config: { ...defaultConfig(), people: BY_HEADER } } });
  });
  afterEach(() => test.stop());

  const as = (user: string, groups = '') =>
    new Visitor(test.url, { 'remote-user': user, ...(groups !== '' && { 'remote-groups': groups }) });
  const person = async (name = 'ada') => (await test.keys.findByName(name, OPERATOR))!;
  /** The status of a page for exactly these headers. */
  const statusFor = (headers: string[], url = test.url) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(`${url}/console/keys`, { headers: ['Host', '127.0.0.1', ...headers] as never }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on('error', reject).end();
    });

  it('is in without a key, as the person that the header names', async () => {
    const visitor = as('ada', 'users, admins');
    const page = await visitor.open('keys');
    assert.deepEqual([page.status, page.path], [200, 'keys']);
    assert.match(page.text, /ada/);
    const { person: who, roles } = await person();
    assert.deepEqual(who, { issuer: 'header:remote-user', subject: 'ada', name: 'ada' });
    assert.deepEqual(roles, ['ADMIN', 'VIEWER']);
    assert.equal((await visitor.open('sign-in')).path.startsWith('sign-in'), false);
  });

  it('has a page of their own, which names no one else', async () => {
    const page = await as('ada', 'admins').open(`keys/${(await as('ada', 'admins').open('keys'), await person()).id}`);
    assert.equal(page.status, 200);
    assert.match(page.text, /Created .*at the first sign-in/);
    assert.doesNotMatch(page.text, /by the operator|ask an administrator/);
    assert.match(page.html, /aria-current="page">My key</);
    const [chain] = await test.keys.chainsOf([await person()]);
    const { refusal } = await test.keys
      .feature(GrantableAccess)
      .of(principalOf(chain!, test.keys.catalog), chain!.keys[0]);
    assert.equal(refusal?.code, 'NOT_FOR_PEOPLE');
    assert.equal(page.html.match(/<nav aria-label="Pages">.*?<\/nav>/s)![0].match(/aria-current/g)!.length, 1);
  });

  it('creates keys that are theirs, and shrink with the next request without the group', async () => {
    const visitor = as('ada', 'admins');
    await visitor.open('keys/new');
    await visitor.submit('keys/new', { name: 'CI', role: ['ADMIN'], step: 'preview' });
    const body = new URLSearchParams([...fieldsIn(visitor.page!.html), ['step', 'create']]);
    const done = await visitor.submit('keys/new', { step: 'create' });
    assert.match(done.html, /svc_\w{12}_\w{49}/);
    for (const site of ['cross-site', 'same-site']) {
      const headers = {
        'remote-user': 'ada',
        'remote-groups': 'admins',
        cookie: visitor.cookies,
        'sec-fetch-site': site,
      };
      const shown = await fetch(`${test.url}/console/keys/new`, { method: 'POST', headers, body });
      assert.deepEqual([shown.status, (await shown.text()).includes('svc_')], [403, false]);
    }
    const made = (await test.keys.findByName('CI', OPERATOR))!;
    assert.equal(made.createdBy, (await person()).id);
    const may = async () => {
      const [chain] = await test.keys.chainsOf([(await test.keys.findByName('CI', OPERATOR))!]);
      return test.keys.accessOf(chain!).has('DOCKER', 'UPDATE_ANY');
    };
    assert.equal(await may(), true);
    await as('ada', 'users').open('keys');
    assert.equal(await may(), false);
  });

  it('is the one in the header, whatever session the browser has', async () => {
    const ada = as('ada', 'admins');
    await ada.open('keys');
    const bob = new Visitor(test.url, { 'remote-user': 'bob' });
    for (const pair of ada.cookies.split('; ')) bob.keep(pair);
    const page = await bob.open('me');
    assert.match(page.text, /bob/);
    assert.doesNotMatch(page.text, /ada/);
  });

  it('is not signed in without the header, although the browser has a session', async () => {
    const ada = as('ada', 'admins');
    await ada.open('keys');
    const alone = new Visitor(test.url);
    for (const pair of ada.cookies.split('; ')) alone.keep(pair);
    assert.match((await alone.open('keys')).path, /^sign-in/);
  });

  it('is refused by a header that is there twice, is empty, too long, or no UTF-8', async () => {
    assert.equal(await statusFor(['Remote-User', 'ada']), 200);
    assert.equal(await statusFor(['Remote-User', Buffer.from('Zoë').toString('latin1')]), 200);
    for (const headers of [
      ['Remote-User', 'ada', 'Remote-User', 'bob'],
      ['Remote-User', 'ada', 'remote-user', 'ada'],
      ['Remote-User', 'ada', 'Remote-Groups', 'a', 'Remote-Groups', 'admins'],
      ['Remote-User', ''],
      ['Remote-User', 'a'.repeat(256)],
      ['Remote-User', 'ad\tda'],
      ['Remote-User', 'Zo\xeb'],
      ['Remote-User', 'ada', 'Remote-Groups', 'a'.repeat(8193)],
    ])
      assert.equal(await statusFor(headers), 400, headers.join(' ').slice(0, 40));
    assert.equal((await test.keys.findByName('bob', OPERATOR)) ?? null, null);
  });

  it('is not signed in by a header from another sender than a trusted proxy', async () => {
    const config = { ...defaultConfig(), people: BY_HEADER };
    const other = await startConsoleService({ app: { config, trust: ['192.0.2.0/24'] } });
    try {
      const page = await new Visitor(other.url, { 'remote-user': 'ada', 'remote-groups': 'admins' }).open('keys');
      assert.match(page.path, /^sign-in/);
      assert.equal(await other.keys.findByName('ada', OPERATOR), undefined);
    } finally {
      await other.stop();
    }
  });

  it('can send forms of our own pages only', async () => {
    await as('ada', 'admins').open('keys');
    const send = (headers: Record<string, string>) =>
      fetch(`${test.url}/console/keys/new`, {
        method: 'POST',
        headers: { 'remote-user': 'ada', 'remote-groups': 'admins', ...headers },
        body: new URLSearchParams({ name: 'CI', roles: 'ADMIN', step: 'create' }),
      });
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, {}])
      assert.equal((await send(headers as Record<string, string>)).status, 403);
    assert.equal(await test.keys.findByName('CI', OPERATOR), undefined);
  });

  it('cannot be by a key in the place of a header elsewhere: GraphQL is for programs', async () => {
    const answer = await fetch(`${test.url}/graphql?query={me{name}}`, { headers: { 'remote-user': 'ada' } });
    assert.equal(answer.status, 401);
  });

  /** The status of a request with another host in its header. */
  const statusAt = (host: string, { method = 'GET', path = 'keys', ...headers }: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const all = { host, 'remote-user': 'ada', 'remote-groups': 'admins', ...headers };
      const sent = request(`${test.url}/console/${path}`, { method, headers: all }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on('error', reject).end(method === 'POST' ? 'name=CI&role=ADMIN&step=create' : '');
    });
  const restart = async (config: Partial<Config>) => {
    await test.stop();
    test = await startConsoleService({ app: { config: { ...defaultConfig(), people: BY_HEADER, ...config } } });
  };

  it("is not signed in at another host than the service's, because of DNS rebinding", async () => {
    const { port } = new URL(test.url);
    const evil = `evil.example:${port}`;
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const headers of [
      {},
      { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'https' },
      { method: 'POST', path: 'keys/new', origin: `http://${evil}`, ...form },
      { method: 'POST', path: 'keys/new', 'sec-fetch-site': 'same-origin', ...form },
    ])
      assert.equal(await statusAt(evil, headers as Record<string, string>), 403, JSON.stringify(headers));
    for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', 'evil.localhost', '0.0.0.0', '[::]'])
      assert.equal(await statusAt(`${host}:${port}`, {}), 403, host);
    assert.equal(await test.keys.findByName('ada', OPERATOR), undefined);
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, '127.9.9.9', '[::1]', `[::1]:${port}`])
      assert.equal(await statusAt(host, {}), 200, host);
  });

  it('is known at the host of publicUrl, where only its own pages can send forms', async () => {
    await restart({ publicUrl: 'https://keys.example.org' });
    assert.equal(await statusAt('keys.example.org', {}), 200);
    assert.equal(await statusAt('KEYS.example.org:443', {}), 200);
    for (const host of ['evil.example', 'keys.example.org.evil.example', 'keys.example.org:8443'])
      assert.equal(await statusAt(host, {}), 403, host);
    const form = { method: 'POST', path: 'keys/new', 'content-type': 'application/x-www-form-urlencoded' };
    for (const said of [
      {},
      { origin: 'https://evil.example' },
      { origin: 'http://keys.example.org' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
    ])
      assert.equal(await statusAt('keys.example.org', { ...form, ...(said as object) }), 403, JSON.stringify(said));
    assert.equal(await test.keys.findByName('CI', OPERATOR), undefined);
    for (const said of [{ origin: 'https://keys.example.org' }, { 'sec-fetch-site': 'same-origin' }])
      assert.notEqual(await statusAt('keys.example.org', { ...form, ...(said as object) }), 403);
  });

  it('is not signed in over an unencrypted connection, like a key', async () => {
    const plain = { 'x-forwarded-host': 'keys.example.org', 'x-forwarded-proto': 'http' };
    assert.equal(await statusAt('127.0.0.1', plain), 403);
    assert.equal(await test.keys.findByName('ada', OPERATOR), undefined);
    assert.equal(await statusAt('127.0.0.1', { ...plain, 'x-forwarded-proto': 'https' }), 200);
    await restart({ publicUrl: 'http://keys.lan' });
    assert.equal(await statusAt('keys.lan', {}), 403);
  });

  it('is one of at most 30 new people a minute; known people come in', async () => {
    await as('ada').open('keys');
    let [number, status] = [0, 200];
    // Every two seconds, one more is allowed, so a slow machine gets further.
    while (status === 200 && number < 300) status = (await as(`new ${(number += 1)}`).open('keys')).status;
    assert.ok(status === 429 && number >= 30, `${status} for the person ${number}`);
    assert.equal(await test.keys.findByName(`new ${number}`, OPERATOR), undefined);
    assert.equal((await as('ada', 'admins').open('keys')).status, 200);
  });

  it('cannot sign in while disabled, learns why, and can sign in again once enabled', async () => {
    await as('ada').open('keys');
    const { id } = await person();
    await test.keys.setEnabled(id, false, OPERATOR);
    const page = await as('ada', 'admins').open('keys');
    assert.deepEqual([page.status, page.text.includes('you have no access at the moment')], [403, true]);
    await test.keys.setEnabled(id, true, OPERATOR);
    assert.equal((await as('ada').open('keys')).status, 200);
  });

  it('signs out at the proxy', async () => {
    const visitor = as('ada');
    await visitor.open('keys');
    assert.match((await visitor.submit('sign-out')).text, /You signed in through the proxy in front of this service/);
  });
});

describeOnEach('a person signed in by a provider', () => {
  let test: TestService;
  let provider: TestProvider;
  let secretFile: string;
  const { log, lines } = collectingLog();
  const ADA = { sub: '248289761001', preferred_username: 'ada', groups: ['admins', 'users'] };

  async function start(options: Parameters<typeof startProvider>[0] = {}, grant: PeopleSettings['grant'] = GRANT) {
    provider = await startProvider(options);
    secretFile = join(tempFolder(), 'client.secret');
    writeFileSync(secretFile, `${CLIENT.secret}\n`, { mode: 0o600 });
    const by = { issuer: provider.issuer, clientId: CLIENT.id, secretFile, groups: 'groups' };
    test = await startConsoleService({ log, app: { config: { ...defaultConfig(), people: { by, grant } } } });
    provider.register(`${test.url}/console/sign-in/callback`);
    provider.account = ADA;
  }
  beforeEach(() => {
    lines.length = 0;
  });
  afterEach(async () => {
    await test.stop();
    await provider.stop();
  });

  /** Signs in with the button, and follows the redirects. */
  async function signIn(visitor = new Visitor(test.url), next = 'keys') {
    await visitor.open(next);
    const page = await visitor.follow(/sign-in\/start/);
    return page.status === 200 && page.path.startsWith('sign-in/callback') ? visitor.follow(/^\.\.\//) : page;
  }
  const person = async () => (await test.keys.list({ search: ADA.sub }, OPERATOR)).keys[0];
  const refusals = () => lines.filter(({ message }) => message === 'sign-in refused');

  it('comes back to the page that they wanted, as the person that the provider knows', async () => {
    await start();
    const visitor = new Visitor(test.url);
    const first = await visitor.open('keys?search=x');
    assert.ok(first.text.includes(`Sign in with ${new URL(provider.issuer).host}`));
    const page = await signIn(visitor, 'keys?search=x');
    assert.deepEqual([page.status, page.path], [200, 'keys?search=x']);
    const { person: who, roles } = (await person())!;
    assert.deepEqual(who, { issuer: provider.issuer, subject: ADA.sub, name: 'ada' });
    assert.deepEqual(roles, ['ADMIN', 'VIEWER']);
    assert.match(visitor.cookie!, /^svc_api_session=[\w-]{43}$/);
    assert.doesNotMatch(visitor.cookies, /svc_api_sign_in/);
    assert.ok(
      lines.some(
        ({ message, fields }) => message === 'signed in' && 'reason' in fields && fields.reason === 'provider',
      ),
    );
  });

  it("is described by the provider's user info if the token says too little", async () => {
    await start({ isInToken: false });
    assert.equal((await signIn()).status, 200);
    assert.ok(provider.requests.includes('GET /me'));
    assert.deepEqual([(await person())!.name, (await person())!.roles], ['ada', ['ADMIN', 'VIEWER']]);
  });

  it('who lost a group has less from the next sign-in on, as have the keys that they created', async () => {
    await start();
    await signIn();
    const ada = (await person())!;
    const [chain] = await test.keys.chainsOf([ada]);
    const { principalOf } = await import('../../../src/keys/authorization/principal.ts');
    await test.keys.create({ name: 'CI', roles: ['ADMIN'] }, principalOf(chain!, test.keys.catalog));
    provider.account = { ...ADA, groups: [] };
    await signIn();
    assert.deepEqual((await person())!.roles, ['VIEWER']);
    const [made] = await test.keys.chainsOf([(await test.keys.findByName('CI', OPERATOR))!]);
    assert.equal(test.keys.accessOf(made!).has('DOCKER', 'UPDATE_ANY'), false);
  });

  for (const [what, account, claims] of [
    ['has more groups than a token holds', {}, { _claim_names: { groups: 'src1' }, _claim_sources: { src1: {} } }],
    ['has more groups, of which some are there', { groups: ['users'] }, { _claim_names: { groups: 'src1' } }],
    ['has groups that the token only mentions', {}, { hasgroups: true }],
    ['comes without the claim', {}, {}],
    ['has groups in a form that cannot be read', {}, { groups: { admins: true } }],
    ['has a group that is no text', {}, { groups: ['admins', { name: 'users' }] }],
  ] as const)
    it(`who ${what} keeps what they have, and sees that`, async () => {
      await start();
      await signIn();
      const before = await person();
      const { groups: _, ...without } = ADA;
      provider.account = { ...without, ...account };
      provider.tampering = { claims };
      const page = await signIn();
      assert.deepEqual([page.status, page.text.includes('does not contain your groups')], [403, true], page.text);
      assert.deepEqual(await person(), before);
      assert.equal(refusals().length, 1);
    });

  it('needs no groups if no groups have grants', async () => {
    await start({}, { '*': GRANT['*'] });
    const { groups: _, ...without } = ADA;
    provider.account = without;
    const page = await signIn();
    assert.equal(page.status, 200, page.text);
    assert.deepEqual((await person())!.roles, ['VIEWER']);
  });

  it('learns that nothing is granted to them', async () => {
    await start({}, { admins: ['ADMIN'] });
    provider.account = { ...ADA, groups: ['users'] };
    const page = await signIn();
    assert.deepEqual([page.status, /signed in as ada, but you have no permissions/.test(page.text)], [403, true]);
    assert.equal(await person(), undefined);
  });

  it('is out at once when they are deleted or disabled, and comes back only as it says', async () => {
    await start();
    const visitor = new Visitor(test.url);
    await signIn(visitor);
    const ada = (await person())!;
    await test.keys.setEnabled(ada.id, false, OPERATOR);
    assert.match((await visitor.open('keys')).path, /^sign-in/);
    assert.equal((await signIn(visitor)).status, 403);
    await test.keys.setEnabled(ada.id, true, OPERATOR);
    assert.match((await visitor.open('keys')).path, /^sign-in/);
    assert.equal((await signIn(visitor)).status, 200);
    await test.keys.delete([ada.id], OPERATOR);
    assert.match((await visitor.open('keys')).path, /^sign-in/);
    await signIn(visitor);
    assert.notEqual((await person())!.id, ada.id);
  });

  it('has a session that ends after half an hour without a request', async () => {
    await start();
    const visitor = new Visitor(test.url);
    await signIn(visitor);
    test.time.now += 30 * 60_000;
    assert.match((await visitor.open('keys')).path, /^sign-in/);
  });

  it('signs in again before a new secret, if that was over 5 minutes ago', async () => {
    await start();
    const visitor = new Visitor(test.url);
    await signIn(visitor, 'keys/new');
    test.time.now += 6 * 60_000;
    await visitor.open('keys/new');
    const fields = { name: 'CI', role: ['VIEWER'] };
    const preview = await visitor.submit('keys/new', { ...fields, step: 'preview' });
    assert.match(preview.text, /You signed in over 5 minutes ago/);
    const refused = await visitor.submit('keys/new', { step: 'create' });
    assert.equal(refused.status, 403);
    assert.equal(await test.keys.findByName('CI', OPERATOR), undefined);
    const back = await visitor.follow(/sign-in\/start/);
    assert.equal(back.status, 200);
    await visitor.open('keys/new');
    await visitor.submit('keys/new', { ...fields, step: 'preview' });
    assert.match((await visitor.submit('keys/new', { step: 'create' })).html, /svc_\w{12}_\w{49}/);
  });

  for (const [what, tampering] of Object.entries({
    'is for another client': { claims: { aud: 'another' } },
    'comes from another issuer': { claims: { iss: 'https://evil.example' } },
    'is over': { claims: { exp: Math.floor(Date.now() / 1000) - 60 } },
    'has another nonce': { claims: { nonce: 'another' } },
    'has no nonce': { claims: { nonce: undefined } },
    'is not signed': { header: { alg: 'none' }, by: 'nobody' },
    'is signed by somebody else': { by: 'stranger' },
    'has no subject': { claims: { sub: '' } },
  } as const))
    it(`is not signed in by a token that ${what}`, async () => {
      await start();
      provider.tampering = tampering as TestProvider['tampering'];
      const page = await signIn();
      assert.deepEqual([page.status, page.text.includes('Not signed in')], [403, true], page.text);
      assert.equal(await person(), undefined);
      assert.equal(refusals().length, 1);
      provider.tampering = {};
      assert.equal((await signIn()).status, 200);
    });

  it('is not signed in twice by one answer, nor by that of another browser', async () => {
    await start();
    const visitor = new Visitor(test.url);
    await visitor.open('keys');
    const callback = await visitor.follow(/sign-in\/start/, { upTo: /sign-in\/callback/ });
    const before = visitor.twin();
    const stranger = new Visitor(test.url);
    assert.equal((await stranger.open(callback.path)).status, 400);
    for (const state of ['state=x', 'state=$1x', 'state=$1$2&state=$1$2', '']) {
      const other = callback.path.replace(/state=([\w-]{16})([^&]*)/, state);
      assert.equal((await visitor.open(other)).status, 400, other);
    }
    assert.equal((await visitor.open(callback.path)).status, 200);
    assert.equal((await visitor.open(callback.path)).status, 400);
    assert.equal((await before.open(callback.path)).status, 403);
    assert.equal(before.cookie, undefined);
    assert.equal(JSON.stringify(lines).includes('code='), false);
  });

  it('has ten minutes to sign in', async () => {
    await start();
    const visitor = new Visitor(test.url);
    await visitor.open('keys');
    const callback = await visitor.follow(/sign-in\/start/, { upTo: /sign-in\/callback/ });
    test.time.now += 10 * 60_000 + 1;
    const page = await visitor.open(callback.path);
    assert.deepEqual([page.status, /longer than 10 minutes/.test(page.text)], [400, true]);
  });

  it('learns that the provider does not answer, after a limited time', async () => {
    await start();
    provider.isSilent = true;
    const page = await signIn();
    assert.deepEqual([page.status, /does not answer. Try again later/.test(page.text)], [503, true]);
    provider.isSilent = false;
    assert.equal((await signIn()).status, 200);
  });

  it("is signed in with the provider's current key", async () => {
    await start();
    assert.equal((await signIn()).status, 200);
    provider.rotateKeys();
    assert.equal((await signIn()).status, 200);
  });

  it('leads nowhere but to pages of ours', async () => {
    await start();
    for (const next of ['//evil.example', 'https://evil.example', '../../x', '/etc', 'keys\\x']) {
      const visitor = new Visitor(test.url);
      await visitor.open(`sign-in/start?${new URLSearchParams({ next }).toString()}`);
      const page = await visitor.follow(/^\.\.\//);
      assert.equal(page.path.split('?')[0], '', next);
    }
  });

  it('starts on our own pages only', async () => {
    await start();
    const answer = await fetch(`${test.url}/console/sign-in/start`, {
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '../sign-in']);
    assert.equal(answer.headers.getSetCookie().length, 0);
  });

  it('is not let in where the secret of the client cannot be read', async () => {
    await start();
    chmodSync(secretFile, 0o644);
    const by = { issuer: provider.issuer, clientId: CLIENT.id, secretFile, groups: 'groups' };
    const config = { ...defaultConfig(), people: { by, grant: GRANT } };
    await assert.rejects(startConsoleService({ app: { config } }), { code: 'CONFIG_INSECURE' });
  });
});
