import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type ConsolePage, startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { startServer, type TestServer, type TestService } from '../../support/server.ts';
import { Sessions } from '../../../src/features/sessions/sessions.ts';

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
  /** Another server on the same store. */
  let other: TestKeys & TestServer;
  let visitor: Visitor;
  beforeEach(async () => {
    test = await startConsoleService();
    const there = await openTestKeys({ database: test.database, asServer: true });
    other = { ...there, ...(await startServer(there.keys, { console: true })) };
    ({ visitor } = await visitorWith(test, { name: 'Ada', permissions: PERMISSIONS }));
  });
  afterEach(async () => {
    await other.stop();
    await other.store.close();
    await test.stop();
  });

  const secretIn = ({ html }: ConsolePage) => /value="(svc_\w+)"/.exec(html)?.[1];
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

  it('twice at once creates one key, whose secret all answers have', async () => {
    for (let round = 0; round < 3; round += 1) {
      await preview(`Backup ${round}`);
      const answers = await Promise.all([create(visitor.twin()), create(visitor.twin()), create(visitor.twin())]);
      const [secret, ...secrets] = answers.map(secretIn);
      assert.ok(secret !== undefined && (await isAccepted(secret)), answers.map(({ text }) => text).join('\n'));
      assert.deepEqual(secrets, [secret, secret]);
      assert.equal((await names()).length, 2 + round);
    }
  });

  it('twice at once, to two servers of a store, is processed by one; the other one says so', async () => {
    await preview();
    const answers = await Promise.all([create(visitor.twin()), create(visitor.twin(other.url))]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    );
    const secrets = answers.map(secretIn).filter((secret) => secret !== undefined);
    assert.equal(secrets.length, 1);
    assert.ok(await isAccepted(secrets[0]!));
    assert.match(answers.find(({ status }) => status === 409)!.text, /You already sent this form/);
    assert.deepEqual(await names(), ['Ada', 'Backup']);
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
    await test.keys.feature(Sessions).end(visitor.token);
    finish.resolve();
    await Promise.all([first, second]);
    assert.equal(done, 1);
  });

  it('gives a key one new secret', async () => {
    const id = await add();
    await visitor.open(`keys/${id}/rotation`);
    const rotate = (by: Visitor) => by.submit('/rotation', { grace: '0s' });
    const answers = await Promise.all([rotate(visitor.twin()), rotate(visitor.twin())]);
    const [one, same] = answers.map(secretIn);
    assert.ok(one !== undefined && one === same && (await isAccepted(one)));
    assert.equal((await rotate(visitor.twin(other.url))).status, 409);
    assert.ok(await isAccepted(one));
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

  it('shows the secret again for a minute, and then that it was sent before', async () => {
    await preview();
    const before = visitor.twin();
    const shown = await create();
    const secret = secretIn(shown)!;
    assert.deepEqual([shown.status, shown.path, shown.headers.get('cache-control')], [200, 'keys/new', 'no-store']);
    for (const keys of [test, other]) keys.time.now += MINUTE - 1;
    const again = await create(before.twin());
    assert.deepEqual([again.html, again.headers.get('cache-control')], [shown.html, 'no-store']);
    assert.equal(secretIn(again), secret);
    test.time.now += 1;
    for (let times = 0; times < 2; times += 1) {
      const late = await create(before.twin());
      assert.deepEqual([late.status, secretIn(late)], [409, undefined]);
      assert.match(late.text, /A secret is shown only once/);
    }
    const next = await visitor.submit('keys/');
    assert.match(next.text, /Backup/);
    assert.match(next.path, /^keys\/[\w-]{36}$/);
    assert.deepEqual(await names(), ['Ada', 'Backup']);
  });

  it('is not done again by a server that was started since', async () => {
    await preview();
    const before = visitor.twin(other.url);
    await create();
    await test.keys.delete([(await test.keys.findByName('Backup', OPERATOR))!.id], OPERATOR);
    for (const keys of [test, other]) keys.time.now += 20 * MINUTE;
    const late = await create(before);
    assert.deepEqual([late.status, /You already sent this form/.test(late.text)], [409, true], late.text);
    assert.deepEqual(await names(), ['Ada']);
  });

  it('shows no secret to another session, nor once its own has ended', async () => {
    await preview();
    const before = visitor.twin();
    await create();
    const { visitor: bea } = await visitorWith(test, { name: 'Bea', permissions: PERMISSIONS });
    bea.page = before.page;
    const refused = await create(bea);
    assert.deepEqual([refused.status, secretIn(refused)], [409, undefined]);
    await test.keys.feature(Sessions).end(before.token);
    const ended = await create(before);
    assert.deepEqual([secretIn(ended), /Sign in/.test(ended.text)], [undefined, true]);
    assert.deepEqual(await names(), ['Ada', 'Backup', 'Bea']);
  });

  it('shows no secret once the key that has signed in is deleted', async () => {
    await preview();
    const before = visitor.twin();
    await create();
    await test.keys.delete([(await test.keys.findByName('Ada', OPERATOR))!.id], OPERATOR);
    assert.equal(secretIn(await create(before)), undefined);
  });

  it('shows people who rotate their own key its new secret, although that ends their session', async () => {
    const id = (await test.keys.findByName('Ada', OPERATOR))!.id;
    await visitor.open(`keys/${id}/rotation`);
    const before = visitor.twin();
    const secret = secretIn(await visitor.submit('/rotation', { grace: '0s' }))!;
    assert.ok(await isAccepted(secret));
    assert.equal(secretIn(await before.submit('/rotation', { grace: '0s' })), secret);
    assert.match((await visitor.open('keys')).text, /Sign in to svc-api/);
  });

  it('leads where the first one led: an edit, a step of a rotation, a containment and a deletion are done once', async () => {
    const id = await add();
    const twice = async (path: string, action: string, fields: Record<string, string> = {}) => {
      await visitor.open(path);
      const [one, two] = [visitor.twin(), visitor.twin()];
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
    assert.match(await twice(`keys/${id}/contain`, '/contain'), /Contained 1 key disabled/);
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

  it('is tried again where it had problems, and done once these are gone', async () => {
    const [id, taken] = [await add(), await add('Taken')];
    await visitor.open(`keys/${id}/edit`);
    const rename = (by: Visitor) => by.submit('/edit', { name: 'Taken' });
    const form = visitor.twin();
    const answers = await Promise.all([rename(form.twin()), rename(form.twin()), rename(form.twin())]);
    for (const { status, text, path, headers } of answers) {
      assert.deepEqual([status, text.includes('Saved.'), path], [409, false, `keys/${id}/edit`]);
      assert.equal(headers.get('cache-control'), 'no-store');
    }
    await test.keys.delete([taken], OPERATOR);
    for (let times = 0; times < 2; times += 1) assert.match((await rename(form.twin())).text, /Saved\./);
    assert.deepEqual(await names(), ['Ada', 'Taken']);
  });

  it('leaves no secret in the store, in addresses or in cookies', async () => {
    await preview();
    const shown = await create();
    const secret = secretIn(shown)!;
    const parts = [secret, secret.slice(17, 40), Buffer.from(secret).toString('base64url').slice(4, -4)];
    const seen = [shown.path, visitor.cookies, JSON.stringify([...shown.headers])];
    if (dialect === 'sqlite')
      for (const file of readdirSync(dirname(test.database)))
        if (file.startsWith(basename(test.database)))
          seen.push(readFileSync(join(dirname(test.database), file), 'latin1'));
    for (const part of parts) for (const text of seen) assert.ok(!text.includes(part));
  });
});
