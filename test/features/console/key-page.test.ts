import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { authenticate, createPrincipal } from '../../support/keys.ts';
import { query, type TestService } from '../../support/server.ts';

const ADA = { name: 'Ada', roles: ['ADMIN'] };

describe('the page of a key in the console', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsoleService();
  });
  afterEach(() => test.stop());

  /** The text of a matrix cell for screen readers: `DOCKER:UPDATE_ANY: granted by …`. */
  const cellsIn = (html: string) =>
    Array.from(html.matchAll(/<td class="(?:used|unused|denied)" title="([^"]*)"/g), ([, title]) => title);

  it('shows its creator, its restrictions, and its use', async () => {
    const { visitor, secret } = await visitorWith(test, ADA);
    const ada = await authenticate(test.keys, secret);
    assert.ok('principal' in ada);
    const { apiKey: key, key: used } = await test.keys.create(
      {
        name: 'CI',
        description: 'Ask <Ada>',
        roles: ['GUEST'],
        limits: ['9/m', '5/budget'],
        allowFrom: ['127.0.0.1'],
        expiresIn: '30d',
      },
      ada.principal,
    );
    await query(test.url, used, '{ online }');
    await test.keys.finishActivity();
    test.time.now += 2 * 60_000;
    const { text, html } = await visitor.open(`keys/${key.id}`);
    assert.match(
      text,
      /CI active Edit Rotate Disable Duplicate Contain Delete Ask <Ada> Reads its own key GUEST role Secret svc_\w{12}_… Created 2 minutes ago by Ada/,
    );
    assert.match(
      text,
      /Expires in 30 days Last used 2 minutes ago , 1 request in total Limits 9\/m, 5\/budget Used from 127\.0\.0\.1 Requests left 4 of 5\/budget/,
    );
    assert.ok(html.includes(`href="../keys/${ada.principal.apiKey.id}">Ada</a>`));
    assert.doesNotMatch(html, /<Ada>/);
  });

  it('shows people without permission to read keys their own: rights, expiry, limits, use and restrictions', async () => {
    const { key, apiKey } = await test.keys.create(
      { name: 'Display', roles: ['GUEST'], limits: ['99/m'], expiresIn: '30d' },
      OPERATOR,
    );
    const visitor = new Visitor(test.url);
    await visitor.signIn(key);
    const { status, path, text, html } = await visitor.open('');
    assert.deepEqual([status, path], [200, 'me']);
    assert.match(
      text,
      /My key .*Display active Reads its own key GUEST role Secret svc_\w{12}_… Created now by the operator Expires in 30 days/,
    );
    assert.match(text, /Limits 99\/m .*WELCOME/);
    assert.ok(cellsIn(html).includes('WELCOME:READ_ANY: granted, but never used'));
    assert.match(
      text,
      /Usage Last 48 hours Last 90 days .*To change your key or get a new secret, ask an administrator/,
    );
    assert.doesNotMatch(text, /active (Edit|Rotate|Disable|Contain|Delete|Duplicate)/);
    // It links to no page that the person cannot open.
    for (const [, link] of html.matchAll(/href="\.\/(keys\/[^"#]*)/g))
      assert.equal((await visitor.open(link!)).status, 200, link);
    assert.match((await visitor.open(`keys/${apiKey.id}?may=WELCOME:READ_ANY`)).text, /Allowed : WELCOME:READ_ANY/);
    assert.equal((await visitor.open(`keys/${apiKey.id}/rotation`)).status, 403);
    const { apiKey: other } = await test.keys.create({ name: 'Other', roles: ['GUEST'] }, OPERATOR);
    assert.equal((await visitor.open(`keys/${other.id}`)).status, 403);
    const { visitor: ada } = await visitorWith(test, ADA);
    assert.match((await ada.open('me')).path, /^keys\/[\w-]+$/);
  });

  it('lets people without permission to read keys rotate their own, if they may change it', async () => {
    const { visitor, principal } = await visitorWith(test, {
      name: 'Bea',
      permissions: ['ME:READ_OWN', 'API_KEY:UPDATE_OWN', 'LOGS:READ_ANY'],
    });
    assert.match((await visitor.open('me')).text, /Bea active Edit Rotate .*Timeline/);
    assert.equal((await visitor.open(`keys/${principal.apiKey.id}/rotation`)).status, 200);
    const { text, html } = await visitor.submit('rotation', { grace: '1h' });
    assert.match(text, /New secret of Bea/);
    const [secret] = /svc_\w{12}_\w{49}/.exec(html)!;
    const again = new Visitor(test.url);
    assert.match((await again.signIn(secret)).text, /Audit log/);
    assert.match((await again.open('me')).text, /Rotation in progress: two secrets work/);
  });

  it('shows its permissions, with their grants, whether they were used, and what a parent key removes', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const team = await createPrincipal(test.keys, {
      name: 'Team',
      roles: ['GUEST'],
      permissions: ['DOCKER:UPDATE_ANY'],
    });
    await test.keys.update(
      team.principal.apiKey.id,
      { permissions: ['DOCKER:UPDATE_ANY', 'API_KEY:CREATE_OWN'] },
      OPERATOR,
    );
    const again = await authenticate(test.keys, team.secret);
    assert.ok('principal' in again);
    const ci = await createPrincipal(
      test.keys,
      { name: 'CI', roles: ['GUEST'], permissions: ['DOCKER:UPDATE_ANY'] },
      again.principal,
    );
    await query(test.url, ci.secret, '{ online }');
    const narrowed = { permissions: ['API_KEY:CREATE_OWN'], limits: ['100/m'] };
    await test.keys.update(team.principal.apiKey.id, narrowed, OPERATOR);
    await test.keys.finishActivity();
    const { text, html } = await visitor.open(`keys/${ci.principal.apiKey.id}`);
    assert.deepEqual(cellsIn(html), [
      'ME:READ_OWN: granted by role GUEST, but never used',
      'ONLINE:READ_OWN: granted by role GUEST, and used',
      'ONLINE:READ_ANY: granted by role GUEST, and used',
      'WELCOME:READ_OWN: granted by role GUEST, but never used',
      'WELCOME:READ_ANY: granted by role GUEST, but never used',
      'DOCKER:UPDATE_OWN: granted by DOCKER:UPDATE_ANY, but denied by Team',
      'DOCKER:UPDATE_ANY: granted by DOCKER:UPDATE_ANY, but denied by Team',
    ]);
    assert.match(text, /Except 1 permission that parent keys deny \./);
    assert.match(
      text,
      /Created by and child keys .*Team is limited to 100\/m together .* denies 1 permission DOCKER .*CI active/,
    );
    assert.match(text, /No access to 26 other resources .*VMS/);
  });

  it('explains whether it may do something', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const { apiKey: key } = await test.keys.create({ name: 'CI', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    await visitor.open(`keys/${key.id}`);
    const asked = async (may: string) => {
      const { status, text } = await visitor.submit('#may-it', { may });
      return [status, / Check (Allowed .*?|Not .*?|".*?)(?: Timeline|$)/.exec(text)?.[1]];
    };
    assert.deepEqual(await asked('docker:read_own'), [200, 'Allowed : DOCKER:READ_OWN is granted by DOCKER:READ_ANY.']);
    assert.deepEqual(await asked('DOCKER:DELETE_ANY'), [
      200,
      'Not allowed : DOCKER:DELETE_ANY is not among the permissions of this key.',
    ]);
    const [status, problem] = await asked('<DOKCER>');
    assert.equal(status, 400);
    assert.match(`${problem}`, /"<DOKCER>"/);
    assert.match(visitor.page!.html, /<input id="may"[^>]*aria-invalid="true"/);
  });

  it('plots its use by the hour and by the day, with the same as numbers', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const ci = await createPrincipal(test.keys, { name: 'CI', roles: ['GUEST'] });
    assert.match((await visitor.open(`keys/${ci.principal.apiKey.id}`)).text, /No requests in the last 48 hours/);
    for (const hours of [0, 47, 71]) {
      test.time.now = Date.UTC(2030, 0, 1, hours);
      await query(test.url, ci.secret, '{ online }');
      await query(test.url, ci.secret, '{ info { name } }');
      await test.keys.finishActivity();
    }
    visitor.cookie = undefined;
    const again = await visitorWith(test, { ...ADA, name: 'Eve' });
    const hours = await again.visitor.open(`keys/${ci.principal.apiKey.id}`);
    assert.match(hours.text, /accepted 2 2 1 0 .* forbidden 2 limited 0 refused 0 2 1 0 /);
    assert.match(
      hours.html,
      /<svg role="img" aria-label="Last 48 hours: 2 accepted".*aria-label="Last 48 hours: not accepted: 2 forbidden, 0 limited, 0 refused"/,
    );
    assert.match(hours.text, /2030-01-03 23:00 1 1 0 0 2030-01-02 23:00 1 1 0 0/);
    assert.doesNotMatch(hours.html, /style=/);
    const days = await again.visitor.open(`keys/${ci.principal.apiKey.id}?use=day`);
    assert.match(days.text, /2030-01-03 1 1 0 0 2030-01-02 1 1 0 0 2030-01-01 2 1 0 0/);
  });

  it('has a timeline with former and new values, for keys that may read the log', async () => {
    const { visitor } = await visitorWith(test, ADA);
    const { apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await test.keys.update(key.id, { description: 'It <b>builds</b>' }, OPERATOR);
    await test.keys.update(key.id, { roles: ['VIEWER'] }, OPERATOR);
    const { text, html } = await visitor.open(`keys/${key.id}`);
    assert.match(
      text,
      /Timeline All in the audit log .* roles GUEST → VIEWER .* description It <b>builds<\/b> .* create/,
    );
    assert.ok(html.includes(`href="../audit-log?key=${key.id}"`));
    const other = await visitorWith(test, { name: 'Own', permissions: ['API_KEY:READ_ANY'] });
    const page = await other.visitor.open(`keys/${key.id}`);
    assert.equal(page.status, 200);
    assert.doesNotMatch(page.text, /Timeline/);
  });

  it('offers what the key that has signed in may do, and no more', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
    const offered = async (visitor: Visitor, id: string) => {
      const { text } = await visitor.open(`keys/${id}`);
      return ['Edit', 'Rotate', 'Disable', 'Delete'].filter((word) => new RegExp(` ${word} .*Secret svc_`).test(text));
    };
    const reader = await visitorWith(test, { name: 'Reader', permissions: ['API_KEY:READ_ANY'] });
    assert.deepEqual(await offered(reader.visitor, key.id), []);
    const updater = await visitorWith(test, { name: 'Up', permissions: ['API_KEY:READ_ANY', 'API_KEY:UPDATE_ANY'] });
    assert.deepEqual(await offered(updater.visitor, key.id), ['Edit', 'Disable']);
    const own = await visitorWith(test, {
      name: 'Own',
      permissions: ['API_KEY:READ_ANY', 'API_KEY:UPDATE_OWN', 'API_KEY:DELETE_OWN', 'API_KEY:CREATE_OWN'],
    });
    const mine = await authenticate(test.keys, own.secret);
    assert.ok('principal' in mine);
    const child = await test.keys.create({ name: 'Child', permissions: ['API_KEY:READ_ANY'] }, mine.principal);
    assert.deepEqual(await offered(own.visitor, key.id), []);
    assert.match(own.visitor.page!.html, new RegExp(`href="../keys/new\\?from=${key.id}"`));
    assert.deepEqual(await offered(own.visitor, child.apiKey.id), ['Edit', 'Rotate', 'Disable', 'Delete']);
    assert.equal((await own.visitor.open(`keys/${key.id}/delete`)).status, 403);
    assert.match(own.visitor.page!.text, /Not allowed Your key lacks API_KEY:DELETE_ANY/);

    await test.keys.rotate(mine.principal.apiKey.id, {}, OPERATOR);
    assert.deepEqual(await offered(own.visitor, child.apiKey.id), []);
    assert.match(own.visitor.page!.text, /the previous secret of your key/);
    assert.match(
      (await own.visitor.open(`keys/${child.apiKey.id}/edit`)).text,
      /Not allowed .*Sign in with the new one/,
    );
  });

  it('is the same for an unreadable key as for an unknown one', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Hidden', roles: ['GUEST'] }, OPERATOR);
    const { visitor } = await visitorWith(test, { name: 'Own', permissions: ['API_KEY:READ_OWN'] });
    for (const id of [key.id, 'nothing', '%3Cb%3E'])
      for (const path of ['', '/edit', '/delete', '/rotation', '/narrow']) {
        const { status, text } = await visitor.open(`keys/${id}${path}`);
        assert.deepEqual([status, text.includes('Hidden')], [404, false], id + path);
      }
  });
});
