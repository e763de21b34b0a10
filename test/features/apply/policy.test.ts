import assert from 'node:assert/strict';
import { Declarations } from '../../../src/features/apply/apply.ts';
import type { DeclaredKey } from '../../../src/features/apply/declaration.ts';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import type { PolicyRules } from '../../../src/keys/permissions/policy.ts';
import type { KeysService } from '../../../src/keys/service/service.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

const BOTH = { maxLifetime: '90d', requireExpiry: true };
const ENDLESS = /"Endless" would never expire, .*\(requireExpiry: true\)\. Give it an expiry, 2030-04-01T/;
const FULL = /With ".*", the key that creates it would have 3 live keys, more than .*\(maxKeysPerCreator: 2\)/;
const declared = (name: string, fields: Partial<DeclaredKey> = {}): DeclaredKey => ({
  name,
  description: null,
  roles: ['VIEWER'],
  permissions: [],
  expiresAt: null,
  ...fields,
});

describeOnEach('the policy, for declared keys', () => {
  let test: TestKeys;
  let keys: KeysService;
  /** Applies a policy, like a changed configuration. */
  const demand = (policy: PolicyRules) => void (keys = test.keys.withCatalog(createCatalog({ policy })));
  const earlier = async (input: NewKey, by: Principal | typeof OPERATOR = OPERATOR) =>
    (await test.keys.create(input, by)).apiKey;
  const refused = (change: Promise<unknown>, message: RegExp) =>
    assert.rejects(change, { code: 'POLICY_VIOLATED', message });

  beforeEach(async () => {
    test = await openTestKeys();
    keys = test.keys;
  });
  afterEach(() => test.store.close());

  it('holds for all of them at once, also in a plan', async () => {
    await earlier({ name: 'Endless', roles: ['VIEWER'] });
    await earlier({ name: 'Disabled', roles: ['VIEWER'] });
    await keys.setEnabled((await keys.findByName('Disabled', OPERATOR))!.id, false, OPERATOR);
    demand(BOTH);
    const unchanged = [declared('Endless', { roles: ['GUEST'] })];
    await keys.feature(Declarations).apply(unchanged, {}, OPERATOR);
    const wrong = [
      declared('New'),
      declared('Off', { enabled: false }),
      declared('Disabled', { enabled: true }),
      declared('Late', { expiresAt: test.time.now + 91 * UNIT_MS.d }),
    ];
    const all = /"New" would never expire.*\n.*"Off" would never.*\n.*"Late" would expire.*\n.*"Disabled" would never/;
    await refused(keys.feature(Declarations).plan(wrong, {}, OPERATOR), all);
    await refused(keys.feature(Declarations).apply(wrong, {}, OPERATOR), all);
    const expiresAt = test.time.now + 90 * UNIT_MS.d;
    await keys
      .feature(Declarations)
      .apply([declared('New', { expiresAt }), declared('Disabled', { enabled: true, expiresAt })], {}, OPERATOR);
  });

  it('names twenty of many', async () => {
    demand(BOTH);
    const many = Array.from({ length: 25 }, (_, index) => declared(`Key ${index}`));
    await refused(
      keys.feature(Declarations).plan(many, {}, OPERATOR),
      /^(?:The API key "Key \d+" would .*\n){20}And 5 more\.$/,
    );
  });

  it('holds for a key that is adopted from one that ends, and so would live on', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'], expiresIn: '30d' });
    await earlier({ name: 'Endless', roles: ['VIEWER'] }, principal);
    demand(BOTH);
    await refused(keys.feature(Declarations).apply([declared('Endless')], { adopt: true }, OPERATOR), ENDLESS);
  });

  it('counts what a key grants, but not what the operator grants', async () => {
    const { principal: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    demand({ grantableByKeys: ['VIEWER'] });
    await refused(
      keys.feature(Declarations).apply([declared('New', { roles: ['ADMIN'] })], {}, admin),
      /The policy \(grantableByKeys: .*\) does not let keys grant ADMIN, as for "New"/,
    );
    await keys.feature(Declarations).apply([declared('New', { roles: ['ADMIN'] })], {}, OPERATOR);
  });

  it('counts live keys of each creator', async () => {
    demand({ maxKeysPerCreator: 2 });
    const { principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    await keys.create({ name: 'One', roles: ['VIEWER'] }, creator);
    await refused(
      keys.feature(Declarations).apply(
        ['Two', 'Three'].map((name) => declared(name)),
        {},
        creator,
      ),
      FULL,
    );
    await keys.feature(Declarations).apply([declared('Two'), declared('Off', { enabled: false })], {}, creator);
    await refused(keys.feature(Declarations).apply([declared('Off', { enabled: true })], {}, creator), FULL);
    await keys.feature(Declarations).apply(
      ['A', 'B', 'C'].map((name) => declared(name)),
      {},
      OPERATOR,
    );
  });

  it('has room for declared keys where others are pruned in the same change', async () => {
    demand({ maxKeysPerCreator: 2 });
    const { principal: creator } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    await keys.feature(Declarations).apply(
      ['One', 'Two'].map((name) => declared(name)),
      {},
      creator,
    );
    await refused(keys.feature(Declarations).apply([declared('Three')], {}, creator), FULL);
    await keys.feature(Declarations).apply([declared('Three')], { prune: true }, creator);
  });
});
