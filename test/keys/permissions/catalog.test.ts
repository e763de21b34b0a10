import assert from 'node:assert/strict';
import { FEATURES } from '../../../src/features/index.ts';
import { type Catalog, createCatalog, type Permission } from '../../../src/keys/permissions/catalog.ts';
import { unknownGrantsOf } from '../../../src/keys/permissions/parse-grants.ts';
import { PermissionSet } from '../../../src/keys/permissions/permission-set.ts';

const RESOURCES =
  `ACTIVATION_CODE, API_KEY, ARRAY, CLOUD, CONFIG, CONNECT, CONNECT__REMOTE_ACCESS, CUSTOMIZATIONS, DASHBOARD, DISK,
  DISPLAY, DOCKER, FLASH, INFO, LOGS, ME, NETWORK, NOTIFICATIONS, ONLINE, OS, OWNER, PERMISSION, REGISTRATION, SERVERS, SERVICES,
  SHARE, VARS, VMS, WELCOME`.split(/,\s+/);
const ACTIONS = 'CREATE_ANY, CREATE_OWN, READ_ANY, READ_OWN, UPDATE_ANY, UPDATE_OWN, DELETE_ANY, DELETE_OWN'.split(
  ', ',
);
const OF_FEATURES = FEATURES.flatMap(({ resources = [] }) => resources).map((each) =>
  typeof each === 'string' ? each : each.name,
);
const GUEST = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];

const sorted = (grants: Iterable<string>) => [...new Set(grants)].toSorted();

describe('the catalog', () => {
  let catalog: Catalog;
  beforeEach(() => {
    catalog = createCatalog();
  });

  it('has the 29 resources, those of features, the 8 actions and the 4 roles', () => {
    assert.equal(RESOURCES.length, 29);
    assert.deepEqual(catalog.resources, [...RESOURCES, ...OF_FEATURES]);
    assert.deepEqual(catalog.actions, ACTIONS);
    assert.deepEqual(catalog.roles, ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST']);
  });

  it('lets ADMIN do every action on every resource', () => {
    const all = catalog.resources.flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}`));
    assert.deepEqual(sorted(catalog.permissionsOf('ADMIN')), sorted(all));
  });

  it('lets CONNECT read and update the connection features, and do what GUEST may', () => {
    const own = ['CLOUD', 'CONNECT', 'CONNECT__REMOTE_ACCESS'].flatMap((resource) => [
      `${resource}:READ_ANY`,
      `${resource}:UPDATE_ANY`,
    ]);
    assert.deepEqual(sorted(catalog.permissionsOf('CONNECT')), sorted([...own, ...GUEST]));
  });

  it('lets VIEWER read all but what holds credentials', () => {
    const readable = RESOURCES.filter((resource) => resource !== 'API_KEY' && resource !== 'ACTIVATION_CODE');
    assert.deepEqual(
      sorted(catalog.permissionsOf('VIEWER')),
      sorted([...readable.map((resource) => `${resource}:READ_ANY`), ...GUEST]),
    );
  });

  it('lets GUEST read itself, online and welcome', () => {
    assert.deepEqual(sorted(catalog.permissionsOf('GUEST')), sorted(GUEST));
  });

  it('makes each role a part of itself and of the roles that include it', () => {
    assert.deepEqual(
      catalog.roles.map((role) => catalog.roles.filter((other) => catalog.includes(role, other))),
      [['ADMIN', 'CONNECT', 'VIEWER', 'GUEST'], ['CONNECT', 'GUEST'], ['VIEWER', 'GUEST'], ['GUEST']],
    );
  });

  it('lets VIEWER read no resource of the host that holds credentials', () => {
    const host = createCatalog({
      resources: ['WIKI', { name: 'VAULT', credentials: true }, { name: 'PRINTER', credentials: false }],
    });
    assert.deepEqual(host.resources.slice(RESOURCES.length), [...OF_FEATURES, 'WIKI', 'VAULT', 'PRINTER']);
    const may = (role: 'ADMIN' | 'VIEWER') =>
      ['WIKI', 'VAULT', 'PRINTER'].filter((name) => host.permissionsOf(role).includes(`${name}:READ_ANY`));
    assert.deepEqual(
      [may('ADMIN'), may('VIEWER')],
      [
        ['WIKI', 'VAULT', 'PRINTER'],
        ['WIKI', 'PRINTER'],
      ],
    );
  });

  it("holds the host's resources too, each once, for ADMIN and VIEWER", () => {
    const host = createCatalog({ resources: ['PRINTER', 'DOCKER', 'PRINTER'] });
    assert.deepEqual(host.resources, [...RESOURCES, ...OF_FEATURES, 'PRINTER']);
    assert.ok(host.permissionsOf('ADMIN').includes('PRINTER:DELETE_ANY'));
    assert.ok(host.permissionsOf('VIEWER').includes('PRINTER:READ_ANY'));
    assert.ok(!host.permissionsOf('VIEWER').includes('PRINTER:UPDATE_ANY'));
  });

  it('holds custom roles, which allow what they list, and which only ADMIN includes', () => {
    const own = createCatalog({
      resources: ['WIKI'],
      roles: { EDITOR: ['WIKI:UPDATE_ANY'], READER: ['WIKI:READ_OWN'] },
    });
    assert.deepEqual(own.roles, ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST', 'EDITOR', 'READER']);
    assert.deepEqual(own.permissionsOf('EDITOR'), ['WIKI:UPDATE_ANY']);
    const including = own.roles.filter((role) => own.includes(role, 'EDITOR'));
    assert.deepEqual(including, ['ADMIN', 'EDITOR']);
    assert.equal(own.meaningOf('EDITOR'), 'Allows WIKI:UPDATE_ANY.');
  });

  it('describes a role of many permissions by the first five', () => {
    const permissions = ACTIONS.map((action) => `DOCKER:${action}` as Permission);
    const own = createCatalog({ roles: { DOCKERS: permissions } });
    const named = permissions.slice(0, 5).join(', ');
    assert.equal(own.meaningOf('DOCKERS'), `Allows ${named} and 3 more.`);
  });

  it('knows nothing of a grant that is not declared, which allows nothing', () => {
    for (const role of ['EDITOR', 'constructor', '__proto__']) {
      assert.deepEqual([catalog.knows(role), catalog.permissionsOf(role)], [false, []]);
      assert.ok(catalog.includes('ADMIN', role) && !catalog.includes('VIEWER', role));
    }
    const permissions = ['WIKI:READ_ANY', 'DOCKER:FLY', 'DOCKER:READ_OWN'] as Permission[];
    assert.deepEqual(
      permissions.map((permission) => catalog.knows(permission)),
      [false, false, true],
    );
    const granted = { roles: ['EDITOR'], permissions };
    assert.deepEqual(PermissionSet.of(catalog, granted).permissions(), ['DOCKER:READ_OWN']);
    assert.deepEqual(unknownGrantsOf(granted, catalog), ['EDITOR', 'WIKI:READ_ANY', 'DOCKER:FLY']);
  });

  const wrong: [Record<string, Permission[]>, RegExp][] = [
    [{ VIEWER: ['ME:READ_OWN'] }, /"VIEWER" is a built-in role/],
    [{ editor: ['ME:READ_OWN'] }, /"editor" is not a role name/],
    [{ EDITOR: ['WIKI:READ_ANY'] }, /"WIKI:READ_ANY" is not a permission/],
  ];
  for (const [roles, message] of wrong) {
    it(`refuses the role ${JSON.stringify(roles)}`, () => {
      assert.throws(() => createCatalog({ roles }), message);
    });
  }

  for (const name of ['printer', 'PRINT-ER', '', '1ST', 'A:B', 'A'.repeat(65)]) {
    it(`refuses ${JSON.stringify(name)} as a host's resource`, () => {
      assert.throws(() => createCatalog({ resources: [name] }), /is not a resource name/);
    });
  }
});
