import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const KEY =
  'id name description roles permissions { resource actions } effectivePermissions { resource actions } prefix createdAt createdBy';
const CREATE = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { ${KEY} } } }`;
const UPDATE = `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { ${KEY} } }`;

interface Created {
  key: string;
  apiKey: Record<string, unknown> & { id: string };
}

describeOnEach('keys over GraphQL', () => {
  let test: TestService;
  let secret: string;
  let id: string;

  before(async () => {
    test = await startTestService({ resources: ['DISK_POOL'] });
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    secret = admin.secret;
    ({ id } = admin.principal.apiKey);
  });
  after(() => test.stop());

  async function ask<Data>(document: string, variables?: Record<string, unknown>, by = secret): Promise<Data> {
    const { body } = await query(test.url, by, document, variables);
    assert.deepEqual(body.errors, undefined);
    return body.data as Data;
  }
  const codes = async (document: string, variables?: Record<string, unknown>) =>
    (await query(test.url, secret, document, variables)).body.errors?.map(({ message, extensions }) => [
      extensions['code'],
      message,
    ]);

  it('have metadata: any JSON object, in a document or in variables', async () => {
    const create = (metadata: string) =>
      `mutation ${metadata.includes('$') ? '($metadata: JsonObject)' : ''} { createApiKey(input: { name: "Acme", roles: [GUEST], overwrite: true, metadata: ${metadata} }) {
        apiKey { id metadata } } }`;
    const metadata = { plan: 'pro', list: [1, { deep: null }], on: true };
    for (const [text, variables] of [
      ['{ plan: "pro", list: [1, { deep: null }], on: true }', {}],
      ['$metadata', { metadata }],
      ['{ plan: "pro", list: $metadata, on: true }', { metadata: metadata.list }],
    ] as const) {
      const { createApiKey } = await ask<{ createApiKey: Created }>(create(text), variables);
      assert.deepEqual(createApiKey.apiKey['metadata'], metadata);
    }
    for (const wrong of ['"text"', '[1]', '3'])
      assert.deepEqual(await codes(create(wrong)), [
        ['INPUT_INVALID', 'The metadata must be a JSON object, such as {"plan": "pro"}.'],
      ]);
  });

  it('are created, accepted at once, and show everything but the secret', async () => {
    const permissions = [{ resource: 'DISK_POOL', actions: ['UPDATE_ANY', 'READ_OWN'] }];
    const input = {
      name: '  Nightly  Backup ',
      description: ' copies \u00e9 ',
      roles: ['GUEST', 'GUEST'],
      permissions: [...permissions, ...permissions],
    };
    const { createApiKey } = await ask<{ createApiKey: Created }>(CREATE, { input });
    const { key, apiKey } = createApiKey;
    assert.match(key, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    assert.match(apiKey.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.deepEqual(apiKey, {
      id: apiKey.id,
      name: 'Nightly  Backup',
      description: 'copies \u00e9',
      roles: ['GUEST'],
      permissions,
      effectivePermissions: [
        { resource: 'ME', actions: ['READ_OWN'] },
        { resource: 'ONLINE', actions: ['READ_ANY', 'READ_OWN'] },
        { resource: 'WELCOME', actions: ['READ_ANY', 'READ_OWN'] },
        { resource: 'DISK_POOL', actions: ['READ_OWN', 'UPDATE_ANY', 'UPDATE_OWN'] },
      ],
      prefix: `svc_${key.slice(4, 16)}_…`,
      createdAt: '2030-01-01T00:00:00.000Z',
      createdBy: id,
    });
    assert.deepEqual(await ask(`{ me { ${KEY} } }`, {}, key), { me: apiKey });
    assert.deepEqual(await ask(`query ($id: ID) { apiKey(id: $id) { ${KEY} } }`, { id: apiKey.id }), { apiKey });
  });

  it('are updated in the given fields; null only removes the description', async () => {
    const { createApiKey } = await ask<{ createApiKey: Created }>(CREATE, {
      input: { name: 'Before', description: 'old', roles: ['GUEST'] },
    });
    const { apiKey } = createApiKey;
    const update = async (change: object) =>
      (await ask<{ updateApiKey: object }>(UPDATE, { input: { id: apiKey.id, ...change } })).updateApiKey;
    assert.deepEqual(await update({}), apiKey);
    assert.deepEqual(await update({ name: 'After' }), { ...apiKey, name: 'After' });
    assert.deepEqual(await update({ name: 'Before', description: null }), { ...apiKey, description: null });
    const changed = await update({ roles: [], permissions: [{ resource: 'ME', actions: ['READ_OWN'] }] });
    const permissions = [{ resource: 'ME', actions: ['READ_OWN'] }];
    assert.deepEqual(changed, {
      ...apiKey,
      description: null,
      roles: [],
      permissions,
      effectivePermissions: permissions,
    });
    assert.deepEqual((await query(test.url, createApiKey.key, '{ online }')).body.data, { online: null });
  });

  it('with invalid values are refused with a code and all issues, and nothing is created', async () => {
    const rows: [document: string, input: object, code: string, message: RegExp][] = [
      [CREATE, { name: 'a-b', roles: ['GUEST'] }, 'NAME_INVALID', /may only contain letters, digits and spaces.*"-"/],
      [CREATE, { name: ' ', roles: ['GUEST'] }, 'NAME_INVALID', /./],
      [
        CREATE,
        { name: 'a-b', description: 'x'.repeat(1001) },
        'NAME_INVALID',
        /letters[^]*1001 characters[^]*at least one role or permission/,
      ],
      [CREATE, { name: 'New', description: 'a\nb', roles: ['GUEST'] }, 'DESCRIPTION_INVALID', /control characters/],
      [CREATE, { name: 'New' }, 'NO_GRANTS', /at least one role or permission/],
      [CREATE, { name: 'New', permissions: [{ resource: 'ME', actions: [] }] }, 'NO_GRANTS', /./],
      [CREATE, { name: 'Admin', roles: ['GUEST'] }, 'NAME_TAKEN', /"Admin" already exists/],
      [CREATE, { name: 'New', roles: ['ROOT'] }, 'GRAPHQL_VALIDATION_FAILED', /"ROOT" does not exist in "Role" enum/],
      [
        CREATE,
        { name: 'New', roles: ['GUEST'], createdBy: id },
        'GRAPHQL_VALIDATION_FAILED',
        /"createdBy" is not defined/,
      ],
      [UPDATE, { id: 'none', name: 'New' }, 'NOT_FOUND', /There is no API key with the id "none"/],
      [UPDATE, { id, roles: [] }, 'NO_GRANTS', /at least one role or permission/],
    ];
    for (const [document, input, code, message] of rows) {
      const errors = await codes(document, { input });
      assert.deepEqual(
        errors?.map(([found]) => found),
        [code],
        JSON.stringify(input),
      );
      assert.match(String(errors?.[0]?.[1]), message);
    }
    assert.deepEqual(await ask('{ apiKeys(search: "New") { edges { cursor } } }'), { apiKeys: { edges: [] } });
  });

  it('cannot be renamed to the name of another key, in another Unicode form either', async () => {
    await ask(CREATE, { input: { name: 'Caf\u00e9', roles: ['GUEST'] } });
    for (const name of ['Caf\u00e9', ' Cafe\u0301 ']) {
      const errors = await codes(UPDATE, { input: { id, name } });
      assert.equal(errors?.[0]?.[0], 'NAME_TAKEN');
      assert.match(String(errors[0][1]), /^An API key named "Caf\u00e9" already exists\./);
    }
    assert.deepEqual(await ask('{ me { name } }'), { me: { name: 'Admin' } });
  });

  it('are looked up by id or by name, not by both or neither', async () => {
    const refusal = [['INPUT_INVALID', 'Pass either the id or the name of the key.']];
    assert.deepEqual(await codes('{ apiKey { id } }'), refusal);
    assert.deepEqual(await codes('{ apiKey(id: "a", name: "b") { id } }'), refusal);
    assert.deepEqual(await ask('{ apiKey(name: "  Admin ") { name } }'), { apiKey: { name: 'Admin' } });
  });

  it('are deleted once where they are named twice, and at most 500 at once', async () => {
    const { createApiKey } = await ask<{ createApiKey: Created }>(CREATE, {
      input: { name: 'Twice', roles: ['GUEST'] },
    });
    const gone = createApiKey.apiKey.id;
    const remove = 'mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted keys { id name } } }';
    assert.deepEqual(await ask(remove, { ids: [gone, gone] }), {
      deleteApiKeys: { deleted: 1, keys: [{ id: gone, name: 'Twice' }] },
    });
    assert.deepEqual(await ask(remove, { ids: [gone] }), { deleteApiKeys: { deleted: 0, keys: [] } });
    assert.deepEqual(await codes(remove, { ids: Array.from({ length: 501 }, () => 'x') }), [
      ['INPUT_INVALID', 'There are 501 ids; at most 500 are allowed.'],
    ]);
  });
});

describeOnEach('what can be granted', () => {
  let test: TestService;
  let secret: string;

  before(async () => {
    test = await startTestService({ resources: ['DISK_POOL'] });
    ({ secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] }));
  });
  after(() => test.stop());

  it('is shown before it is granted: roles and permissions together, ANY with its OWN', async () => {
    const preview = async (args: string) =>
      (await query(test.url, secret, `{ previewPermissions${args} { resource actions } }`)).body.data?.[
        'previewPermissions'
      ];
    assert.deepEqual(
      await preview(
        '(roles: [GUEST], permissions: [{ resource: ME, actions: [UPDATE_ANY] }, { resource: DISK_POOL, actions: [READ_OWN] }])',
      ),
      [
        { resource: 'ME', actions: ['READ_OWN', 'UPDATE_ANY', 'UPDATE_OWN'] },
        { resource: 'ONLINE', actions: ['READ_ANY', 'READ_OWN'] },
        { resource: 'WELCOME', actions: ['READ_ANY', 'READ_OWN'] },
        { resource: 'DISK_POOL', actions: ['READ_OWN'] },
      ],
    );
    for (const args of [
      '',
      '(roles: [])',
      '(roles: null, permissions: null)',
      '(permissions: [{ resource: ME, actions: [] }])',
    ]) {
      assert.deepEqual(await preview(args), [], args);
    }
    const admin = (await preview('(roles: [ADMIN, VIEWER])')) as { actions: string[] }[];
    assert.deepEqual([admin.length, new Set(admin.map(({ actions }) => actions.length))], [31, new Set([8])]);
  });

  it('is listed: roles with what they grant, resources and actions', async () => {
    const document =
      '{ permissions { roles { role description permissions { resource actions } } resources actions } }';
    const { roles, resources, actions } = (await query(test.url, secret, document)).body.data!['permissions'] as {
      roles: { role: string; description: string; permissions: { resource: string; actions: string[] }[] }[];
      resources: string[];
      actions: string[];
    };
    assert.deepEqual([resources.length, resources[0], actions.length], [31, 'DISK_POOL', 8]);
    assert.deepEqual(
      roles.map(({ role, permissions }) => [role, permissions.length]),
      [
        ['ADMIN', 31],
        ['CONNECT', 6],
        ['VIEWER', 28],
        ['GUEST', 3],
      ],
    );
    assert.deepEqual(roles[3]!.permissions, [
      { resource: 'ME', actions: ['READ_OWN'] },
      { resource: 'ONLINE', actions: ['READ_ANY'] },
      { resource: 'WELCOME', actions: ['READ_ANY'] },
    ]);
    for (const { description } of roles) assert.match(description, /\.$/);
    assert.ok(roles[2]!.permissions.every(({ resource }) => resource !== 'API_KEY' && resource !== 'ACTIVATION_CODE'));
  });

  it('stands beside facts about the program: its name, version and uptime', async () => {
    const before = Date.now();
    const { body } = await query(test.url, secret, '{ info { name version startedAt uptime runtime platform } }');
    const after = Date.now();
    const info = body.data!['info'] as Record<string, string> & { uptime: number };
    assert.match(info['version']!, /^\d+\.\d+\.\d+/);
    assert.deepEqual(
      [info['name'], info['runtime'], info['platform']],
      ['svc-api', `Node.js ${process.version}`, `${process.platform} ${process.arch}`],
    );
    const asked = Math.round(Date.parse(info['startedAt']!) + info.uptime * 1000);
    assert.ok(asked >= before && asked <= after, JSON.stringify(info));
    assert.match(info['startedAt']!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});
