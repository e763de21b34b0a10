import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

// Written from the specification and not imported from src, so that an error there fails the test.
const RESOURCES =
  `ACTIVATION_CODE API_KEY ARRAY CLOUD CONFIG CONNECT CONNECT__REMOTE_ACCESS CUSTOMIZATIONS DASHBOARD DISK DISPLAY DOCKER
  FLASH INFO LOGS ME NETWORK NOTIFICATIONS ONLINE OS OWNER PERMISSION REGISTRATION SERVERS SERVICES SHARE VARS VMS WELCOME`.split(
    /\s+/,
  );
const ACTIONS = 'CREATE_ANY CREATE_OWN READ_ANY READ_OWN UPDATE_ANY UPDATE_OWN DELETE_ANY DELETE_OWN'.split(' ');

describeOnEach('a key grants', (dialect) => {
  // Grants are decided without the database, so one dialect suffices.
  const resources = dialect === 'sqlite' ? RESOURCES : ['API_KEY', 'DISK', 'DOCKER'];
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  const names = async () => (await test.keys.list({ first: 500 }, OPERATOR)).keys.map(({ name }) => name);
  const grant = (secret: string, name: string, resource: string, action: string) =>
    query(
      test.url,
      secret,
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { permissions { resource actions } } } }',
      { input: { name, permissions: [{ resource, actions: [action] }] } },
    );
  /** The permissions that a key can grant, tried one by one. Each other one must be named in its refusal. */
  async function grantable(secret: string): Promise<string[]> {
    const granted: string[] = [];
    for (const resource of resources) {
      const tries = ACTIONS.map(async (action) => {
        const permission = `${resource}:${action}`;
        const { body } = await grant(secret, `Try ${permission.replaceAll(/\W|_/g, ' ')}`, resource, action);
        if (!body.errors) {
          granted.push(permission);
          return;
        }
        const missing = action.endsWith('_ANY') ? [permission, permission.replace('_ANY', '_OWN')] : [permission];
        const told = body.errors[0]!.extensions['missing'] as string[];
        assert.deepEqual([body.errors[0]!.extensions['code'], told[0]], ['FORBIDDEN', permission]);
        assert.ok(
          told.every((lacked) => missing.includes(lacked)),
          told.join(' '),
        );
        assert.deepEqual(body.data, { createApiKey: null });
      });
      await Promise.all(tries);
    }
    return granted.toSorted((a, b) => a.localeCompare(b));
  }

  it(`of ${resources.length * ACTIONS.length} permissions nothing but its own one, where that is to create keys`, async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Creator', permissions: ['API_KEY:CREATE_ANY'] });
    assert.deepEqual(await grantable(secret), ['API_KEY:CREATE_ANY', 'API_KEY:CREATE_OWN']);
    assert.deepEqual(new Set(await names()), new Set(['Creator', 'Try API KEY CREATE ANY', 'Try API KEY CREATE OWN']));
    await removeTries();
  });

  it('OWN with ANY, but never ANY with OWN', async () => {
    const { secret } = await createPrincipal(test.keys, {
      name: 'Mixed',
      permissions: ['API_KEY:CREATE_OWN', 'DISK:READ_OWN', 'DOCKER:DELETE_ANY'],
    });
    assert.deepEqual(await grantable(secret), [
      'API_KEY:CREATE_OWN',
      'DISK:READ_OWN',
      'DOCKER:DELETE_ANY',
      'DOCKER:DELETE_OWN',
    ]);
    await removeTries();
  });

  it('no role whose permissions it holds singly, and one that it holds or that its role includes', async () => {
    const create = `mutation ($role: Role!) {
      createApiKey(input: { name: "Roled", roles: [$role], overwrite: true }) { apiKey { roles } }
    }`;
    const rights = ['API_KEY:CREATE_OWN', 'API_KEY:DELETE_OWN'];
    const tryAll = async (secret: string) => {
      const created: string[] = [];
      for (const role of ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST']) {
        const { body } = await query(test.url, secret, create, { role });
        if (body.errors) assert.equal(body.errors[0]!.extensions['code'], 'FORBIDDEN', role);
        else created.push(role);
      }
      return created;
    };
    const all = test.keys.catalog.permissionsOf('ADMIN');
    const single = await createPrincipal(test.keys, { name: 'Single', permissions: all });
    assert.deepEqual(await tryAll(single.secret), []);
    const viewer = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'], permissions: rights });
    assert.deepEqual(await tryAll(viewer.secret), ['VIEWER', 'GUEST']);
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    assert.deepEqual(await tryAll(admin.secret), ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST']);
  });

  async function removeTries(): Promise<void> {
    const { keys } = await test.keys.list({ first: 500, search: 'Try ' }, OPERATOR);
    await test.keys.delete(
      keys.map(({ id }) => id),
      OPERATOR,
    );
  }
});
