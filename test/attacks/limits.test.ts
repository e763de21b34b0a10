import assert from 'node:assert/strict';
import { readDeclaration } from '../../src/features/apply/declaration.ts';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import type { KeyChange, NewKey } from '../../src/keys/key/key-change.ts';
import type { Answer } from '../../src/limits/limiter.ts';
import { damageKey } from '../support/damage.ts';
import { fieldsText, NO_VALUES } from '../../src/keys/key/fields.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { until } from '../support/until.ts';
import { Declarations } from '../../src/features/apply/apply.ts';

const TEN = ['10.0.0.0/8'];
const refusedBy = (rule: RegExp) => ({ code: 'FORBIDDEN', message: rule });
const LIMITED = refusedBy(/^A key cannot grant more than it holds: this key is limited to 100\/m\.$/);
const ELSEWHERE = refusedBy(/^A key cannot grant more than it holds: this key can be used only from 10\.0\.0\.0\/8\.$/);

describeOnEach('attacks: a key that is limited to 100/m and 10.0.0.0/8', () => {
  let test: TestKeys;
  let held: { secret: string; principal: Principal };
  beforeEach(async () => {
    test = await openTestKeys();
    held = await createPrincipal(test.keys, { name: 'Held', roles: ['ADMIN'], limits: ['100/m'], allowFrom: TEN });
  });
  afterEach(() => test.store.close());
  const update = (id: string, change: KeyChange) => test.keys.update(id, change, held.principal);
  const create = (name: string, fields: Partial<NewKey>, by: Principal | typeof OPERATOR = OPERATOR) =>
    createPrincipal(test.keys, { name, roles: ['ADMIN'], ...fields }, by);
  const restrictionsOf = async (secret: string) => {
    const found = await authenticate(test.keys, secret);
    assert.ok('principal' in found);
    return found.principal.restrictions;
  };
  /** How many requests of a key are accepted now. */
  const lettingIn = async (secret: string, most = 200) => {
    const restrictions = (await restrictionsOf(secret))!;
    const answers = await Promise.all(Array.from({ length: most }, async () => test.keys.limiter.enter(restrictions)));
    return answers.filter((answer: Answer) => answer !== 'gone' && answer.isWithin).length;
  };

  it('cannot raise or remove its own limit, nor be used from elsewhere', async () => {
    const { id } = held.principal.apiKey;
    for (const limits of [['101/m'], [], ['100/s'], ['6000/h']])
      await assert.rejects(update(id, { limits }), LIMITED, limits.join());
    for (const allowFrom of [null, ['0.0.0.0/0'], ['10.0.0.0/8', '192.0.2.1'], ['::/0']])
      await assert.rejects(update(id, { allowFrom }), ELSEWHERE);
    const { after } = await update(id, { limits: ['99/m', '1000/d'], allowFrom: ['10.1.0.0/16'] });
    assert.deepEqual([after.limits, after.allowFrom], [['99/m', '1000/d'], ['10.1.0.0/16']], 'it may be held closer');
  });

  it('gets no new requests by lowering its limit, again and again', async () => {
    assert.equal(await lettingIn(held.secret), 100);
    for (const count of [99, 98, 50]) {
      await update(held.principal.apiKey.id, { limits: [`${count}/m`] });
      assert.equal(await lettingIn(held.secret), 0, `${count}`);
    }
  });

  it('makes no key that is less limited: what that does counts against both', async () => {
    const child = await create('Child', { limits: ['100000/m'], allowFrom: ['0.0.0.0/0'] }, held.principal);
    const grandchild = await create('Grandchild', {}, child.principal);
    assert.equal(await lettingIn(grandchild.secret, 60), 60);
    assert.equal(await lettingIn(child.secret, 60), 40);
    assert.equal(await lettingIn(held.secret), 0);
    const networks = (await restrictionsOf(grandchild.secret))!.networks.map(({ texts }) => texts);
    assert.deepEqual(networks, [['0.0.0.0/0'], TEN]);
  });

  it('may loosen its child keys, which it holds all the same', async () => {
    const child = await create('Child', { limits: ['5/m'], allowFrom: ['10.1.0.0/16'] }, held.principal);
    await update(child.principal.apiKey.id, { limits: [], allowFrom: null });
    assert.equal(await lettingIn(child.secret), 100);
  });

  it('takes its own place with the same limit, used up as far as before', async () => {
    assert.equal(await lettingIn(held.secret, 70), 70);
    await test.keys.limiter.finish();
    const itself = (fields: Partial<NewKey>) => create('Held', { overwrite: true, ...fields }, held.principal);
    for (const limits of [[], ['101/m'], ['100/h']]) await assert.rejects(itself({ limits }), LIMITED);
    await assert.rejects(itself({ allowFrom: null }), ELSEWHERE);
    const { secret, principal } = await itself({});
    assert.deepEqual([principal.apiKey.limits, principal.apiKey.allowFrom], [['100/m'], TEN]);
    assert.equal(await lettingIn(secret), 30);
  });

  it('does not loosen another key beyond itself', async () => {
    const other = await create('Other', { limits: ['10/m', '5/h'], allowFrom: ['10.1.0.0/16'] });
    const { id } = other.principal.apiKey;
    await assert.rejects(update(id, { limits: ['200/m', '5/h'] }), LIMITED);
    await assert.rejects(update(id, { limits: ['5/h'] }), LIMITED);
    await assert.rejects(update(id, { allowFrom: null }), ELSEWHERE);
    const { after } = await update(id, { limits: ['100/m'], allowFrom: ['10.1.0.0/16', '10.2.0.0/16'] });
    assert.deepEqual(after.limits, ['100/m']);
  });

  it('makes no key usable that is less limited: by a new secret, an old one, enabling it or more grants', async () => {
    const free = await create('Free', { roles: ['VIEWER'] });
    const limited = await create('Limited', { roles: ['VIEWER'], limits: ['100/m'] });
    for (const [{ principal: other }, rule] of [[free, LIMITED] as const, [limited, ELSEWHERE] as const]) {
      const { id } = other.apiKey;
      const { principal } = held;
      await assert.rejects(test.keys.rotate(id, {}, principal), rule);
      await test.keys.rotate(id, {}, OPERATOR);
      await assert.rejects(test.keys.rollBackRotation(id, principal), rule);
      await assert.rejects(update(id, { roles: ['ADMIN'] }), rule);
      await test.keys.setEnabled(id, false, principal);
      await assert.rejects(test.keys.setEnabled(id, true, principal), rule);
      const file = { keys: [{ name: other.apiKey.name, roles: ['VIEWER'], enabled: true }] };
      await assert.rejects(
        test.keys.feature(Declarations).apply(await readDeclaration(file, test.keys.catalog), {}, principal),
      );
    }
  });

  it('does not get rid of its limit by a declaration that leaves it out', async () => {
    const file = { keys: [{ name: 'Held', roles: ['ADMIN'], allowFrom: TEN }] };
    await assert.rejects(
      test.keys.feature(Declarations).apply(await readDeclaration(file, test.keys.catalog), {}, held.principal),
      LIMITED,
    );
  });

  it('is refused where its limit was changed in the file, and shown where it was by another program', async () => {
    const written = (values: object) => `fields = '${fieldsText({ ...NO_VALUES, allowFrom: TEN, ...values })}'`;
    await changeDirectly(test.database, `update api_keys set ${written({ limits: ['1000/m'] })} where name = 'Held'`);
    const [difference] = (await test.keys.audit.check()).comparison!.differences;
    assert.equal(difference?.reason, 'differs in limits');
    await test.keys.update(held.principal.apiKey.id, { limits: ['100/m'] }, OPERATOR);
    const empty = written({}).replace(/"5":\[.*?\]/, '"5":[]');
    for (const change of [written({ limits: ['1000/m'] }), written({ allowFrom: null }), 'fields = null', empty]) {
      await test.keys.delete([held.principal.apiKey.id], OPERATOR);
      held = await createPrincipal(test.keys, { name: 'Held', roles: ['ADMIN'], limits: ['100/m'], allowFrom: TEN });
      await damageKey(test.database, 'Held', change);
      const reason = async () => {
        const found = await authenticate(test.keys, held.secret);
        return 'refused' in found && found.refused;
      };
      // PostgreSQL notifies of the change a moment later.
      await until(async () => (await reason()) !== false);
      assert.equal(await reason(), 'damaged', change);
    }
  });
});

describeOnEach('attacks: a key that has the limit of all keys without one', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ defaultLimits: ['100/m'] });
  });
  afterEach(() => test.store.close());

  it('cannot give itself a higher one, but a lower one', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Plain', roles: ['ADMIN'] });
    for (const limits of [['1000/m'], ['1/h']])
      await assert.rejects(test.keys.update(principal.apiKey.id, { limits }, principal), LIMITED);
    const { after } = await test.keys.update(principal.apiKey.id, { limits: ['10/m'] }, principal);
    assert.deepEqual(after.limits, ['10/m']);
    await assert.rejects(
      test.keys.update(principal.apiKey.id, { limits: [] }, principal),
      refusedBy(/this key is limited to 10\/m\.$/),
    );
  });
});
