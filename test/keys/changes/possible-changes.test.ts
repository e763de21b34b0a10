import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';

describe('what may be done to a key', () => {
  it('is computed for a key that has created very many, all disabled, without reading all of them', async () => {
    let pages = 0;
    const test = await openTestKeys({
      repository: (repository) => ({
        ...repository,
        // Endless full pages, like a store with millions of keys.
        listCreatedBy: async (creators, page) => {
          pages += 1;
          assert.ok(pages < 1000, 'It goes on and on.');
          const created = await repository.listCreatedBy(creators, { limit: page.limit });
          return Array.from({ length: page.limit }, (_, index) => created[index % created.length]!);
        },
      }),
    });
    const permissions = ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_OWN'];
    const { principal: caller } = await createPrincipal(test.keys, { name: 'Caller', permissions }, OPERATOR);
    const { principal } = await createPrincipal(test.keys, { name: 'Creator', permissions }, caller);
    const { principal: created } = await createPrincipal(
      test.keys,
      { name: 'Created', permissions: permissions.slice(1) },
      principal,
    );
    await test.keys.setEnabled(created.apiKey.id, false, OPERATOR);
    const [changes] = await test.keys.permittedChanges.possibleChanges([principal.apiKey], caller);
    const refusals = new Map(changes!.map(({ change, refusal }) => [change, refusal?.code ?? null]));
    assert.equal(refusals.get('ROTATE'), null);
    // Too many to know whether one is enabled, so a change that could be refused is not offered.
    assert.equal(refusals.get('ROTATE_AND_DISABLE_CREATED'), 'FORBIDDEN');
    assert.ok(pages <= 10, `${pages} pages`);
    await test.store.close();
  });
});
