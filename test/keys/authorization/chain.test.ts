import assert from 'node:assert/strict';
import {
  type Chain,
  chainAccess,
  chainExpiry,
  chainHolds,
  chainStatus,
  limitsOf,
} from '../../../src/keys/authorization/chain.ts';
import { decideAccess, describeGrant } from '../../../src/keys/authorization/explain.ts';
import type { StoredKey } from '../../../src/keys/key/api-key.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { openTestKeys, storedKey } from '../../support/keys.ts';

const catalog = createCatalog();
const NOW = 1000;

/** A chain of keys, each created by the next. */
function chainOf(...fields: Partial<StoredKey>[]): Chain {
  const [first, ...others] = fields.map((field, index) => storedKey(`Key ${index}`, field));
  return { keys: [first!, ...others], isComplete: true };
}

const limits = (...fields: Partial<StoredKey>[]) =>
  limitsOf(chainOf(...fields), catalog, NOW).map(({ ancestor, ...limit }) => ({ ancestor: ancestor.name, ...limit }));

describe('what ancestors take away from a key', () => {
  it('is nothing if they have as much and expire no earlier, whatever the key itself is', () => {
    assert.deepEqual(limits({ disabledAt: 1, expiresAt: 500 }, {}), []);
    assert.deepEqual(limits({ expiresAt: 2000 }, { expiresAt: 2000 }, { expiresAt: 3000 }), []);
    assert.deepEqual(limits({ expiresAt: 2000 }, {}, { expiresAt: 3000 }), []);
  });

  it('is named by the ancestor: its status, an earlier end, or the permissions that it lacks', () => {
    const none = { expiresAt: null, permissions: [], limits: [], allowFrom: null };
    const nothing = { ancestor: 'Key 1', status: 'ACTIVE', ...none };
    assert.deepEqual(limits({}, { disabledAt: 1 }), [{ ...nothing, status: 'DISABLED' }]);
    assert.deepEqual(limits({}, { expiresAt: 2000 }), [{ ...nothing, expiresAt: 2000 }]);
    assert.deepEqual(limits({ expiresAt: 2001 }, { expiresAt: 2000 }), [{ ...nothing, expiresAt: 2000 }]);
    assert.deepEqual(limits({}, { permissions: [] }), [{ ...nothing, permissions: ['ME:READ_OWN'] }]);
  });

  it('is named once, by the nearest one, and an expiry further up only if it is earlier', () => {
    const ends = limits({}, { expiresAt: 3000 }, { expiresAt: 3000 }, {}, { expiresAt: 2000 });
    assert.deepEqual(
      ends.map(({ ancestor, expiresAt }) => [ancestor, expiresAt]),
      [
        ['Key 1', 3000],
        ['Key 4', 2000],
      ],
    );
    assert.deepEqual(
      limits({}, { permissions: [] }, { permissions: [] }).map(({ ancestor }) => ancestor),
      ['Key 1'],
    );
  });
});

describe('a chain of keys', () => {
  it('that is incomplete holds no role and no permission, and is disabled', () => {
    const { keys } = chainOf({ roles: ['ADMIN'] });
    const lost = { keys, isComplete: false };
    assert.ok(!chainHolds(lost, 'GUEST', catalog));
    assert.deepEqual(chainAccess(lost, catalog).permissions(), []);
    assert.equal(chainStatus(lost, NOW), 'DISABLED');
  });

  it('holds the roles that all its keys hold, and ends with the first of them', () => {
    const chain = chainOf({ roles: ['CONNECT'], expiresAt: 3000 }, { roles: ['ADMIN'], expiresAt: 2000 }, {});
    const rolesOf = (held: Chain) => catalog.roles.filter((role) => chainHolds(held, role, catalog));
    assert.deepEqual(rolesOf({ ...chain, keys: [chain.keys[0], chain.keys[1]!] }), ['CONNECT', 'GUEST']);
    assert.deepEqual(rolesOf(chain), []);
    assert.deepEqual([chainExpiry(chain), chainExpiry(chainOf({}, {}))], [2000, null]);
  });

  it('of keys without a creator is not asked of the store', async () => {
    let asked = 0;
    const test = await openTestKeys({
      repository: (repository) => ({
        ...repository,
        findAncestors: (ids) => {
          asked += 1;
          return repository.findAncestors(ids);
        },
      }),
    });
    const key = storedKey('Parent');
    const child = storedKey('Child', { createdBy: key.id });
    await test.store.repository.write((writer) => writer.insert([key, child]));
    assert.deepEqual([(await test.keys.chainsOf([key]))[0]!.keys.length, asked], [1, 0]);
    assert.deepEqual([(await test.keys.chainsOf([key, child]))[1]!.keys.length, asked], [2, 1]);
    await test.store.close();
  });
});

describe('a decision on a permission', () => {
  const decide = (...fields: Partial<StoredKey>[]) => {
    const decision = decideAccess(chainOf(...fields), 'ME:READ_OWN', catalog, NOW);
    return { ...decision, deniedBy: decision.deniedBy?.name ?? null };
  };
  const granted = { allowed: true, grantedBy: ['ME:READ_OWN'], status: 'ACTIVE', deniedBy: null };

  it('is yes where the whole chain is active and has it', () => {
    assert.deepEqual(decide({}), granted);
    assert.deepEqual(decide({}, { expiresAt: 2000 }), granted);
    assert.deepEqual(decide({ permissions: ['ME:READ_OWN', 'DOCKER:READ_ANY'] }, {}), granted);
  });

  it('is no where the key lacks it, or is not active', () => {
    assert.deepEqual(decide({ permissions: ['ME:READ_ANY'], roles: ['GUEST'] }).grantedBy, ['GUEST', 'ME:READ_ANY']);
    assert.deepEqual(decide({ permissions: [] }), { ...granted, allowed: false, grantedBy: [] });
    assert.deepEqual(decide({ disabledAt: 1 }), { ...granted, allowed: false, status: 'DISABLED' });
    assert.deepEqual(decide({ expiresAt: NOW }), { ...granted, allowed: false, status: 'EXPIRED' });
  });

  it('is no where an ancestor lacks it or is not active, and names the nearest such one', () => {
    const denied = { ...granted, allowed: false, deniedBy: 'Key 2' };
    assert.deepEqual(decide({}, { expiresAt: 2000 }, { permissions: [] }, { disabledAt: 1 }), {
      ...denied,
      status: 'DISABLED',
    });
    assert.deepEqual(decide({}, {}, { permissions: [] }), denied);
    assert.deepEqual(decide({}, {}, { expiresAt: NOW }), { ...denied, status: 'EXPIRED' });
  });

  it('names grants in prose', () => {
    assert.deepEqual((['ADMIN', 'DOCKER:READ_ANY'] as const).map(describeGrant), [
      'role ADMIN',
      'permission DOCKER:READ_ANY',
    ]);
  });
});
