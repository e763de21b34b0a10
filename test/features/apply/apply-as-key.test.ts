import assert from 'node:assert/strict';
import { readDeclaration } from '../../../src/features/apply/declaration.ts';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { ApplyOptions } from '../../../src/features/apply/apply.ts';
import { A, applyDeclared, B, C } from './declared-keys.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { Declarations } from '../../../src/features/apply/apply.ts';

describe('applying declared keys as a key that may do less than all', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const apply = (declared: readonly object[], options?: ApplyOptions, actor?: Actor) =>
    applyDeclared(test.keys, declared, options, actor);
  const names = async () => (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted();
  const find = async (name: string) => (await test.keys.findByName(name, OPERATOR))!;
  const counts = async (...args: Parameters<typeof apply>) => {
    const { plan } = await apply(...args);
    return [plan.creates.length, plan.updates.length, plan.deletes.length, plan.unchanged];
  };
  const principal = async (name: string, ...permissions: string[]) =>
    (
      await createPrincipal(test.keys, {
        name,
        permissions: permissions.map((action) => (action.includes(':') ? action : `API_KEY:${action}`)),
      })
    ).principal;

  it('requires the permission to create, to change and to delete, and grants no more than the key holds', async () => {
    await apply([A, C]);
    const creator = await principal('Creator', 'CREATE_ANY', 'DOCKER:READ_ANY');
    const changer = await principal('Changer', 'UPDATE_ANY', 'ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY');
    const refused: [Actor, object[], boolean, RegExp][] = [
      [changer, [B], false, /lacks API_KEY:CREATE_OWN/],
      [creator, [C, { name: 'D', roles: ['ADMIN'] }], false, /A key cannot grant more than it holds/],
      [creator, [{ ...A, description: 'New' }], false, /lacks API_KEY:UPDATE_ANY/],
      [creator, [A], false, /lacks API_KEY:UPDATE_ANY/],
      [changer, [{ name: 'A', roles: ['VIEWER'] }], false, /A key cannot grant more than it holds/],
      [changer, [A], true, /^Pruning .*: this key lacks API_KEY:DELETE_ANY\.$/],
    ];
    for (const [actor, declared, prune, message] of refused) {
      await assert.rejects(apply(declared, { prune }, actor), { code: 'FORBIDDEN', message }, String(message));
      const { catalog } = test.keys;
      await assert.rejects(
        test.keys.feature(Declarations).plan(await readDeclaration({ keys: declared }, catalog), { prune }, actor),
        {
          code: 'FORBIDDEN',
          message,
        },
      );
    }
    assert.deepEqual(await names(), ['A', 'C', 'Changer', 'Creator']);
    assert.deepEqual(await counts([B], {}, creator), [1, 0, 0, 0]);
    assert.equal((await find('B')).createdBy, creator.apiKey.id);
    assert.deepEqual(await counts([{ ...C, description: 'New' }, A], {}, changer), [0, 1, 0, 1]);
  });

  it('gives no later expiry than its own, and always one', async () => {
    const { principal: short } = await createPrincipal(test.keys, {
      name: 'Short',
      roles: ['ADMIN'],
      expiresIn: '1d',
    });
    for (const end of [null, '2030-02-01T00:00:00Z'])
      await assert.rejects(apply([{ ...A, expiresAt: end }], {}, short), {
        code: 'FORBIDDEN',
        message: /this key expires at/,
      });
    assert.deepEqual(await counts([{ ...A, expiresAt: '2030-01-01T12:00:00Z' }], {}, short), [1, 0, 0, 0]);
  });

  it('deletes no keys that it may not read, which the plan would name', async () => {
    await apply([A, B]);
    const blind = await principal('Blind', 'UPDATE_ANY', 'DELETE_ANY', 'ME:READ_OWN');
    await assert.rejects(apply([], { prune: true }, blind), { code: 'FORBIDDEN', missing: ['API_KEY:READ_ANY'] });
    const reader = await principal('Reader', 'UPDATE_ANY', 'DELETE_ANY', 'READ_ANY');
    assert.deepEqual(await counts([], { prune: true }, reader), [0, 0, 2, 0]);
  });

  it('reports how many keys prevent pruning, and the names of the first five that the key may read', async () => {
    const { created } = await apply([{ name: 'Parent', roles: ['ADMIN'] }]);
    const parent = await authenticate(test.keys, created[0]!.key);
    assert.ok('principal' in parent);
    const child = async (name: string) => {
      test.time.now += 1;
      await test.keys.create({ name, roles: ['GUEST'] }, parent.principal);
    };
    const blind = await principal('Blind', 'DELETE_ANY');
    const reader = await principal('Reader', 'READ_ANY');
    const refused = (actor: Actor, keys: string) =>
      assert.rejects(apply([], { prune: true }, actor), {
        code: 'PRUNE_REFUSED',
        message: new RegExp(`because pruned keys created them: ${keys}\\. Delete those first`),
      });
    await child('Child 1');
    await refused(blind, '1 key');
    await refused(reader, '"Child 1"');
    await child('Child 2');
    await refused(blind, '2 keys');
    for (let count = 3; count <= 7; count += 1) await child(`Child ${count}`);
    await refused(blind, '7 keys');
    await refused(reader, '"Child 1", "Child 2", "Child 3", "Child 4", "Child 5" and 2 more');
  });

  it('changes itself and the keys that it created, and takes over no others', async () => {
    const rights = ['CREATE_OWN', 'UPDATE_ANY', 'ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];
    const creator = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    const permissions = rights.map((right) => (right.includes(':') ? right : `API_KEY:${right}`));
    const { principal: own } = await createPrincipal(test.keys, { name: 'Own', permissions }, creator.principal);
    const other = await principal('Other', 'READ_ANY', ...rights);
    const child = { name: 'Child', permissions: ['ME:READ_OWN'] };
    await test.keys.create(child, own);
    const declaredOwn = { name: 'Own', permissions: own.apiKey.permissions, description: 'mine' };
    assert.deepEqual(await counts([declaredOwn, { ...child, description: 'mine' }], {}, own), [0, 2, 0, 0]);
    assert.equal((await find('Child')).createdBy, own.apiKey.id);
    const refused = (by: string, remedy: string) => ({
      code: 'TAKEOVER_REFUSED',
      message: `The API key "Child" was created by ${by}. ${remedy}`,
    });
    const choose = 'Choose another name.';
    await assert.rejects(apply([child], {}, other), refused('"Own"', choose));
    const blind = await principal('Blind', ...rights);
    await assert.rejects(apply([child], {}, blind), refused('another key', choose));
    await assert.rejects(apply([child], { adopt: true }, other), { message: 'Only the operator can adopt keys.' });
    const adopt = 'Delete it, or pass --adopt to take it over with its current secret.';
    await assert.rejects(apply([child]), refused('"Own"', adopt));
    assert.deepEqual(await counts([child], { adopt: true }), [0, 1, 0, 0]);
    assert.equal((await find('Child')).createdBy, null);
  });

  it('does not prune the key that asks', async () => {
    const { created } = await apply([{ name: 'Deployer', roles: ['ADMIN'] }, B]);
    const deployer = await authenticate(test.keys, created[0]!.key);
    assert.ok('principal' in deployer);
    await assert.rejects(apply([A], { prune: true }, deployer.principal), {
      code: 'PRUNE_REFUSED',
      message: /the key that requests it/,
    });
    assert.deepEqual(await names(), ['B', 'Deployer']);
  });
});
