import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const MAKER = ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY', 'DOCKER:READ_ANY'];

describeOnEach('a key cannot grant more than it holds', () => {
  let test: TestService;
  let secret: string;
  let id: string;

  beforeEach(async () => {
    test = await startTestService();
    const made = await createPrincipal(test.keys, { name: 'Maker', permissions: MAKER });
    secret = made.secret;
    ({ id } = made.principal.apiKey);
  });
  afterEach(() => test.stop());

  const create = (input: object) =>
    query(
      test.url,
      secret,
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }',
      { input },
    );
  const update = (input: object) =>
    query(test.url, secret, 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }', {
      input,
    });
  const all = async () => (await test.keys.list({}, OPERATOR)).keys;

  /** A key's grants, the permissions that the error reports missing (the first of many), and their number. */
  const escalations: [grants: object, missing: string[], count: number][] = [
    [
      { roles: ['GUEST'] },
      ['ME:READ_OWN', 'ONLINE:READ_ANY', 'ONLINE:READ_OWN', 'WELCOME:READ_ANY', 'WELCOME:READ_OWN'],
      5,
    ],
    [{ roles: ['ADMIN'] }, ['ACTIVATION_CODE:CREATE_ANY'], 30 * 8 - 2 - 2 - 2],
    [{ permissions: [{ resource: 'DOCKER', actions: ['UPDATE_OWN'] }] }, ['DOCKER:UPDATE_OWN'], 1],
    [{ permissions: [{ resource: 'API_KEY', actions: ['CREATE_ANY', 'DELETE_OWN'] }] }, ['API_KEY:DELETE_OWN'], 1],
    [
      {
        permissions: [
          { resource: 'DOCKER', actions: ['READ_ANY'] },
          { resource: 'DISK', actions: ['READ_OWN'] },
        ],
      },
      ['DISK:READ_OWN'],
      1,
    ],
  ];
  for (const [grants, missing, count] of escalations) {
    it(`not by ${JSON.stringify(grants)}, on creating and on updating, itself included`, async () => {
      const before = await all();
      for (const reply of [await create({ name: 'New', ...grants }), await update({ id, ...grants })]) {
        const [error] = reply.body.errors!;
        assert.equal(error?.extensions['code'], 'FORBIDDEN');
        assert.match(
          error.message,
          new RegExp(`^A key cannot grant more than it holds: this key lacks ${missing[0]}\\b`),
        );
        const told = error.extensions['missing'] as string[];
        assert.deepEqual([told.slice(0, missing.length), told.length], [missing, count]);
      }
      assert.deepEqual(await all(), before);
    });
  }

  it('but may grant all that they hold: with ANY also OWN', async () => {
    const { body } = await create({
      name: 'New',
      permissions: [{ resource: 'DOCKER', actions: ['READ_ANY', 'READ_OWN'] }],
    });
    assert.equal(body.errors, undefined);
  });

  it('nor by the grants that stay when a part of a key is updated', async () => {
    const strong = await createPrincipal(test.keys, { name: 'Strong', roles: ['ADMIN'] });
    const reply = await update({
      id: strong.principal.apiKey.id,
      permissions: [{ resource: 'DOCKER', actions: ['READ_ANY'] }],
    });
    assert.deepEqual(
      reply.body.errors?.map(({ extensions }) => extensions['code']),
      ['FORBIDDEN'],
    );
    assert.equal((await update({ id: strong.principal.apiKey.id, description: 'named' })).body.errors, undefined);
  });

  it('nor replaces another key without the permission to delete it', async () => {
    const strong = await createPrincipal(test.keys, { name: 'Strong', roles: ['ADMIN'] });
    const input = { name: 'Strong', permissions: [{ resource: 'DOCKER', actions: ['READ_ANY'] }] };
    const taken = await create(input);
    assert.deepEqual(
      taken.body.errors?.map(({ message, extensions }) => [message, extensions]),
      [
        [
          'An API key named "Strong" already exists. Set overwrite to replace it, or choose another name.',
          { code: 'NAME_TAKEN', reason: 'An API key named "Strong" already exists.', replaceable: true },
        ],
      ],
    );
    const reply = await create({ ...input, overwrite: true });
    assert.deepEqual(
      reply.body.errors?.map(({ extensions }) => extensions),
      [{ code: 'FORBIDDEN', missing: ['API_KEY:DELETE_ANY'] }],
    );
    assert.equal((await query(test.url, strong.secret, '{ online }')).status, 200);
  });

  it('and where it may, the old secret is refused at once, and the keys it had created are deleted with it', async () => {
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const old = await createPrincipal(test.keys, { name: 'Old', permissions: MAKER });
    const child = await createPrincipal(test.keys, { name: 'Child', permissions: ['DOCKER:READ_ANY'] }, old.principal);
    const document =
      'mutation { createApiKey(input: { name: "Old", roles: [GUEST], overwrite: true }) { key apiKey { id createdBy } } }';
    const { body } = await query(test.url, admin.secret, document);
    const made = body.data!['createApiKey'] as { key: string; apiKey: { id: string; createdBy: string } };
    assert.notEqual(made.apiKey.id, old.principal.apiKey.id);
    assert.equal(made.apiKey.createdBy, admin.principal.apiKey.id);
    const statuses = [old.secret, child.secret, made.key].map(
      async (key) => (await query(test.url, key, '{ online }')).status,
    );
    assert.deepEqual(await Promise.all(statuses), [401, 401, 200]);
  });

  it('and reading all keys shows no secret', async () => {
    const reader = await createPrincipal(test.keys, {
      name: 'Reader',
      permissions: ['API_KEY:READ_ANY', 'ME:READ_OWN'],
    });
    const fields =
      'id name description roles permissions { resource actions } effectivePermissions { resource actions } prefix createdAt createdBy';
    const document = `{ me { ${fields} } apiKeys { edges { node { ${fields} } cursor } } apiKey(name: "Maker") { ${fields} } }`;
    const { body } = await query(test.url, reader.secret, document);
    assert.equal(body.errors, undefined);
    const text = JSON.stringify(body);
    assert.ok(text.includes(`svc_${secret.slice(4, 16)}_…`));
    for (const hidden of [secret, reader.secret]) assert.ok(!text.includes(hidden.slice(17, 30)));
    assert.doesNotMatch(text, /sha256|digest|[0-9a-f]{64}/);
    const probe = await query(test.url, reader.secret, '{ apiKeys { edges { node { key secret digest } } } }');
    assert.equal(probe.body.data, undefined);
  });
});
