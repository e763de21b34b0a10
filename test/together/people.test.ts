import assert from 'node:assert/strict';
import { Declarations } from '../../src/features/apply/apply.ts';
import { Containments } from '../../src/features/contain/contain.ts';
import { grantsOf, People, type Person } from '../../src/features/people/people.ts';
import { Sessions } from '../../src/features/sessions/sessions.ts';
import { Transfer } from '../../src/features/transfer/transfer.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { OPERATOR, principalOf } from '../../src/keys/authorization/index.ts';
import type { ApiKey } from '../../src/keys/key/index.ts';
import { describeOnEach } from '../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

const ADA: Person = { issuer: 'https://id.example.org', subject: '248289761001', name: 'ada@example.org' };
const BY_GROUP = { admins: ['ADMIN'], writers: ['DOCKER:UPDATE_ANY'], '*': ['VIEWER', 'API_KEY:CREATE_OWN'] } as const;

describeOnEach('a person, for other features,', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const signIn = (groups: readonly string[] = [], person = ADA) =>
    test.keys.feature(People).signIn(person, grantsOf(BY_GROUP, groups));
  const key = async (groups: readonly string[] = [], person = ADA) => (await signIn(groups, person))!.apiKey;
  const chainOf = async (of: ApiKey) => (await test.keys.chainsOf([of]))[0]!;
  const principal = async (of: ApiKey) => principalOf(await chainOf(of), test.keys.catalog);
  const found = async (id: string) => (await test.keys.findById(id, OPERATOR))!;

  it('who has no grants any more has nothing, no session, and nothing through their keys', async () => {
    const grants = grantsOf({ admins: ['ADMIN'] }, ['admins']);
    const { apiKey, digest } = (await test.keys.feature(People).signIn(ADA, grants))!;
    const { apiKey: made } = await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, await principal(apiKey));
    const token = await test.keys.feature(Sessions).begin(apiKey.id, digest);
    assert.equal(await test.keys.feature(People).signIn(ADA, grantsOf({ admins: ['ADMIN'] }, [])), undefined);
    assert.deepEqual((await found(apiKey.id)).roles, []);
    assert.deepEqual(test.keys.accessOf(await chainOf(await found(made.id))).permissions(), []);
    assert.equal(await test.keys.feature(Sessions).find(token), undefined);
  });

  it('who is disabled is out, and stays so when they sign in, until they are enabled', async () => {
    const { apiKey, digest } = (await signIn())!;
    const token = await test.keys.feature(Sessions).begin(apiKey.id, digest);
    await test.keys.setEnabled(apiKey.id, false, OPERATOR);
    const accepted = () => test.keys.authenticator.accepts(digest, apiKey.id);
    assert.equal((await key(['admins'])).id, apiKey.id);
    assert.equal(await accepted(), false);
    await test.keys.setEnabled(apiKey.id, true, OPERATOR);
    assert.equal(await accepted(), true);
    assert.equal(await test.keys.feature(Sessions).find(token), undefined);
  });

  it('who was deleted comes back as a new person, without their former keys', async () => {
    const { apiKey, digest } = (await signIn())!;
    const { apiKey: made } = await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, await principal(apiKey));
    const token = await test.keys.feature(Sessions).begin(apiKey.id, digest);
    assert.equal((await test.keys.delete([apiKey.id], OPERATOR)).length, 2);
    assert.equal(await test.keys.feature(Sessions).find(token), undefined);
    const back = await key();
    assert.notEqual(back.id, apiKey.id);
    assert.equal(await test.keys.findById(made.id, OPERATOR), undefined);
    assert.equal(await test.keys.authenticator.accepts(digest, apiKey.id), false);
  });

  it('is contained with all that they made', async () => {
    const person = await key(['admins']);
    const { apiKey: made } = await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, await principal(person));
    await test.keys.feature(Containments).contain(person.id, undefined, OPERATOR);
    assert.notEqual((await found(person.id)).disabledAt, null);
    assert.equal(test.keys.statusOf(await chainOf(await found(made.id))), 'DISABLED');
  });

  it('moves with an export, and signs in where it was imported', async () => {
    const person = await key(['writers']);
    const pages = [];
    for await (const { keys } of test.keys.feature(Transfer).export({ withDigests: true })) pages.push(...keys);
    assert.equal('sha256' in pages[0]!, false);
    const lines = (...exported: object[]) => exported.map((each) => JSON.stringify(each)).join('\n');
    const input = (text: string) =>
      (async function* () {
        yield Buffer.from(text);
      })();
    await test.keys.delete([person.id], OPERATOR);
    const report = await importKeys(test.keys, input(lines(...pages)));
    assert.deepEqual(
      report.lines.flatMap(({ errors }) => errors),
      [],
    );
    assert.equal((await key(['writers'])).id, person.id);
    const again = await importKeys(test.keys, input(lines(...pages)));
    assert.deepEqual([again.unchanged, again.imported, again.failed], [1, 0, 0]);
    const failing = [
      { ...pages[0]!, name: 'Eve', id: undefined, sha256: 'a'.repeat(64) },
      { ...pages[0]!, name: 'Eve', id: undefined, prefix: 'svc_0a1B2c3D4e5F_…' },
      { ...pages[0]!, name: 'Eve', id: undefined, person: { ...ADA, subject: '' } },
      { ...pages[0]!, name: 'Eve', id: undefined, person: undefined, secret: 'something that is long enough' },
    ];
    const failed = await importKeys(test.keys, input(lines(...failing)));
    assert.equal(failed.failed, failing.length);
    const taken = await importKeys(test.keys, input(lines({ ...pages[0]!, name: 'Eve', id: undefined })));
    assert.deepEqual(taken.lines[0]!.errors[0]!.code, 'SECRET_TAKEN');
  });

  it('cannot be declared', async () => {
    const { id, name } = await key();
    const before = await found(id);
    const declared = [{ name, description: null, roles: ['ADMIN' as const], permissions: [], expiresAt: null }];
    const { description, roles, permissions, expiresAt } = before;
    const unchanged = [{ name, description, roles, permissions, expiresAt }];
    for (const each of [declared, unchanged])
      await assert.rejects(test.keys.feature(Declarations).apply(each, {}, OPERATOR), { code: 'NOT_FOR_PEOPLE' });
    assert.deepEqual(await found(id), before);
  });
});
