import assert from 'node:assert/strict';
import { createCatalog, type Permission, type Role } from '../../../src/keys/permissions/catalog.ts';
import { decideAccess, readPermission } from '../../../src/keys/authorization/explain.ts';
import { suggestGrants, USED_GRANTS } from '../../../src/features/usage/suggest.ts';
import { OPERATOR, type Principal, uses } from '../../../src/keys/authorization/principal.ts';
import { isKeysError, KeysError } from '../../../src/keys/basics/errors.ts';
import type { ApiKey } from '../../../src/keys/key/api-key.ts';
import type { UsedGrant } from '../../../src/keys/key/use.ts';
import { splitPermission } from '../../../src/keys/permissions/permission-set.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { Random } from '../../support/random.ts';

const catalog = createCatalog({ resources: ['DISK_POOL'], roles: { OPERATIONS: ['DISK_POOL:UPDATE_ANY'] } });

interface Grants {
  readonly roles: readonly Role[];
  readonly permissions: readonly Permission[];
}

/** The suggestion for a key that the operator created. */
function suggestedTo(held: Grants, used: readonly UsedGrant[]) {
  const key = { ...held, id: 'one', createdBy: null } as unknown as ApiKey;
  const {
    tools: _tools,
    routes: _routes,
    ...grants
  } = suggestGrants({ keys: [key], isComplete: true }, new Map(used.map((grant) => [grant, 0])), catalog);
  return grants;
}

describe('the suggestion for a key', () => {
  it('is what it has used, without included grants', () => {
    const key = { roles: [], permissions: ['DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY', 'VMS:READ_OWN'] as const };
    const suggest = (...used: `${string}:READ_ANY`[]) => suggestedTo(key, used);
    assert.deepEqual(suggest('DOCKER:READ_OWN' as never, 'DOCKER:READ_ANY'), {
      roles: [],
      permissions: ['DOCKER:READ_ANY'],
      unused: ['DOCKER:UPDATE_ANY', 'DOCKER:UPDATE_OWN', 'VMS:READ_OWN'],
    });
    assert.deepEqual(suggest('DOCKER:READ_OWN' as never).permissions, ['DOCKER:READ_OWN']);
    assert.deepEqual(suggest(), {
      roles: [],
      permissions: [],
      unused: ['DOCKER:READ_ANY', 'DOCKER:READ_OWN', 'DOCKER:UPDATE_ANY', 'DOCKER:UPDATE_OWN', 'VMS:READ_OWN'],
    });
  });

  it('is never more than it has', () => {
    const { permissions } = suggestedTo({ roles: ['GUEST'], permissions: [] }, ['ME:READ_OWN', 'DOCKER:READ_ANY']);
    assert.deepEqual(permissions, ['ME:READ_OWN']);
  });

  it('replaces a role', () => {
    const { permissions, unused } = suggestedTo({ roles: ['ADMIN'], permissions: [] }, [
      'DISK_POOL:READ_ANY',
      'ARRAY:DELETE_OWN',
    ]);
    assert.deepEqual(permissions, ['ARRAY:DELETE_OWN', 'DISK_POOL:READ_ANY']);
    assert.equal(unused.length, 31 * 8 - 3);
  });

  it('has the roles that it granted, without included ones, and the permissions that it used beside them', () => {
    const suggest = (roles: Role[], ...used: UsedGrant[]) => {
      const { roles: needed, permissions } = suggestedTo({ roles, permissions: [] }, used);
      return [...needed, ...permissions];
    };
    const used = ['role:GUEST', 'role:VIEWER', 'API_KEY:CREATE_OWN', 'DOCKER:READ_OWN'] as const;
    assert.deepEqual(suggest(['ADMIN'], ...used), ['VIEWER', 'API_KEY:CREATE_OWN']);
    assert.deepEqual(suggest(['ADMIN'], 'role:OPERATIONS', 'DISK_POOL:READ_ANY'), ['OPERATIONS', 'DISK_POOL:READ_ANY']);
    assert.deepEqual(suggest(['VIEWER'], 'role:ADMIN', 'role:GONE', 'role:CONNECT', 'ME:READ_OWN'), ['ME:READ_OWN']);
    assert.deepEqual(suggest(['ADMIN'], 'role:ADMIN', 'role:GONE', ...used), ['ADMIN']);
  });
});

const SEED = 20_261_123;

describeOnEach('a key that is narrowed to the suggestion', (dialect) => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ resources: ['DISK_POOL'], roles: { OPERATIONS: ['DISK_POOL:UPDATE_ANY'] } });
  });
  afterEach(() => test.store.close());

  const random = new Random(SEED);
  const roles = ['ADMIN', 'CONNECT', 'VIEWER', 'GUEST', 'OPERATIONS'];
  const permissions: Permission[] = [
    'DOCKER:READ_ANY',
    'DOCKER:READ_OWN',
    'ME:READ_OWN',
    'CLOUD:UPDATE_ANY',
    'DISK_POOL:UPDATE_OWN',
  ];
  const grants = (): Grants => {
    const chosen = { roles: random.chance(0.6) ? random.some(roles, 2) : [], permissions: random.some(permissions, 3) };
    return { roles: [...new Set(chosen.roles)], permissions: [...new Set(chosen.permissions)] };
  };
  let names = 0;
  const admitted = async (secret: string): Promise<Principal> => {
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    return result.principal;
  };
  const isDone = async (work: () => Promise<unknown> | boolean): Promise<boolean> => {
    try {
      return (await work()) !== false;
    } catch (error) {
      if (!isKeysError(error) || error.code !== 'FORBIDDEN') throw error;
      return false;
    }
  };
  /** Actions that can be repeated. */
  const deeds: (() => () => Promise<unknown> | boolean)[] = [
    () => {
      const given = grants();
      return () => test.keys.create({ name: `Child ${(names += 1)}`, ...given }, current!);
    },
    () => {
      const [first, then] = [grants(), grants()];
      // The child is created even if the key cannot change it.
      let mayChange: boolean | undefined;
      return async () => {
        const { apiKey: child } = await test.keys.create({ name: `Child ${(names += 1)}`, ...first }, current!);
        if (mayChange === false) return;
        const isChanged = await isDone(() => test.keys.update(child.id, then, current!));
        mayChange ??= isChanged;
        if (isChanged !== mayChange) throw new KeysError('FORBIDDEN', 'It was changed before.');
      };
    },
    () => {
      const permission = random.pick(permissions);
      return () => uses(current!, ...splitPermission(permission));
    },
  ];
  let current: Principal | undefined;

  it('still does all that it did, and needs each of its grants for that', async () => {
    let granting = 0;
    for (let world = 0; world < (dialect === 'sqlite' ? 20 : 8); world += 1) {
      const held = grants();
      const { principal, secret } = await createPrincipal(test.keys, {
        name: `Parent ${(names += 1)}`,
        roles: held.roles,
        permissions: [...held.permissions, 'API_KEY:CREATE_OWN', 'API_KEY:UPDATE_OWN'],
      });
      current = await admitted(secret);
      const done: (() => Promise<unknown> | boolean)[] = [];
      for (let step = 0; step < 6; step += 1) {
        const deed = random.pick(deeds)();
        if (await isDone(deed)) done.push(deed);
      }
      const { id } = principal.apiKey;
      const narrowTo = async (to: Grants) => {
        await test.keys.update(id, { roles: to.roles, permissions: to.permissions }, OPERATOR);
        current = await admitted(secret);
      };
      const redone = async () => {
        for (const deed of done) if (!(await isDone(deed))) return false;
        return true;
      };
      await test.keys.finishActivity();
      const chain = (await test.keys.chainsOf([(await test.keys.findById(id, OPERATOR))!]))[0]!;
      const used = (await test.keys.port(USED_GRANTS).of([id])).get(id)!;
      const wanted = suggestGrants(chain, used, test.keys.catalog);
      if (wanted.roles.length + wanted.permissions.length === 0) continue;
      granting += wanted.roles.length;
      await narrowTo(wanted);
      assert.ok(await redone(), JSON.stringify({ held, wanted }));
      for (const role of wanted.roles) {
        const others = wanted.roles.filter((one) => one !== role);
        await narrowTo({
          roles: others,
          permissions: [...wanted.permissions, ...test.keys.catalog.permissionsOf(role)],
        });
        assert.equal(await redone(), false, `${role} is not needed: ${JSON.stringify({ held, wanted })}`);
      }
      for (const permission of wanted.permissions.filter((one) => !one.startsWith('API_KEY:'))) {
        const others = wanted.permissions.filter((one) => one !== permission);
        if (wanted.roles.length + others.length === 0) continue;
        await narrowTo({ roles: wanted.roles, permissions: others });
        assert.equal(await redone(), false, `${permission} is not needed: ${JSON.stringify({ held, wanted })}`);
      }
    }
    assert.ok(granting > 2, `${granting} roles were suggested`);
  });
});

describe('why a key may do something', () => {
  const key = storedKey('key', {
    roles: ['GUEST', 'VIEWER'],
    permissions: ['DOCKER:UPDATE_ANY', 'ME:READ_OWN'],
  });
  const why = (text: string) =>
    decideAccess({ keys: [key], isComplete: true }, readPermission(text, catalog), catalog, 0).grantedBy;

  it('is explained by each grant that allows it', () => {
    assert.deepEqual(why('docker:update_own'), ['DOCKER:UPDATE_ANY']);
    assert.deepEqual(why('ME:READ_OWN'), ['GUEST', 'VIEWER', 'ME:READ_OWN']);
    assert.deepEqual(why('DISK_POOL:READ_ANY'), ['VIEWER']);
    assert.deepEqual(why('DISK:UPDATE_ANY'), []);
  });

  it('cannot be explained for an unknown permission', () => {
    assert.throws(() => why('DOKCER:READ_ANY'), /DOCKER/);
  });
});
