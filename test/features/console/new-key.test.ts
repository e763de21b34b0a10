import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { parseConfig } from '../../../src/config/load-config.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import type { PolicyRules } from '../../../src/keys/permissions/policy.ts';
import { type ConsolePage, startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { authenticate, createPrincipal } from '../../support/keys.ts';
import type { TestService } from '../../support/server.ts';

const GRANTS = { permission: ['DOCKER:READ_ANY', 'API_KEY:CREATE_OWN'] };

describe('creating a key in the console', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'] } });
  });
  afterEach(() => test.stop());

  const signedIn = async (fields: Partial<NewKey> = {}) =>
    (await visitorWith(test, { name: 'Ada', roles: ['ADMIN'], ...fields })).visitor;
  const find = (name: string) => test.keys.findByName(name, OPERATOR);
  /** Fills in the form, and opens the preview. */
  const preview = async (visitor: Visitor, fields: Parameters<Visitor['submit']>[1]) => {
    await visitor.open('keys/new');
    return visitor.submit('keys/new', { ...GRANTS, ...fields, step: 'preview' });
  };
  const create = (visitor: Visitor) => visitor.submit('keys/new', { step: 'create' });
  const offered = ({ html }: ConsolePage, field: string) =>
    Array.from(html.matchAll(new RegExp(`name="${field}" value="([^"]*)"`, 'g')), ([, value]) => value!);
  const secretIn = ({ html }: ConsolePage) => /value="(svc_\w+)"/.exec(html)?.[1];

  it('shows a preview, and then the secret, once', async () => {
    const visitor = await signedIn();
    const shown = await preview(visitor, { name: 'Backup', limits: '100/m, 5000/d', allowFrom: '10.0.0.0/8 ::1' });
    assert.equal(shown.status, 200);
    assert.match(shown.text, /Expires in 30 days Limits 100\/m, 5000\/d Used from 10\.0\.0\.0\/8, ::1/);
    assert.match(shown.text, /This key can Read all DOCKER Create its own API_KEY/);
    assert.equal(await find('Backup'), undefined);
    const created = await create(visitor);
    assert.equal(created.status, 200);
    const secret = secretIn(created)!;
    const key = (await find('Backup'))!;
    assert.deepEqual(
      [key.permissions, key.limits, key.allowFrom, key.expiresAt! - test.time.now],
      [['DOCKER:READ_ANY', 'API_KEY:CREATE_OWN'], ['100/m', '5000/d'], ['10.0.0.0/8', '::1'], 30 * 86_400_000],
    );
    const checked = await authenticate(test.keys, secret);
    assert.equal('principal' in checked && checked.principal.apiKey.name, 'Backup');
    assert.equal(created.html.split(secret).length, 2, 'it stands there once');
    assert.equal(created.headers.get('cache-control'), 'no-store');
    assert.doesNotMatch(created.path + /<title>.*<\/title>/.exec(created.html)![0], /svc_\w+/);
    assert.match(created.html, /href="\.\.\/keys\/[\w-]{36}"/);
    assert.match(created.text, /printf 'Authorization: Bearer %s' "\$SVC_API_KEY" \| curl/);
  });

  it('replaces only the keys that were shown, however many', async () => {
    const visitor = await signedIn();
    const { principal } = await createPrincipal(test.keys, { name: 'Backup', roles: ['ADMIN'] });
    const { apiKey: first } = await test.keys.create({ name: 'First', roles: ['GUEST'] }, principal);
    await preview(visitor, { name: 'Backup' });
    await visitor.submit('keys/new', { step: 'replace' });
    assert.match(visitor.page!.text, /and one key that it created: First/);
    await test.keys.delete([first.id], OPERATOR);
    await test.keys.create({ name: 'Second', roles: ['GUEST'] }, principal);
    const { status, text } = await create(visitor);
    assert.equal(status, 409);
    assert.match(text, /The keys to replace have changed.* that it created: Second/);
    assert.ok(await find('Second'));
    assert.equal((await create(visitor)).status, 200);
    assert.equal(await find('Second'), undefined);
  });

  it('says what replacing a key deletes, and deletes only that', async () => {
    const { apiKey: key, key: secret } = await test.keys.create(
      { name: 'Backup', permissions: ['API_KEY:CREATE_OWN'] },
      OPERATOR,
    );
    const old = await authenticate(test.keys, secret);
    assert.ok('principal' in old);
    await test.keys.create({ name: 'Beneath', permissions: ['API_KEY:CREATE_OWN'] }, old.principal);
    const visitor = await signedIn();
    const taken = await preview(visitor, { name: 'Backup' });
    assert.equal(taken.status, 409);
    assert.match(taken.text, /"Backup" already exists/);
    assert.ok(taken.html.includes(`../keys/${key.id}"`));
    const shown = await visitor.submit('keys/new', { step: 'replace' });
    assert.match(shown.text, /The key Backup \(last used: .*\), and one key that it created: Beneath/);
    assert.match(shown.text, /Delete 2 keys and create this one/);
    assert.equal((await find('Backup'))!.id, key.id);

    // It has created another key since, which the page did not show.
    await test.keys.create({ name: 'Later', permissions: ['API_KEY:CREATE_OWN'] }, old.principal);
    const changed = await create(visitor);
    assert.equal(changed.status, 409);
    assert.match(changed.text, /have changed since you opened this page/);
    assert.equal((await find('Backup'))!.id, key.id);

    const created = await create(visitor);
    assert.equal(created.status, 200);
    assert.match(created.text, /3 keys were deleted to replace it/);
    assert.equal(await find('Beneath'), undefined);
    const made = await find('Backup');
    test.time.now += 600_000;
    visitor.page = changed;
    assert.equal((await create(visitor)).status, 409);
    assert.deepEqual(await find('Backup'), made);
  });

  it('warns of dangerous grants', async () => {
    const visitor = await signedIn();
    const admin = await preview(visitor, { name: 'All', role: ['ADMIN'], expiry: 'latest' });
    assert.match(admin.text, /ADMIN has full control.*It never expires.*can be used from anywhere/);
    const keys = await preview(visitor, { name: 'Keys', permission: ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY'] });
    assert.match(keys.text, /API_KEY:CREATE_ANY: It can create keys.*API_KEY:UPDATE_ANY: It can change.* all keys/);
    const modest = await preview(visitor, { name: 'Docker', permission: 'DOCKER:READ_ANY', allowFrom: '::1' });
    assert.doesNotMatch(modest.text, /Check before creating/);
  });

  it('takes levels of resources, and single permissions beside them', async () => {
    const visitor = await signedIn();
    await visitor.open('keys/new');
    const level = (resource: string, name: string) => {
      const row = new RegExp(`id="resource-${resource}".*?role="group"`, 's').exec(visitor.page!.html)![0];
      return new RegExp(`name="access\\.${resource}" value="([^"]*)"[^>]*/?><span>${name}<`).exec(row)![1]!;
    };
    assert.deepEqual(
      ['None', 'Read', 'Write', 'All', 'Custom'].map((name) => level('DOCKER', name)),
      ['', 'READ_ANY', 'READ_ANY CREATE_ANY UPDATE_ANY', 'READ_ANY CREATE_ANY UPDATE_ANY DELETE_ANY', 'custom'],
    );
    await visitor.submit('keys/new', {
      name: 'Levels',
      'access.DOCKER': level('DOCKER', 'Write'),
      'access.VMS': 'custom',
      permission: ['VMS:UPDATE_OWN', 'DISK:READ_ANY', 'DOCKER:DELETE_ANY'],
      step: 'preview',
    });
    // Going back to the form shows the same message.
    const again = await visitor.submit('keys/new', { step: 'change' });
    const checked = Array.from(again.html.matchAll(/name="access\.(\w+)" value="([^"]+)" checked/g), ([, ...at]) => at);
    assert.deepEqual(checked, [
      ['DISK', 'READ_ANY'],
      ['DOCKER', 'READ_ANY CREATE_ANY UPDATE_ANY'],
      ['VMS', 'custom'],
    ]);
    // `None` overrides the boxes below.
    await visitor.submit('keys/new', { 'access.VMS': level('VMS', 'None'), step: 'preview' });
    await create(visitor);
    assert.deepEqual((await find('Levels'))!.permissions.toSorted(), [
      'DISK:READ_ANY',
      'DOCKER:CREATE_ANY',
      'DOCKER:READ_ANY',
      'DOCKER:UPDATE_ANY',
    ]);
  });

  it('is filled in by a preset, without scripts, too', async () => {
    const visitor = await signedIn();
    await visitor.open('keys/new');
    const page = await visitor.submit('keys/new', {
      name: 'Deploy',
      permission: 'VMS:READ_ANY',
      step: 'preset:deploy',
    });
    assert.match(page.html, /name="name" value="Deploy"|value="Deploy"/);
    assert.match(page.html, /value="SERVICES:UPDATE_ANY" checked/);
    assert.doesNotMatch(page.html, /value="VMS:READ_ANY" checked/);
    assert.match(page.text, /This key can Read all SERVICES Update all SERVICES/);
    const modest = await visitorWith(test, {
      name: 'Modest',
      permissions: ['API_KEY:CREATE_OWN', 'WIKI:READ_ANY', 'SERVICES:READ_ANY'],
    });
    const { html } = await modest.visitor.open('keys/new');
    assert.deepEqual(offered({ html } as ConsolePage, 'step'), ['preview', 'preset:WIKI', 'preview']);
  });

  it('is filled in by an address, and creates nothing', async () => {
    const visitor = await signedIn();
    const query =
      'name=Deploy&role=GUEST&permission=DOCKER:READ_ANY&access.VMS=READ_ANY&expiry=7d&limits=9/m&step=create';
    const { text, html } = await visitor.open(`keys/new?${query}`);
    assert.match(text, /This form was filled in by a link\. Check it before you create the key\./);
    for (const part of [
      'value="Deploy"',
      'value="DOCKER:READ_ANY" checked',
      'value="VMS:READ_ANY" checked',
      'value="9/m"',
    ])
      assert.ok(html.includes(part), part);
    assert.match(html, /value="GUEST" checked/);
    assert.match(html, /<option value="7d" selected/);
    assert.equal(await find('Deploy'), undefined);
  });

  it('keeps its fields while a session ends, but no secret', async () => {
    const { visitor, secret, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    for (const step of ['preview', 'change', 'create']) {
      await visitor.open('keys/new');
      test.time.now += 31 * 60_000;
      const fields = { ...GRANTS, name: 'Deploy', description: `not ${secret} here`, expiry: '7d', yourKey: secret };
      const signIn = await visitor.submit('keys/new', { ...fields, step });
      assert.match(signIn.text, /Your session has ended\. Sign in to continue with your form: it has been kept\./);
      assert.ok(
        !signIn.path.includes(secret) && !decodeURIComponent(signIn.path).includes(secret.slice(20)),
        signIn.path,
      );
      const page = await visitor.submit('sign-in', { key: secret });
      assert.match(page.text, /Your session had ended\. Your form is as you left it\./);
      assert.match(page.html, /value="Deploy"/);
      assert.match(page.html, /value="DOCKER:READ_ANY" checked.*|value="API_KEY:CREATE_OWN" checked/s);
      assert.match(page.html, /<option value="7d" selected/);
      assert.match(page.html, new RegExp(`value="not svc_${principal.apiKey.publicId}_… here"`));
    }
    assert.equal(await find('Deploy'), undefined);
    // All permissions are possible there.
    const all = offered(await visitor.open('keys/new'), 'permission');
    test.time.now += 31 * 60_000;
    await visitor.submit('keys/new', { name: 'All', permission: all, step: 'preview' });
    const page = await visitor.submit('sign-in', { key: secret });
    assert.equal(page.html.split(/value="\w+:\w+" checked/).length - 1, 248);
    // A text that is too long for a URL is dropped, and the page says so.
    test.time.now += 31 * 60_000;
    const long = await visitor.submit('keys/new', { ...GRANTS, description: 'x'.repeat(5000), step: 'preview' });
    assert.match(long.text, /Your session has ended, so nothing was done/);
  });

  it('keeps its fields while the key of the session is rotated', async () => {
    const { visitor, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    await visitor.open('keys/new');
    const { key: secret } = await test.keys.rotate(principal.apiKey.id, { grace: '0s' }, OPERATOR);
    const signIn = await visitor.submit('keys/new', { ...GRANTS, name: 'Deploy', step: 'preview' });
    assert.match(signIn.text, /Your session has ended\. Sign in to continue with your form: it has been kept\./);
    const page = await visitor.submit('sign-in', { key: secret });
    assert.match(page.html, /value="Deploy"/);
  });

  it('says where a key is used, and in which header, also for guarded services', async () => {
    const config = await parseConfig({
      path: 'svc-api.yaml',
      text:
        'credentials: [{ header: X-Api-Key }, bearer, basic]\nroutes:\n' +
        '  - { host: wiki.example.org, path: /api/**, methods: [GET], allow: DOCKER:READ_ANY }\n' +
        '  - { host: wiki.example.org, path: /admin/**, allow: DOCKER:DELETE_ANY }\n',
    });
    const service = await startConsoleService({ app: { config } });
    const { visitor } = await visitorWith(service, { name: 'Ada', roles: ['ADMIN'] });
    await visitor.open('keys/new');
    await visitor.submit('keys/new', { name: 'Wiki', permission: 'DOCKER:READ_ANY', step: 'preview' });
    const { text, html } = await visitor.submit('keys/new', { step: 'create' });
    assert.ok(text.includes(`URL ${service.url}/graphql`), text);
    assert.match(text, /Guarded services https:\/\/wiki\.example\.org\/api\/\*\* GET Header X-Api-Key: <secret>/);
    assert.match(
      text,
      /Authorization: Bearer <secret> Authorization: Basic, any user name, the secret as the password/,
    );
    assert.doesNotMatch(text, /\/admin/);
    assert.match(
      text,
      /printf 'X-Api-Key: %s' "\$SVC_API_KEY" \| curl --silent -H @- \\ 'https:\/\/wiki\.example\.org\/api\/'/,
    );
    assert.match(text, /curl --silent -H @svc-api\.header 'https/);
    assert.equal(html.split(/svc_\w{12}_\w{49}/).length, 2, 'the secret stands there once');
    await service.stop();
  });

  it('offers only what the key may grant itself', async () => {
    const visitor = await signedIn({
      roles: ['GUEST', 'EDITOR'],
      permissions: ['API_KEY:CREATE_OWN', 'DOCKER:READ_ANY'],
      expiresIn: '10d',
    });
    const page = await visitor.open('keys/new');
    assert.deepEqual(offered(page, 'permission'), [
      'WIKI:READ_OWN',
      'WIKI:READ_ANY',
      'WIKI:UPDATE_OWN',
      'WIKI:UPDATE_ANY',
      'API_KEY:CREATE_OWN',
      'DOCKER:READ_OWN',
      'DOCKER:READ_ANY',
      'ME:READ_OWN',
      'ONLINE:READ_OWN',
      'ONLINE:READ_ANY',
      'WELCOME:READ_OWN',
      'WELCOME:READ_ANY',
    ]);
    assert.deepEqual(offered(page, 'role').toSorted(), ['EDITOR', 'GUEST']);
    assert.match(page.text, /1 day 7 days Custom date When your own key expires, 2030-01-11 00:00 UTC/);
    assert.doesNotMatch(page.text, /30 days|No expiry/);
    await visitor.submit('keys/new', { name: 'Beneath', permission: 'DOCKER:READ_ANY', step: 'preview' });
    await create(visitor);
    assert.equal((await find('Beneath'))!.expiresAt, test.time.now + 10 * 86_400_000);
    const more = await preview(visitor, { name: 'More', permission: 'VMS:READ_ANY' });
    assert.equal(more.status, 403);
    assert.match(more.text, /cannot grant more than it holds: this key lacks VMS:READ_ANY/);
  });

  it('shows the content of roles to keys that may know it', async () => {
    const visitor = await signedIn();
    const page = await visitor.open('keys/new');
    assert.deepEqual(offered(page, 'role').toSorted(), ['ADMIN', 'CONNECT', 'EDITOR', 'GUEST', 'VIEWER']);
    assert.match(page.html, /data-includes="WIKI:READ_ANY WIKI:UPDATE_ANY"/);
    assert.match(page.text, /ADMIN Full system access.*Rarely needed/);
  });

  it('expires at the end of a chosen day, and reports an invalid one', async () => {
    const visitor = await signedIn();
    const none = await preview(visitor, { name: 'Backup', expiry: 'date' });
    assert.equal(none.status, 400);
    assert.match(none.html, /id="expiry-problem"[^>]*>Choose a date\./);
    const past = await visitor.submit('keys/new', { ...GRANTS, name: 'Backup', date: '2020-01-01', step: 'preview' });
    assert.match(past.html, /id="expiry-problem"[^>]*>[^<]*in the past/);
    await visitor.submit('keys/new', { ...GRANTS, date: '2030-02-03', step: 'preview' });
    await create(visitor);
    assert.equal((await find('Backup'))!.expiresAt, Date.parse('2030-02-03T23:59:59Z'));
  });

  it('ends with the key that creates it, on the last day of that', async () => {
    const visitor = await signedIn({ expiresAt: '2030-01-11T12:00:00Z' });
    await preview(visitor, { name: 'Backup', expiry: 'date', date: '2030-01-11' });
    await create(visitor);
    assert.equal((await find('Backup'))!.expiresAt, Date.parse('2030-01-11T12:00:00Z'));
    const later = await preview(visitor, { name: 'Later', expiry: 'date', date: '2030-01-12' });
    assert.match(later.text, /this key expires at 2030-01-11T12:00:00\.000Z/);
  });

  it('shows each issue at its field, and keeps the input', async () => {
    const visitor = await signedIn();
    const fields = { name: 'a_b', description: '<b>"&', limits: '5', allowFrom: '10.0.0.1/8', permission: [] };
    const page = await preview(visitor, fields);
    assert.equal(page.status, 400);
    assert.match(page.html, /role="alert"/);
    assert.match(page.html, /id="name"[^>]*aria-describedby="name-problem name-help"[^>]*aria-invalid="true"/);
    for (const [id, message] of [
      ['name', 'may only contain'],
      ['limits', 'is not a limit'],
      ['allowFrom', 'has bits beyond'],
      ['grants', 'at least one role or permission'],
    ])
      assert.match(page.html, new RegExp(`id="${id}-problem"[^>]*>[^<]*${message}`));
    assert.match(page.html, /name="description"[^>]*value="&lt;b&gt;&quot;&amp;"/);
    assert.match(page.text, /Fix 4 fields: Name , Limits , Used from , Permissions/);
  });

  it('makes one with an owner and tags', async () => {
    const visitor = await signedIn();
    const page = await preview(visitor, { name: 'Backup', owner: 'Ada', tags: 'b=2, a=1' });
    assert.match(page.text, /Owner Ada Tags a=1, b=2/);
    await create(visitor);
    const { owner, tags } = (await find('Backup'))!;
    assert.deepEqual([owner, tags], ['Ada', ['a=1', 'b=2']]);
  });

  it('goes back from the preview to the filled form', async () => {
    const visitor = await signedIn();
    await preview(visitor, { name: 'Backup', description: 'Nightly', owner: 'Ada', expiry: '7d' });
    const form = await visitor.submit('keys/new', { step: 'change' });
    assert.match(form.html, /value="Ada"/);
    assert.match(form.html, /value="Backup"/);
    assert.match(form.html, /<option value="7d" selected/);
    assert.match(form.html, /value="DOCKER:READ_ANY" checked/);
  });

  it('is filled in like another key, without what cannot be granted', async () => {
    const { apiKey: key } = await test.keys.create(
      { name: 'Old', description: 'Nightly', roles: ['ADMIN'], permissions: ['DOCKER:READ_ANY'], limits: ['9/m'] },
      OPERATOR,
    );
    const visitor = await signedIn({
      roles: [],
      permissions: ['API_KEY:CREATE_OWN', 'API_KEY:READ_ANY', 'DOCKER:READ_ANY'],
    });
    const page = await visitor.open(`keys/new?from=${key.id}`);
    assert.match(page.text, /Copied from the key Old.*Left out because your key cannot grant them: 1/);
    assert.match(page.html, /value="DOCKER:READ_ANY" checked/);
    assert.match(page.html, /value="9\/m"/);
    assert.doesNotMatch(page.html, /value="ADMIN"/);
  });

  it('takes all permissions there are, and a long description', async () => {
    const visitor = await signedIn();
    const all = offered(await visitor.open('keys/new'), 'permission');
    assert.equal(all.length, 248);
    const description = '\u{1F511}'.repeat(1000);
    const page = await preview(visitor, { name: 'All', description, permission: all });
    assert.equal(page.status, 200);
  });

  it('is not offered to a key that may not, or by the previous secret of one', async () => {
    const reader = await signedIn({ name: 'Bea', roles: ['GUEST'], permissions: ['API_KEY:READ_OWN'] });
    assert.equal((await reader.open('keys/new')).status, 403);
    assert.match(reader.page!.text, /cannot create keys/);
    const { visitor, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    await test.keys.rotate(principal.apiKey.id, {}, OPERATOR);
    assert.match((await visitor.open('keys/new')).text, /previous secret/);
    assert.equal(visitor.page!.status, 403);
  });

  it('is done by no form of another page, and by no address', async () => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const fields = { name: 'Backup', permission: 'DOCKER:READ_ANY', step: 'create' };
    const foreign = await fetch(`${test.url}/console/keys/new`, {
      method: 'POST',
      headers: { cookie: visitor.cookie!, 'sec-fetch-site': 'cross-site' },
      body: new URLSearchParams(fields),
    });
    assert.equal(foreign.status, 403);
    await visitor.open(`keys/new?${new URLSearchParams(fields).toString()}`);
    assert.equal(await find('Backup'), undefined);
  });
});

describe('creating a key in the console, where the policy demands something', () => {
  let test: TestService;
  const start = async (policy: PolicyRules) => void (test = await startConsoleService({ policy }));
  afterEach(() => test.stop());
  const open = async (fields: Partial<NewKey> = {}) => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'], expiresIn: '80d', ...fields });
    return visitor;
  };

  it('offers no role and no permission that no key grants, and says why', async () => {
    await start({ grantableByKeys: ['VIEWER', 'DOCKER:UPDATE_ANY'] });
    const visitor = await open();
    const { html, text } = await visitor.open('keys/new');
    const chosen = (value: string) => new RegExp(`<input[^>]*value="${value}"[^>]*>`).exec(html)?.[0];
    assert.match(chosen('ADMIN')!, /disabled/);
    assert.match(text, /ADMIN The policy of this service does not let keys grant this\./);
    assert.doesNotMatch(chosen('VIEWER')!, /disabled/);
    assert.ok(chosen('DOCKER:UPDATE_OWN') && !chosen('DOCKER:DELETE_ANY'));
    assert.match(text, /\d+ permissions of your key are not offered: the policy/);
    await visitor.submit('keys/new', { name: 'Odd', role: 'ADMIN', step: 'preview' });
    assert.equal(visitor.page!.status, 403);
    assert.match(visitor.page!.text, /does not let keys grant ADMIN/);
  });

  it('offers the longest allowed expiry, and none beyond', async () => {
    await start({ maxLifetime: '10d' });
    const ending = await visitorWith(test, { name: 'Ending', roles: ['ADMIN'], expiresIn: '10d' });
    test.time.now += 5 * 86_400_000;
    await ending.visitor.signIn(ending.secret);
    assert.match(
      (await ending.visitor.open('keys/new')).html,
      /value="latest" selected[^>]*>When your own key expires, 2030-01-11 00:00 UTC/,
    );
    const late = await test.keys
      .withCatalog(createCatalog())
      .create({ name: 'Late', roles: ['ADMIN'], expiresIn: '99d' }, OPERATOR);
    const visitor = new Visitor(test.url);
    await visitor.signIn(late.key);
    const { html, text } = await visitor.open('keys/new');
    assert.match(html, /value="latest" selected[^>]*>As late as the policy allows, 2030-01-16 00:00 UTC/);
    assert.match(html, /max="2030-01-16"/);
    assert.doesNotMatch(html, /value="30d"/);
    assert.match(text, /The policy of this service requires an expiry, 2030-01-16 00:00 UTC at the latest\./);
    await visitor.submit('keys/new', { name: 'New', role: 'GUEST', step: 'preview' });
    assert.equal((await visitor.submit('keys/new', { step: 'create' })).status, 200);
    const { apiKey: key } = await test.keys.create({ name: 'Other', roles: ['GUEST'], expiresIn: '9d' }, OPERATOR);
    const edit = await visitor.open(`keys/${key.id}/edit`);
    assert.match(edit.text, /For example 12h, .* At the latest 2030-01-16 00:00 UTC\. /);
    assert.doesNotMatch(edit.text, /Empty: never/);
    assert.match(edit.html, /<input[^>]*name="expires"[^>]*required/);
  });

  it('offers no key that never ends where each has to', async () => {
    await start({ requireExpiry: true });
    const visitor = new Visitor(test.url);
    const never = await test.keys.withCatalog(createCatalog()).create({ name: 'Never', roles: ['ADMIN'] }, OPERATOR);
    await visitor.signIn(never.key);
    const { html, text } = await visitor.open('keys/new');
    assert.doesNotMatch(html, /value="latest"/);
    assert.match(text, /The policy of this service requires an expiry\./);
    // A key that already violates the policy can still be edited.
    const edit = await visitor.open(`keys/${never.apiKey.id}/edit`);
    assert.doesNotMatch(edit.html, /<input[^>]*name="expires"[^>]*required/);
    assert.match((await visitor.submit('/edit', { description: 'Old' })).text, /Saved\./);
  });

  it('says beforehand that there may be no more keys', async () => {
    await start({ maxKeysPerCreator: 1 });
    const { visitor, principal } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    assert.doesNotMatch((await visitor.open('keys/new')).text, /as many active keys as the policy/);
    await test.keys.create({ name: 'First', roles: ['GUEST'] }, principal);
    assert.match((await visitor.open('keys/new')).text, /Your key has created as many active keys as the policy/);
  });
});
