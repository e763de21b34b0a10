import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import type { ApiKey } from '../../../src/keys/key/api-key.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { type CatalogAdditions, createCatalog } from '../../../src/keys/permissions/catalog.ts';
import type { PolicyRules } from '../../../src/keys/permissions/policy.ts';
import type { RotatedKey } from '../../../src/keys/service/management.ts';
import type { KeysService } from '../../../src/keys/service/service.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { formatTime } from '../../../src/keys/basics/time.ts';
import { failDelivery } from '../../support/delivery.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

const VIOLATED = { code: 'POLICY_VIOLATED' };

describeOnEach('the policy', () => {
  let test: TestKeys;
  let keys: KeysService;
  /** Applies a policy, like a changed configuration. */
  const demand = (policy: PolicyRules, more: CatalogAdditions = {}) =>
    void (keys = test.keys.withCatalog(createCatalog({ ...more, policy })));
  /** A key from before the policy. */
  const earlier = async (input: NewKey, by: Principal | typeof OPERATOR = OPERATOR): Promise<ApiKey> =>
    (await test.keys.create(input, by)).apiKey;
  const present = async (id: string) => (await keys.findById(id, OPERATOR))!;
  const refused = (change: Promise<unknown>, message: RegExp) =>
    assert.rejects(change, (error: Error & { code: string }) => {
      assert.equal(error.code, 'POLICY_VIOLATED', error.message);
      assert.match(error.message, message);
      return true;
    });
  const inDays = (days: number) => formatTime(test.time.now + days * UNIT_MS.d);

  beforeEach(async () => {
    test = await openTestKeys();
    keys = test.keys;
  });
  afterEach(() => test.store.close());

  describe('of lifetimes', () => {
    const LATE =
      /"Late" would expire at .*\(maxLifetime: 90d\)\. Let it expire 2030-04-01T00:00:00\.000Z at the latest, in/;
    const ENDLESS = /"Endless" would never expire, .*\(requireExpiry: true\)\. Give it an expiry, 2030-04-01T/;
    const BOTH = { maxLifetime: '90d', requireExpiry: true };

    it('allows keys that expire in time, to the millisecond, and no others', async () => {
      demand(BOTH);
      await keys.create({ name: 'Just', roles: ['VIEWER'], expiresIn: '90d' }, OPERATOR);
      await refused(keys.create({ name: 'Late', roles: ['VIEWER'], expiresIn: '7776001s' }, OPERATOR), LATE);
      await refused(keys.create({ name: 'Endless', roles: ['VIEWER'] }, OPERATOR), ENDLESS);
      await refused(keys.create({ name: 'Endless', roles: ['VIEWER'], expiresAt: null }, OPERATOR), ENDLESS);
      await refused(keys.preview({ name: 'Late', roles: ['VIEWER'], expiresIn: '91d' }, OPERATOR), LATE);
      demand({ maxLifetime: '90d' });
      const byLifetime = /"Endless" would never expire, which the policy does not allow \(maxLifetime: 90d\)/;
      await refused(keys.create({ name: 'Endless', roles: ['VIEWER'] }, OPERATOR), byLifetime);
      demand({ requireExpiry: true });
      await keys.create({ name: 'Late', roles: ['VIEWER'], expiresIn: '3000d' }, OPERATOR);
      assert.deepEqual((await keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted(), ['Just', 'Late']);
    });

    it('holds for a key that replaces another, which then stays', async () => {
      const { id } = await earlier({ name: 'Endless', roles: ['VIEWER'] });
      demand(BOTH);
      await refused(keys.create({ name: 'Endless', roles: ['VIEWER'], overwrite: true }, OPERATOR), ENDLESS);
      assert.equal((await present(id)).name, 'Endless');
    });

    it('applies to child keys, also through the expiry of their creator', async () => {
      const input = { name: 'Creator', roles: ['ADMIN'], expiresIn: '120d' };
      const { principal } = await createPrincipal(test.keys, input);
      demand(BOTH);
      await refused(keys.create({ name: 'Late', roles: ['VIEWER'] }, principal), LATE);
      test.time.now += 40 * UNIT_MS.d;
      await keys.create({ name: 'Late', roles: ['VIEWER'] }, principal);
    });

    it('tolerates existing violations: only a changed expiry must satisfy it', async () => {
      const { id } = await earlier({ name: 'Endless', roles: ['VIEWER'] });
      demand(BOTH);
      await keys.update(id, { description: 'Old', roles: ['GUEST'] }, OPERATOR);
      await keys.update(id, { expiresAt: null }, OPERATOR);
      await refused(keys.update(id, { name: 'Late', expiresIn: '91d' }, OPERATOR), LATE);
      await keys.update(id, { expiresIn: '90d' }, OPERATOR);
      await refused(keys.update(id, { expiresAt: null }, OPERATOR), ENDLESS);
      assert.equal(formatTime((await present(id)).expiresAt), inDays(90));
    });

    it('lets every key be disabled, rotated, rolled back and deleted, but not enabled in violation of it', async () => {
      const { id } = await earlier({ name: 'Endless', roles: ['VIEWER'] });
      demand(BOTH);
      await keys.rotate(id, { grace: '1h' }, OPERATOR);
      await keys.rollBackRotation(id, OPERATOR);
      await keys.rotate(id, { grace: '1h' }, OPERATOR);
      await keys.finishRotation(id, OPERATOR);
      await keys.setEnabled(id, false, OPERATOR);
      await refused(keys.setEnabled(id, true, OPERATOR), ENDLESS);
      await keys.update(id, { expiresIn: '30d' }, OPERATOR);
      await keys.setEnabled(id, true, OPERATOR);
      await keys.delete([id], OPERATOR);
    });

    it('does not keep a rotation from being taken back whose secret is lost', async () => {
      const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
      const child = await earlier({ name: 'Endless', roles: ['VIEWER'] }, principal);
      demand(BOTH);
      const request = { grace: '1h', disableCreated: true };
      const { disabled } = await failDelivery<RotatedKey>((delivery) =>
        keys.rotate(principal.apiKey.id, request, OPERATOR, delivery),
      );
      assert.equal(disabled.length, 1);
      assert.equal((await present(child.id)).disabledAt, null);
    });

    it('holds for a key that is adopted from one that ends, and so would live on', async () => {
      const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'], expiresIn: '30d' });
      const child = storedKey('Endless', { createdBy: principal.apiKey.id });
      const { principal: free } = await createPrincipal(test.keys, { name: 'Free', roles: ['ADMIN'] });
      const same = await earlier({ name: 'Same', roles: ['VIEWER'] }, free);
      await test.store.repository.write((writer) => writer.insert([child]));
      demand(BOTH);
      await refused(keys.adopt(child.id, OPERATOR), ENDLESS);
      await keys.adopt(same.id, OPERATOR);
      await keys.update(child.id, { expiresIn: '60d' }, OPERATOR);
      await keys.adopt(child.id, OPERATOR);
    });

    it('holds for a key that is adopted from a disabled one, and so comes back', async () => {
      const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
      const child = await earlier({ name: 'Endless', roles: ['VIEWER'] }, principal);
      await keys.setEnabled(principal.apiKey.id, false, OPERATOR);
      demand(BOTH);
      await refused(keys.adopt(child.id, OPERATOR), ENDLESS);
    });
  });

  describe('of grants', () => {
    const ADMIN_REFUSED =
      /The policy \(grantableByKeys: .*\) does not let keys grant ADMIN, as for "New"\. Grant less, or grant/;
    let admin: Principal;
    beforeEach(async () => {
      ({ principal: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    });

    it('leaves the others to the operator', async () => {
      demand({ grantableByKeys: ['VIEWER', 'DOCKER:UPDATE_ANY'] });
      await keys.create({ name: 'By hand', roles: ['ADMIN'] }, OPERATOR);
      await refused(keys.create({ name: 'New', roles: ['ADMIN'] }, admin), ADMIN_REFUSED);
      await refused(keys.preview({ name: 'New', roles: ['ADMIN'] }, admin), ADMIN_REFUSED);
      await keys.create({ name: 'One', roles: ['VIEWER', 'GUEST'], permissions: ['DOCKER:UPDATE_OWN'] }, admin);
      await keys.create({ name: 'Two', permissions: ['DOCKER:READ_ANY'] }, admin);
      demand({ grantableByKeys: [] });
      await refused(
        keys.create({ name: 'New', roles: ['GUEST'] }, admin),
        /grantableByKeys: nothing\) does not let keys grant/,
      );
    });

    it('counts the permissions of a role one by one, and knows no way around by another role', async () => {
      const roles = { EDITOR: ['DOCKER:READ_ANY'] } as const;
      demand({ grantableByKeys: ['VIEWER'] }, { roles });
      const permissions = ['API_KEY:CREATE_ANY', 'DOCKER:READ_ANY', 'DISK:DELETE_ANY'];
      const both = /not let keys grant API_KEY:CREATE_ANY, API_KEY:CREATE_OWN, DISK:DELETE_ANY and DISK:DELETE_OWN/;
      await refused(keys.create({ name: 'New', permissions }, admin), both);
      await refused(keys.create({ name: 'New', roles: ['EDITOR'] }, admin), /not let keys grant EDITOR/);
      await refused(keys.create({ name: 'New', permissions: catalogOf(keys) }, admin), /and \d+ more, as for "New"/);
    });

    it('holds for changes that add grants, and for keys that come back, but not for fewer grants', async () => {
      const { id } = await earlier({ name: 'New', roles: ['VIEWER'] });
      const strong = await earlier({ name: 'Strong', roles: ['ADMIN'] });
      const ending = await earlier({ name: 'Ending', roles: ['ADMIN'], expiresIn: '1h' });
      demand({ grantableByKeys: ['VIEWER'] });
      await refused(keys.update(id, { roles: ['VIEWER', 'ADMIN'] }, admin), ADMIN_REFUSED);
      await refused(keys.update(id, { permissions: ['DISK:UPDATE_OWN'] }, admin), /not let keys grant DISK:UPDATE_OWN/);
      await keys.update(strong.id, { description: 'Stays', expiresIn: '10d' }, admin);
      await keys.update(strong.id, { roles: [], permissions: ['DISK:UPDATE_ANY'] }, admin);
      await keys.setEnabled(strong.id, false, admin);
      await refused(keys.setEnabled(strong.id, true, admin), /not let keys grant DISK:UPDATE_ANY/);
      test.time.now += UNIT_MS.h;
      await refused(keys.update(ending.id, { expiresIn: '1h' }, admin), /not let keys grant ADMIN, as for "Ending"/);
      await keys.setEnabled(strong.id, true, OPERATOR);
      await keys.rotate(ending.id, { grace: '1h' }, admin);
      await keys.update(ending.id, { expiresIn: '1h' }, OPERATOR);
    });

    it('holds for a key that replaces itself', async () => {
      demand({ grantableByKeys: ['VIEWER'] });
      const itself = keys.create({ name: 'Admin', roles: ['ADMIN'], overwrite: true }, admin);
      await refused(itself, /not let keys grant ADMIN, as for "Admin"/);
    });
  });

  describe('of the number of keys', () => {
    const FULL = /With ".*", the key that creates it would have 3 live keys, more than .*\(maxKeysPerCreator: 2\)/;
    let creator: Principal;
    const make = (name: string, input: Partial<NewKey> = {}) =>
      keys.create({ name, roles: ['VIEWER'], ...input }, creator);
    beforeEach(async () => {
      ({ principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] }));
      demand({ maxKeysPerCreator: 2 });
    });

    it('counts the live keys of each creator; the operator may create any number', async () => {
      for (const name of ['A', 'B', 'C']) await keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
      const { apiKey: first } = await make('One', { expiresIn: '1h' });
      const { apiKey: second } = await make('Two');
      await refused(make('Three'), FULL);
      await refused(keys.preview({ name: 'Three', roles: ['VIEWER'] }, creator), FULL);
      await keys.setEnabled(second.id, false, creator);
      await make('Three');
      await refused(keys.setEnabled(second.id, true, creator), FULL);
      await refused(keys.setEnabled(second.id, true, OPERATOR), FULL);
      test.time.now += UNIT_MS.h;
      await keys.setEnabled(second.id, true, creator);
      await refused(keys.update(first.id, { expiresIn: '1h' }, creator), FULL);
      await keys.update(first.id, { name: 'Renamed' }, creator);
      await keys.delete([second.id], creator);
      await keys.update(first.id, { expiresIn: '1h' }, creator);
      await refused(make('Four'), FULL);
    });

    it('lets a key replace one of its own, and one that has too many change those', async () => {
      for (const name of ['One', 'Two', 'Three']) await earlier({ name, roles: ['VIEWER'] }, creator);
      await make('One', { overwrite: true });
      await keys.update((await keys.findByName('Two', creator))!.id, { name: 'Other' }, creator);
      await refused(make('Four'), /would have 4 live keys/);
    });

    it('holds though several create at the same time', async () => {
      const all = await Promise.allSettled(['One', 'Two', 'Three', 'Four'].map((name) => make(name)));
      assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 2);
      for (const result of all) if (result.status === 'rejected') assert.equal(result.reason.code, VIOLATED.code);
    });
  });

  it('reports all that is wrong together', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    await earlier({ name: 'One', roles: ['VIEWER'] }, principal);
    demand({ requireExpiry: true, grantableByKeys: ['GUEST'], maxKeysPerCreator: 1 });
    const all = /^.*\(requireExpiry: true\).*\n.*\(grantableByKeys: GUEST\).*\n.*\(maxKeysPerCreator: 1\).*$/;
    await refused(keys.create({ name: 'Two', roles: ['VIEWER'] }, principal), all);
  });

  it('is checked after permissions', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    demand({ requireExpiry: true, grantableByKeys: [] });
    await assert.rejects(keys.create({ name: 'New', roles: ['GUEST'] }, principal), { code: 'FORBIDDEN' });
  });
});

function catalogOf({ catalog }: KeysService): readonly string[] {
  return catalog.permissionsOf('ADMIN');
}
