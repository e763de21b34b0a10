import assert from 'node:assert/strict';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';
import { Declarations } from '../../../src/features/apply/apply.ts';
import { readDeclaration } from '../../../src/features/apply/declaration.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';

describe('a plan of declared keys', () => {
  it('takes keys that another process creates meanwhile for unchanged', async () => {
    let meanwhile: (() => Promise<unknown>) | undefined;
    const test = await openTestKeys({
      policy: { maxKeysPerCreator: 2 },
      repository: (repository) => ({
        ...repository,
        async findBy(field, values) {
          const found = await repository.findBy(field, values);
          const work = meanwhile;
          meanwhile = undefined;
          await work?.();
          return found;
        },
      }),
    });
    try {
      const { principal } = await createPrincipal(test.keys, { name: 'Deployer', roles: ['ADMIN'] });
      const declared = ['One', 'Two'].map((name) => ({
        name,
        description: null,
        roles: ['GUEST'],
        permissions: [],
        expiresAt: null,
      }));
      const declarations = test.keys.feature(Declarations);
      meanwhile = () => declarations.apply(declared, {}, principal);
      const { creates, unchanged } = await declarations.plan(declared, {}, principal);
      assert.deepEqual([creates, unchanged], [[], 2]);
    } finally {
      await test.store.close();
    }
  });

  it('has neither keys to prune nor keys to adopt unless requested', async () => {
    const test = await openTestKeys();
    const { principal } = await createPrincipal(test.keys, { name: 'Maker', roles: ['ADMIN'] });
    await test.keys.create({ name: 'Made', roles: ['GUEST'] }, principal);
    const plan = async (name: string) =>
      test.keys
        .feature(Declarations)
        .plan(await readDeclaration({ keys: [{ name, roles: ['GUEST'] }] }, test.keys.catalog), {}, OPERATOR);
    await assert.rejects(plan('Made'), { code: 'TAKEOVER_REFUSED' });
    await test.keys.feature(Declarations).apply((await plan('Declared')).creates, {}, OPERATOR);
    assert.deepEqual((await plan('Other')).deletes, []);
    await test.store.close();
  });
});
