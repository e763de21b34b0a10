import assert from 'node:assert/strict';
import { digestPerson, grantsOf, People, type Person } from '../../../src/features/people/people.ts';
import { type Actor, OPERATOR, principalOf } from '../../../src/keys/authorization/index.ts';
import type { ErrorCode } from '../../../src/keys/basics/index.ts';
import type { ApiKey } from '../../../src/keys/key/index.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';

const ADA: Person = { issuer: 'https://id.example.org', subject: '248289761001', name: 'ada@example.org' };
const BY_GROUP = { admins: ['ADMIN'], writers: ['DOCKER:UPDATE_ANY'], '*': ['VIEWER', 'API_KEY:CREATE_OWN'] } as const;

describeOnEach('a person', () => {
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
  const entries = () => test.options.repository.auditLog.find({ order: 'oldest', limit: 100 });

  it('is a key without a secret, found by issuer and subject', async () => {
    const { apiKey, digest } = (await signIn(['writers']))!;
    assert.deepEqual(apiKey.roles, ['VIEWER']);
    assert.deepEqual(apiKey.permissions, ['DOCKER:UPDATE_ANY', 'API_KEY:CREATE_OWN']);
    assert.equal(apiKey.name, 'ada example org');
    assert.deepEqual(apiKey.person, ADA);
    assert.match(apiKey.publicId, /^person-\w{12}$/);
    assert.equal(await test.keys.authenticator.accepts(digest, apiKey.id), true);
    const again = await key(['writers']);
    assert.equal(again.id, apiKey.id);
    assert.equal((await entries()).length, 1);
    assert.notEqual((await key([], { ...ADA, issuer: 'https://other.example.org' })).id, apiKey.id);
    assert.notEqual((await key([], { ...ADA, subject: '2' })).id, apiKey.id);
  });

  it('is not let in by anything that is sent as a secret', async () => {
    const { apiKey } = (await signIn())!;
    for (const sent of [digestPerson(ADA), apiKey.publicId, ADA.subject, digestPerson(ADA).slice('person:'.length)])
      assert.ok('refused' in (await authenticate(test.keys, sent)), sent);
  });

  it('has the grants of the latest sign-in, as have the keys that they created', async () => {
    const admin = await key(['admins']);
    const { apiKey: made } = await test.keys.create({ name: 'CI', roles: ['ADMIN'] }, await principal(admin));
    const { apiKey: grandchild } = await test.keys.create({ name: 'Job', roles: ['ADMIN'] }, await principal(made));
    const may = async (of: ApiKey) => test.keys.accessOf(await chainOf(of)).has('DOCKER', 'DELETE_ANY');
    assert.deepEqual([await may(made), await may(grandchild)], [true, true]);
    await signIn();
    assert.deepEqual([await may(made), await may(grandchild)], [false, false]);
    assert.deepEqual((await found(admin.id)).roles, ['VIEWER']);
    await signIn(['admins']);
    assert.deepEqual([await may(made), await may(grandchild)], [true, true]);
    const changes = (await entries()).filter(({ apiKey: of }) => of?.id === admin.id);
    assert.deepEqual(
      changes.map(({ action, actor }) => [action, actor.kind, actor.name]),
      [
        ['CREATE', 'POLICY', 'people'],
        ['UPDATE', 'POLICY', 'people'],
        ['UPDATE', 'POLICY', 'people'],
      ],
    );
    assert.deepEqual(changes[0]!.after!['person'], ADA);
  });

  it('is not created where nothing is granted to them', async () => {
    assert.equal(await test.keys.feature(People).signIn(ADA, grantsOf({}, ['admins'])), undefined);
    assert.deepEqual((await test.keys.list({}, OPERATOR)).keys, []);
  });

  it('gets a distinct name, whatever they are called', async () => {
    await test.keys.create({ name: 'Root', roles: ['ADMIN'] }, OPERATOR);
    const nameOf = async (name: string, subject: string) => (await key([], { ...ADA, subject, name })).name;
    assert.match(await nameOf('Root', '1'), /^Root \w{8}$/);
    assert.match(await nameOf('Rооt', '2'), /^Rооt \w{8}$/);
    assert.equal(await nameOf('<&>', '3'), 'Person');
    assert.match(await nameOf('x'.repeat(255), '4'), /^x{50}$/);
    assert.match(await nameOf('x'.repeat(255), '5'), /^x{50} \w{8}$/);
    assert.equal(await nameOf(' Zoë  Müller ', '6'), 'Zoë Müller');
    assert.match(await nameOf('ㅤ', '7'), /^Person \w{8}$/);
  });

  it('keeps the name that others know, while their display name is shown unchanged', async () => {
    await signIn();
    const renamed = await key([], { ...ADA, name: 'Countess' });
    assert.equal(renamed.name, 'ada example org');
    assert.equal(renamed.person!.name, 'Countess');
    assert.deepEqual((await test.keys.list({ search: 'COUNTESS' }, OPERATOR)).keys, [renamed]);
    assert.deepEqual((await test.keys.list({ search: ADA.subject }, OPERATOR)).keys, [renamed]);
  });

  it('cannot be given a secret, other grants or another name, by any rule', async () => {
    const { id, name } = await key();
    const before = await found(id);
    const refused = (work: Promise<unknown>, code: ErrorCode = 'NOT_FOR_PEOPLE') => assert.rejects(work, { code });
    const { keys } = test;
    await refused(keys.rotate(id, {}, OPERATOR));
    await refused(keys.create({ name, roles: ['GUEST'], overwrite: true }, OPERATOR));
    await refused(keys.create({ name, roles: ['GUEST'] }, OPERATOR), 'NAME_TAKEN');
    await refused(keys.update(id, { roles: ['ADMIN'] }, OPERATOR));
    await refused(keys.update(id, { permissions: ['DOCKER:DELETE_ANY'] }, OPERATOR));
    await refused(keys.update(id, { name: 'Root' }, OPERATOR));
    await refused(keys.finishRotation(id, OPERATOR), 'ROTATION_NONE');
    await refused(keys.rollBackRotation(id, OPERATOR), 'ROTATION_NONE');
    const ada = await principal(before);
    await refused(
      keys.update(id, { roles: ['ADMIN'] }, await principal(await key(['admins'], { ...ADA, subject: '2' }))),
    );
    await refused(keys.update(id, { roles: ['ADMIN'] }, ada), 'FORBIDDEN');
    assert.deepEqual(await found(id), before);
    const [changes] = await keys.permittedChanges.possibleChanges([before], ada);
    assert.ok(changes!.find(({ change }) => change === 'ROTATE')!.refusal);
  });

  it('can be restricted: a description, limits, networks and an expiry', async () => {
    const { id } = await key();
    await test.keys.update(id, { description: 'Until May', limits: ['5/m'], allowFrom: ['10.0.0.0/8'] }, OPERATOR);
    await test.keys.update(id, { expiresIn: '1h' }, OPERATOR);
    assert.equal((await key()).description, 'Until May');
    test.time.now += 3_600_000;
    assert.equal(await test.keys.authenticator.accepts(digestPerson(ADA), id), false);
  });

  it('owns the keys that they created, and the children of those', async () => {
    const person = await key();
    const ada = await principal(person);
    const { apiKey: made } = await test.keys.create(
      { name: 'CI', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] },
      ada,
    );
    await test.keys.create({ name: 'Job', roles: ['VIEWER'] }, await principal(made));
    await test.keys.create({ name: 'Other', permissions: ['API_KEY:READ_OWN'] }, OPERATOR);
    const ownedBy = async (owner: string, more = {}, actor: Actor = OPERATOR) => {
      const { keys } = await test.keys.list({ owner, ...more }, actor);
      return keys.map(({ name }) => name).toSorted();
    };
    const all = ['CI', 'Job', person.name];
    for (const owner of [person.name, 'ADA@example.org', ADA.subject])
      assert.deepEqual(await ownedBy(owner), all, owner);
    assert.deepEqual(await ownedBy('CI'), ['CI', 'Job']);
    assert.deepEqual(await ownedBy('Job'), ['Job']);
    for (const owner of ['', 'ada', 'nobody', 'https://id.example.org']) assert.deepEqual(await ownedBy(owner), []);
    await test.keys.setEnabled(made.id, false, OPERATOR);
    assert.deepEqual(await ownedBy(person.name, { status: 'disabled' }), ['CI', 'Job']);
    assert.deepEqual(await ownedBy(person.name, { search: 'jo' }), ['Job']);
    const other = (await test.keys.findByName('Other', OPERATOR))!;
    assert.deepEqual(await ownedBy(person.name, {}, await principal(other)), []);
  });
});
