import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';

// Written from the specification and not imported from src, so that an error there fails the test.
const RESOURCES =
  `ACTIVATION_CODE API_KEY ARRAY CLOUD CONFIG CONNECT CONNECT__REMOTE_ACCESS CUSTOMIZATIONS DASHBOARD DISK DISPLAY DOCKER
  FLASH INFO LOGS ME NETWORK NOTIFICATIONS ONLINE OS OWNER PERMISSION REGISTRATION SERVERS SERVICES SHARE VARS VMS WELCOME`.split(
    /\s+/,
  );
const ACTIONS = 'CREATE_ANY CREATE_OWN READ_ANY READ_OWN UPDATE_ANY UPDATE_OWN DELETE_ANY DELETE_OWN'.split(' ');

/** The permission that each root field needs; X_ANY includes X_OWN. */
const QUERIES = {
  me: 'ME:READ_OWN',
  online: 'ONLINE:READ_ANY',
  info: 'INFO:READ_ANY',
  apiKeys: 'API_KEY:READ_OWN',
  apiKey: 'API_KEY:READ_OWN',
  permissions: 'PERMISSION:READ_ANY',
  previewPermissions: 'PERMISSION:READ_ANY',
  previewApiKey: 'API_KEY:CREATE_OWN',
};
const MUTATIONS = {
  createApiKey: 'API_KEY:CREATE_OWN',
  updateApiKey: 'API_KEY:UPDATE_OWN',
  setApiKeyEnabled: 'API_KEY:UPDATE_OWN',
  activateApiKeyRotation: 'API_KEY:UPDATE_OWN',
  deleteApiKeys: 'API_KEY:DELETE_OWN',
};
const ALL = { ...QUERIES, ...MUTATIONS };

/** The root fields that each role can use. */
const ROLES: Record<string, (keyof typeof ALL)[]> = {
  ADMIN: [
    'me',
    'online',
    'info',
    'apiKeys',
    'apiKey',
    'permissions',
    'previewPermissions',
    'previewApiKey',
    'createApiKey',
    'updateApiKey',
    'setApiKeyEnabled',
    'activateApiKeyRotation',
    'deleteApiKeys',
  ],
  CONNECT: ['me', 'online'],
  VIEWER: ['me', 'online', 'info', 'permissions', 'previewPermissions'],
  GUEST: ['me', 'online'],
};

const QUERY = `query ($id: ID) {
  me { name } online info { name } apiKeys { edges { cursor } } apiKey(id: $id) { id }
  permissions { actions } previewPermissions(roles: [GUEST]) { resource }
  previewApiKey(input: { name: "-", roles: [GUEST] }) { name }
}`;
/** Values that are refused after the permission check, so that nothing changes; only the first succeeds. */
const MUTATION = `mutation {
  deleteApiKeys(ids: []) { deleted } updateApiKey(input: { id: "none" }) { id }
  setApiKeyEnabled(id: "none", enabled: false) { id } activateApiKeyRotation(id: "none") { id }
  createApiKey(input: { name: "-", roles: [GUEST] }) { key }
}`;
const REFUSED_FOR_THEIR_VALUES: Record<string, string> = {
  updateApiKey: 'NOT_FOUND',
  setApiKeyEnabled: 'NOT_FOUND',
  activateApiKeyRotation: 'NOT_FOUND',
  previewApiKey: 'NAME_INVALID',
  createApiKey: 'NAME_INVALID',
};

describeOnEach('a root field', (dialect) => {
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  /** Requests all root fields with a new key, and checks which are refused. */
  async function check(
    grants: { roles?: string[]; permissions?: string[] },
    open: (field: keyof typeof ALL) => boolean,
  ) {
    const name = [...(grants.roles ?? []), ...(grants.permissions ?? [])].join(' ').replaceAll(/[:_]+/g, ' ');
    const { secret, principal } = await createPrincipal(test.keys, { name, ...grants });
    const [queried, mutated] = await Promise.all([
      query(test.url, secret, QUERY, { id: principal.apiKey.id }),
      query(test.url, secret, MUTATION),
    ]);
    checkFields(queried, QUERIES, open, name);
    checkFields(mutated, MUTATIONS, open, name);
  }

  function checkFields(
    { status, body }: GraphQLReply,
    fields: Partial<typeof ALL>,
    open: (field: keyof typeof ALL) => boolean,
    name: string,
  ) {
    assert.equal(status, 200);
    for (const [field, required] of Object.entries(fields) as [keyof typeof ALL, string][]) {
      const errors = body.errors?.filter(({ path }) => path?.[0] === field) ?? [];
      const expected = open(field) ? REFUSED_FOR_THEIR_VALUES[field] : 'FORBIDDEN';
      assert.deepEqual(
        errors.map(({ extensions }) => extensions['code']),
        expected ? [expected] : [],
        `${field} with ${name}`,
      );
      assert.equal(body.data![field] === null, expected !== undefined, `${field} with ${name}`);
      if (expected !== 'FORBIDDEN') continue;
      const [{ message, path, extensions }] = errors as [(typeof errors)[0]];
      assert.deepEqual(
        { message, path, extensions },
        {
          message: `This key lacks ${required}.`,
          path: [field],
          extensions: { code: 'FORBIDDEN', missing: [required] },
        },
      );
    }
  }

  for (const [role, fields] of Object.entries(ROLES)) {
    it(`answers ${role} or is refused, each by itself`, () =>
      check({ roles: [role] }, (field) => fields.includes(field)));
  }

  // Permissions are decided without the database, so one dialect suffices.
  for (const resource of dialect === 'sqlite' ? RESOURCES : ['API_KEY']) {
    it(`answers a key with a single permission on ${resource} only where it asks for just that`, async () => {
      for (const action of ACTIONS) {
        const held = new Set([`${resource}:${action}`, `${resource}:${action.replace('_ANY', '_OWN')}`]);
        await check({ permissions: [`${resource}:${action}`] }, (field) => held.has(ALL[field]));
      }
    });
  }

  it('is open to roles and permissions together', async () => {
    await check({ roles: ['GUEST'], permissions: ['INFO:READ_ANY', 'API_KEY:DELETE_OWN'] }, (field) =>
      ['me', 'online', 'info', 'deleteApiKeys'].includes(field),
    );
  });

  it('is refused under its alias, in a fragment, and as often as it is asked for', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Aliases', roles: ['GUEST'] });
    const { body } = await query(
      test.url,
      secret,
      '{ a: info { name } ...F ... on Query { c: info { name } } d: online } fragment F on Query { b: info { name } }',
    );
    assert.deepEqual(body.data, { a: null, b: null, c: null, d: true });
    assert.deepEqual(
      body.errors?.map(({ path }) => path),
      [['a'], ['b'], ['c']],
    );
  });
});
