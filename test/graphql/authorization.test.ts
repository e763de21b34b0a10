import assert from 'node:assert/strict';
import type { KeysService } from '../../src/keys/service.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

const RESOURCES =
  'ACTIVATION_CODE API_KEY ARRAY CLOUD CONFIG CONNECT CONNECT__REMOTE_ACCESS CUSTOMIZATIONS DASHBOARD DISK DISPLAY DOCKER FLASH INFO LOGS ME NETWORK NOTIFICATIONS ONLINE OS OWNER PERMISSION REGISTRATION SERVERS SERVICES SHARE VARS VMS WELCOME'.split(
    ' ',
  );
const ACTIONS = 'CREATE_ANY CREATE_OWN READ_ANY READ_OWN UPDATE_ANY UPDATE_OWN DELETE_ANY DELETE_OWN'.split(' ');

/** Every root field: a request for it, the permissions that open it, and the one that a refusal names. */
const FIELDS = {
  me: { ask: '{ me { id } }', opens: ['ME:READ_OWN', 'ME:READ_ANY'], names: 'ME:READ_OWN' },
  online: { ask: '{ online }', opens: ['ONLINE:READ_ANY'], names: 'ONLINE:READ_ANY' },
  info: { ask: '{ info { name } }', opens: ['INFO:READ_ANY'], names: 'INFO:READ_ANY' },
  apiKeys: {
    ask: '{ apiKeys(first: 1) { edges { cursor } } }',
    opens: ['API_KEY:READ_ANY', 'API_KEY:READ_OWN'],
    names: 'API_KEY:READ_OWN',
  },
  apiKey: { ask: '{ apiKey(name: "x") { id } }', opens: ['API_KEY:READ_ANY', 'API_KEY:READ_OWN'], names: 'API_KEY:READ_OWN' },
  permissions: { ask: '{ permissions { actions } }', opens: ['PERMISSION:READ_ANY'], names: 'PERMISSION:READ_ANY' },
  previewPermissions: { ask: '{ previewPermissions { resource } }', opens: ['PERMISSION:READ_ANY'], names: 'PERMISSION:READ_ANY' },
  createApiKey: {
    ask: 'mutation { createApiKey(input: { name: "x" }) { key } }',
    opens: ['API_KEY:CREATE_ANY', 'API_KEY:CREATE_OWN'],
    names: 'API_KEY:CREATE_OWN',
    then: 'NO_GRANTS',
  },
  updateApiKey: {
    ask: 'mutation { updateApiKey(input: { id: "x" }) { id } }',
    opens: ['API_KEY:UPDATE_ANY', 'API_KEY:UPDATE_OWN'],
    names: 'API_KEY:UPDATE_OWN',
    then: 'NOT_FOUND',
  },
  deleteApiKeys: {
    ask: 'mutation { deleteApiKeys(ids: []) { deleted } }',
    opens: ['API_KEY:DELETE_ANY', 'API_KEY:DELETE_OWN'],
    names: 'API_KEY:DELETE_OWN',
  },
} as const;
type Field = keyof typeof FIELDS;

/** The root fields that each role may use. */
const ROLES: Record<string, Field[]> = {
  ADMIN: Object.keys(FIELDS) as Field[],
  CONNECT: ['me', 'online'],
  VIEWER: ['me', 'online', 'info', 'permissions', 'previewPermissions'],
  GUEST: ['me', 'online'],
};

describe('every root field', () => {
  let open: TestKeys;
  let server: TestServer;
  before(async () => {
    open = await openTestKeys();
    server = await startServer(open.keys);
  });
  after(async () => {
    await server.stop();
    await open.store.close();
  });

  async function check(grants: Parameters<KeysService['create']>[0], allowed: (field: Field) => boolean): Promise<void> {
    const { secret } = await createPrincipal(open.keys, grants);
    for (const field of Object.keys(FIELDS) as Field[]) {
      const { ask, names, ...more } = FIELDS[field];
      const { body } = await query(server.url, secret, ask);
      const found = (body.errors ?? []).map(({ path, extensions }) => ({ path, ...extensions }));
      const then = 'then' in more ? [{ path: [field], code: more.then }] : [];
      assert.deepEqual(found, allowed(field) ? then : [{ path: [field], code: 'FORBIDDEN', missing: [names] }], `${grants.name}: ${field}`);
      if (!allowed(field)) assert.equal(body.errors![0]!.message, `This key lacks ${names}.`);
    }
  }

  for (const [role, fields] of Object.entries(ROLES)) {
    it(`is open to ${role} where the role says so`, () => check({ name: role, roles: [role] }, (field) => fields.includes(field)));
  }

  for (const resource of RESOURCES) {
    it(`is open to single permissions on ${resource} where it asks for one`, async () => {
      for (const action of ACTIONS) {
        const permission = `${resource}:${action}`;
        const name = permission.replaceAll(/\W|_/g, ' ').replaceAll('  ', ' double ');
        await check({ name, permissions: [permission] }, (field) => (FIELDS[field].opens as readonly string[]).includes(permission));
      }
    });
  }

  it('answers for itself: one that is refused leaves the others their answers', async () => {
    const { secret } = await createPrincipal(open.keys, { name: 'Other fields', roles: ['GUEST'] });
    const { status, body } = await query(
      server.url,
      secret,
      'query { mine: me { name } info { version } online ...More } fragment More on Query { all: apiKeys { edges { cursor } } }',
    );
    assert.equal(status, 200);
    assert.deepEqual(body.data, { mine: { name: 'Other fields' }, info: null, online: true, all: null });
    assert.deepEqual(
      body.errors?.map(({ path, extensions }) => [path, extensions['missing']]),
      [
        [['info'], ['INFO:READ_ANY']],
        [['all'], ['API_KEY:READ_OWN']],
      ],
    );
  });
});
