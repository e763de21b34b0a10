import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type ConsolePage, startConsoleService, Visitor, visitorWith } from '../support/console.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';
import { startServer, type TestServer, type TestService } from '../support/server.ts';

const MINUTE = 60_000;
const PERMISSIONS = [
  'API_KEY:CREATE_OWN',
  'API_KEY:READ_ANY',
  'API_KEY:UPDATE_ANY',
  'API_KEY:DELETE_ANY',
  'ME:READ_OWN',
];

describeOnEach('a form of the console that is sent again', (dialect) => {
  let test: TestService;
  /** Another process over the same store. */
  let other: TestKeys & TestServer;
  let visitor: Visitor;
  let ada: string;
  beforeEach(async () => {
    test = await startConsoleService();
    const there = await openTestKeys({ database: test.database, asServer: true });
    other = { ...there, ...(await startServer(there.keys, { console: true })) };
    ({ visitor, secret: ada } = await visitorWith(test, { name: 'Ada', permissions: PERMISSIONS }));
  });
  afterEach(async () => {
    await other.stop();
    await other.store.close();
    await test.stop();
  });

  const secretIn = ({ html }: ConsolePage) => /value="(svc_\w+)"/.exec(html)?.[1];
  const tokenOf = ({ token }: Visitor) => token;
  const preview = async (name = 'Backup') => {
    await visitor.open('keys/new');
    return visitor.submit('keys/new', { name, permission: ['ME:READ_OWN'], step: 'preview' });
  };
  const create = (by = visitor, more = {}) => by.submit('keys/new', { step: 'create', ...more });
  /** The form of a preview, as a browser sends it. */
  const creation = ({ html }: ConsolePage) => {
    const fields = html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g);
    const pairs = Array.from(fields, ([, name, value]): [string, string] => [name!, value!]);
    return new URLSearchParams([...pairs, ['step', 'create']]);
  };
  const names = async () => (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted();
  const isAccepted = async (secret: string) => 'principal' in (await authenticate(test.keys, secret));
  const add = async (name = 'CI') =>
    (await test.keys.create({ name, permissions: ['ME:READ_OWN'] }, OPERATOR)).apiKey.id;

  it('twice at once, to two processes, creates one key, whose secret both answers have', async () => {
    for (let round = 0; round < 5; round += 1) {
      await preview(`Backup ${round}`);
      const answers = await Promise.all([
        create(visitor.twin()),
        create(visitor.twin(other.url)),
        create(visitor.twin()),
      ]);
      const [secret, ...secrets] = answers.map(secretIn);
      assert.ok(secret !== undefined && (await isAccepted(secret)), answers.map(({ text }) => text).join('\n'));
      assert.deepEqual(secrets, [secret, secret]);
      assert.equal((await names()).length, 2 + round);
    }
  });

  it('is done once, though the session ends while the second one waits for the first', async () => {
    await preview();
    let done = 0;
    const create_ = test.keys.create.bind(test.keys);
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    test.keys.create = async (...args) => {
      done += 1;
      started.resolve();
      await finish.promise;
      return create_(...args);
    };
    const first = create(visitor.twin());
    await started.promise;
    const second = create(visitor.twin());
    await test.keys.sessions.end(visitor.token);
    finish.resolve();
    await Promise.all([first, second]);
    assert.equal(done, 1);
  });

  it('leaves a session short, whose latest pages are kept', async () => {
    const token = visitor.token;
    const sealed = 'x'.repeat(150_000);
    for (const form of ['a', 'b', 'c', 'd'])
      await test.keys.sessions.changeOutcomes(token, (others, at) => [
        ...others,
        { form, at, location: form, sealed, isSeen: false },
      ]);
    const { outcomes } = (await test.keys.sessions.look(token))!;
    assert.deepEqual(
      outcomes.map((outcome) => [outcome.form, outcome.sealed !== null]),
      [
        ['a', false],
        ['b', false],
        ['c', true],
        ['d', true],
      ],
    );
  });

  it('twice at once, to two processes, gives a key one new secret', async () => {
    const id = await add();
    await visitor.open(`keys/${id}/rotation`);
    const rotate = (by: Visitor) => by.submit('/rotation', { grace: '0s' });
    const answers = await Promise.all([rotate(visitor.twin()), rotate(visitor.twin(other.url))]);
    const [one, same] = answers.map(secretIn);
    assert.ok(one !== undefined && one === same && (await isAccepted(one)));
  });

  it('by a browser that has given up the first one gets what that led to', async () => {
    const page = await preview();
    const given = new AbortController();
    const body = creation(page);
    const first = fetch(`${test.url}/console/keys/new`, {
      method: 'POST',
      headers: { cookie: visitor.cookies, 'sec-fetch-site': 'same-origin' },
      body,
      redirect: 'manual',
      signal: given.signal,
    });
    given.abort();
    await assert.rejects(first);
    const again = await create();
    assert.ok(await isAccepted(secretIn(again)!));
    assert.deepEqual(await names(), ['Ada', 'Backup']);
  });

  it('shows the secret again until it is stored, and then that it was shown', async () => {
    await preview();
    const before = visitor.twin();
    const { html, path, headers, status } = await create();
    const secret = secretIn({ html } as ConsolePage)!;
    assert.match(path, /^done\/[\w-]{22}$/);
    assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store']);
    assert.equal(secretIn(await visitor.open(path)), secret);
    assert.equal(secretIn(await create(before.twin())), secret);
    const next = await visitor.submit('/stored');
    assert.match(next.text, /Backup/);
    assert.match(next.path, /^keys\/[\w-]{36}$/);
    for (const page of [await visitor.open(path), await create(before.twin()), await before.open(path)]) {
      assert.deepEqual([page.status, secretIn(page)], [410, undefined]);
      assert.match(page.text, /A secret is shown only once\./);
    }
    assert.deepEqual(await names(), ['Ada', 'Backup']);
  });

  it('does not show the secret any more once another page was opened, nor after ten minutes', async () => {
    const shown = await preview();
    const { path } = await create();
    // Back to what came before it, and forward again.
    assert.match((await visitor.open(shown.path)).text, /Preview of Backup/);
    assert.match((await visitor.open(path)).text, /A secret is shown only once/);
    await preview('Later');
    const later = await create();
    for (const keys of [test, other]) keys.time.now += 10 * MINUTE;
    assert.equal((await visitor.open(later.path)).status, 410);
    await preview('Open');
    const open = await create(visitor, { yourKey: ada });
    await visitor.open('keys');
    assert.match((await visitor.open(open.path)).text, /A secret is shown only once/);
  });

  it('keeps a secret that was not seen yet, whatever is opened meanwhile', async () => {
    await preview();
    const page = visitor.page!;
    const form = visitor.twin();
    const body = creation(page);
    await fetch(`${test.url}/console/keys/new`, {
      method: 'POST',
      headers: { cookie: visitor.cookies, 'sec-fetch-site': 'same-origin' },
      body,
      redirect: 'manual',
    });
    await visitor.open('keys');
    assert.ok(await isAccepted(secretIn(await create(form))!));
  });

  it('by another session, or without the token of the form, shows no secret', async () => {
    await preview();
    const before = visitor.twin();
    const { path } = await create();
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions: PERMISSIONS });
    bea.page = before.page;
    const refused = await create(bea);
    assert.deepEqual([refused.status, secretIn(refused)], [409, undefined]);
    assert.equal((await bea.open(path)).status, 410);
    const thief = new Visitor(test.url);
    thief.cookie = visitor.cookie;
    assert.equal(secretIn(await thief.open(path)), undefined);
    assert.deepEqual(await names(), ['Ada', 'Backup', 'Bea']);
  });

  it('shows who rotates the key that they have signed in with its new secret, although their session ends by it', async () => {
    const id = (await test.keys.findByName('Ada', OPERATOR))!.id;
    await visitor.open(`keys/${id}/rotation`);
    const before = visitor.twin(other.url);
    const page = await visitor.submit('/rotation', { grace: '0s' });
    const secret = secretIn(page)!;
    assert.ok(await isAccepted(secret));
    assert.equal(secretIn(await before.submit('/rotation', { grace: '0s' })), secret);
    assert.match((await visitor.open('keys')).text, /Sign in to svc-api/);
  });

  it('leads where the first one led: an edit, a step of a rotation, and a deletion are done once', async () => {
    const id = await add();
    const twice = async (path: string, action: string, fields: Record<string, string> = {}) => {
      await visitor.open(path);
      const [one, two] = [visitor.twin(), visitor.twin(other.url)];
      const pages = await Promise.all([one.submit(action, fields), two.submit(action, fields)]);
      assert.deepEqual(
        pages.map(({ status }) => status),
        [200, 200],
      );
      assert.equal(pages[0].path, pages[1].path);
      return pages[0].text;
    };
    assert.match(await twice(`keys/${id}/edit`, '/edit', { description: 'Builds' }), /Saved\./);
    await test.keys.rotate(id, {}, OPERATOR);
    assert.match(await twice(`keys/${id}/rotation`, '/finish'), /Rotation finished/);
    assert.match(await twice(`keys/${id}/delete`, '/delete'), /Deleted 1 key: CI/);
  });

  it('is done where it was filled in otherwise, and where the first one was refused', async () => {
    const id = await add();
    await visitor.open(`keys/${id}/edit`);
    const form = visitor.twin();
    assert.equal((await form.twin().submit('/edit', { name: 'a_b' })).status, 400);
    assert.match((await form.twin().submit('/edit', { name: 'CI 2' })).text, /Saved\./);
    assert.equal((await form.twin().submit('/edit', { name: 'CI 3' })).status, 409);
    assert.deepEqual(await names(), ['Ada', 'CI 2']);
  });

  it('shows its problems again for ten minutes, to its session alone, and then the form anew', async () => {
    const id = await add();
    await visitor.open(`keys/${id}/edit`);
    const page = await visitor.submit('/edit', { name: 'a_b', description: 'Builds' });
    assert.match(page.path, new RegExp(`^keys/${id}/edit\\?answer=[\\w-]{43}$`));
    assert.equal(page.headers.get('cache-control'), 'no-store');
    const stored = JSON.stringify(await test.keys.sessions.look(tokenOf(visitor)));
    assert.ok(!stored.includes(page.path.split('=')[1]!));
    for (const by of [visitor.twin(), visitor.twin(other.url)]) {
      const again = await by.open(page.path);
      assert.deepEqual([again.status, again.html], [400, page.html]);
    }
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions: PERMISSIONS });
    const without = await bea.open(page.path);
    assert.deepEqual([without.status, without.html.includes('Builds')], [200, false]);
    assert.match((await new Visitor(test.url).open(page.path)).text, /Sign in to svc-api/);
    for (const keys of [test, other]) keys.time.now += 10 * MINUTE;
    const anew = await visitor.open(page.path);
    assert.deepEqual([anew.status, anew.html.includes('Builds')], [200, false]);
  });

  it('is tried again where it had problems, and done once these are gone', async () => {
    const [id, taken] = [await add(), await add('Taken')];
    await visitor.open(`keys/${id}/edit`);
    const rename = (by: Visitor) => by.submit('/edit', { name: 'Taken' });
    const form = visitor.twin();
    const answers = await Promise.all([rename(form.twin()), rename(form.twin(other.url)), rename(form.twin())]);
    for (const { status, text } of answers) assert.deepEqual([status, text.includes('Saved.')], [409, false]);
    await test.keys.delete([taken], OPERATOR);
    for (let times = 0; times < 2; times += 1) assert.match((await rename(form.twin())).text, /Saved\./);
    assert.deepEqual(await names(), ['Ada', 'Taken']);
  });

  it('with problems takes the place of no page that somebody may not have seen, and is answered at once if it is long', async () => {
    const token = tokenOf(visitor);
    const unseen = Array.from({ length: 60 }, (_, index) => ({ form: `${index}`, location: 'x', isSeen: false }));
    await test.keys.sessions.changeOutcomes(token, (_, at) => unseen.map((one) => ({ ...one, at, sealed: 'x' })));
    const id = await add();
    await visitor.open(`keys/${id}/edit`);
    const form = visitor.twin();
    const paths: string[] = [];
    for (let count = 0; count < 12; count += 1)
      paths.push((await form.twin().submit('/edit', { name: 'a_b', description: `No. ${count}` })).path);
    const { outcomes } = (await test.keys.sessions.look(token))!;
    assert.deepEqual([outcomes.length, outcomes.filter(({ sealed }) => sealed === 'x').length], [40, 30]);
    assert.equal((await visitor.open(paths[1]!)).status, 200);
    assert.equal((await visitor.open(paths[2]!)).status, 400);
    const long = await form.submit('/edit', { name: 'a_b', description: randomBytes(160_000).toString('base64url') });
    assert.deepEqual([long.status, long.path], [400, `keys/${id}/edit`]);
    assert.equal((await visitor.open(paths.at(-1)!)).status, 400);
  });

  it('shows a secret that the store does not take at once, and keeps that as no answer either', async () => {
    await preview();
    const { sessions } = test.keys;
    const change = sessions.changeOutcomes.bind(sessions);
    let calls = 0;
    sessions.changeOutcomes = (...args) => {
      calls += 1;
      return calls === 2 ? Promise.reject(new Error('disk full')) : change(...args);
    };
    const page = await create();
    assert.deepEqual([page.path, page.headers.get('cache-control')], ['keys/new', 'no-store']);
    assert.ok(await isAccepted(secretIn(page)!));
    const { outcomes } = (await sessions.look(tokenOf(visitor)))!;
    assert.ok(outcomes.every(({ isAnswer }) => !isAnswer));
  });

  it('of another page keeps nothing', async () => {
    const id = await add();
    const { status } = await fetch(`${test.url}/console/keys/${id}/edit`, {
      method: 'POST',
      headers: { cookie: visitor.cookies, 'sec-fetch-site': 'same-site' },
      body: new URLSearchParams({ name: 'a_b' }),
      redirect: 'manual',
    });
    assert.equal(status, 403);
    assert.deepEqual((await test.keys.sessions.look(tokenOf(visitor)))!.outcomes, []);
  });

  it('leaves no secret in the store, in addresses or in cookies', async () => {
    await preview();
    const { html, path } = await create();
    const secret = secretIn({ html } as ConsolePage)!;
    const { outcomes } = (await test.keys.sessions.look(visitor.token))!;
    assert.ok(outcomes.some(({ sealed }) => sealed !== null));
    const parts = [secret, secret.slice(17, 40), Buffer.from(secret).toString('base64url').slice(4, -4)];
    const seen = [JSON.stringify(outcomes), path, visitor.cookies];
    if (dialect === 'sqlite')
      for (const file of readdirSync(dirname(test.database)))
        if (file.startsWith(basename(test.database)))
          seen.push(readFileSync(join(dirname(test.database), file), 'latin1'));
    for (const part of parts) for (const text of seen) assert.ok(!text.includes(part));
  });
});
