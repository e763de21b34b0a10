import assert from 'node:assert/strict';
import { Declarations } from '../../../src/features/apply/apply.ts';
import { readDeclaration } from '../../../src/features/apply/declaration.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import type { KeyListener } from '../../../src/keys/changes/transaction.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { applyDeclared } from './declared-keys.ts';

describeOnEach('a feature that follows declared keys', () => {
  let refusing: KeyListener['refuses'];
  let test: TestKeys;

  beforeEach(async () => {
    const onKeys: KeyListener = { refuses: (...change) => refusing?.(...change) };
    test = await openTestKeys({ features: [{ name: 'follower', onKeys }] });
  });
  afterEach(() => test.store.close());

  it('can refuse changed fields and new secrets in an apply, but not unchanged ones', async () => {
    const a = { name: 'a', permissions: ['ME:READ_OWN'] };
    await test.keys.create(a, OPERATOR);
    const refuse = (what: string | undefined) => {
      refusing = (_, fields) =>
        what === undefined ? (fields ? undefined : HELD) : fields?.includes(what) ? HELD : undefined;
    };
    const HELD = new KeysError('FORBIDDEN', 'held by a feature');
    const apply = (key: object) => applyDeclared(test.keys, [{ ...a, ...key }]);
    refuse('permissions');
    const wider = { ...a, permissions: ['ME:READ_OWN', 'DOCKER:READ_ANY'] };
    await assert.rejects(applyDeclared(test.keys, [wider]), HELD);
    const declared = await readDeclaration({ keys: [wider] }, test.keys.catalog);
    await assert.rejects(test.keys.feature(Declarations).plan(declared, {}, OPERATOR), HELD);
    await apply({ description: 'still possible' });
    refuse(undefined);
    await apply({ description: 'still possible' });
    await apply({ description: 'as are fields', enabled: false });
    await apply({ description: 'as are fields', enabled: true });
    test.time.now += 2 * 86_400_000;
    await assert.rejects(apply({ rotate: { every: '1d', grace: '1h' } }), HELD);
    refuse('description');
    await assert.rejects(apply({ rotate: { every: '1d', grace: '1h' } }), HELD);
  });
});
