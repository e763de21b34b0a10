import assert from 'node:assert/strict';
import { Declarations } from '../../src/features/apply/apply.ts';
import { Containments } from '../../src/features/contain/contain.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys } from '../support/keys.ts';

describeOnEach('what a key did to others', () => {
  it('is undone for a parent and its child that the operator adopts together', async () => {
    const test = await openTestKeys();
    const { principal: ops } = await createPrincipal(test.keys, { name: 'Ops', roles: ['ADMIN'] });
    const parent = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] }, ops);
    const child = await createPrincipal(test.keys, { name: 'Child', roles: ['GUEST'] }, parent.principal);
    const declared = (name: string, roles: string[]) => ({
      name,
      description: null,
      roles,
      permissions: [],
      expiresAt: null,
    });
    await test.keys
      .feature(Declarations)
      .apply([declared('Parent', ['ADMIN']), declared('Child', ['GUEST'])] as never, { adopt: true }, OPERATOR);
    const issued = await test.keys.issuedBy([ops.apiKey.id], OPERATOR);
    const named = issued.map(({ name, what }) => `${what} ${name}`);
    assert.deepEqual(named.toSorted(), ['ADOPTION Child', 'ADOPTION Parent']);
    await test.keys.feature(Containments).contain('Ops', undefined, OPERATOR);
    for (const { secret } of [parent, child]) {
      const result = await authenticate(test.keys, secret);
      assert.equal('refused' in result && result.refused, 'rotated');
    }
    await test.store.close();
  });
});
