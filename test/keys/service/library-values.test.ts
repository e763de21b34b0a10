import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { openKeys, OPERATOR } from '../../../src/index.ts';
import { tempStore } from '../../support/temp.ts';

describe('what programs get from the library', () => {
  it('is a principal whose JSON and log have its key, and nothing of the keys above it', async () => {
    const keys = await openKeys({ database: tempStore(), policy: { maxLifetime: '9d' } });
    const parent = await keys.create(
      { name: 'Parent', description: 'of the parent', roles: ['ADMIN'], allowFrom: ['127.0.0.0/8'], expiresIn: '8d' },
      { actor: OPERATOR },
    );
    const asking = async (secret: string) => {
      const checked = await keys.check({ secret, address: '127.0.0.1' });
      return checked.ok ? checked.principal : assert.fail(checked.code);
    };
    const actor = await asking(parent.key);
    const child = await keys.create({ name: 'Child', roles: ['GUEST'], expiresIn: '1d' }, { actor });
    const principal = await asking(child.key);
    for (const shown of [JSON.stringify(principal), inspect(principal, { depth: Infinity })]) {
      assert.ok(shown.includes('Child'));
      assert.doesNotMatch(shown, /Parent|of the parent|127\.0\.0\.0|maxLifetime|GUEST.*ADMIN/s);
    }
    assert.equal(principal.owner, parent.apiKey.id);
    await keys.close();
  });

  it('takes a Date for the end of a key, in new keys and changes', async () => {
    const keys = await openKeys({ database: tempStore() });
    const end = new Date(Date.now() + 3_600_000);
    const { apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'], expiresAt: end }, { actor: OPERATOR });
    assert.equal(apiKey.expiresAt, end.getTime());
    const later = new Date(end.getTime() + 1000);
    const { after } = await keys.update(apiKey.id, { expiresAt: later }, { actor: OPERATOR });
    assert.equal(after.expiresAt, later.getTime());
    for (const [wrong, code] of [
      [new Date(0), 'EXPIRY_INVALID'],
      [new Date(Number.NaN), 'EXPIRY_INVALID'],
      [7, 'OPTION_INVALID'],
    ] as const)
      await assert.rejects(
        keys.create({ name: 'Other', roles: ['GUEST'], expiresAt: wrong as Date }, { actor: OPERATOR }),
        { code },
      );
    await keys.close();
  });

  it('refuses metadata that JSON would change, and keeps the key', async () => {
    const keys = await openKeys({ database: tempStore() });
    const { apiKey } = await keys.create({ name: 'CI', roles: ['GUEST'], metadata: { a: 1 } }, { actor: OPERATOR });
    for (const metadata of [new Date(), new URL('http://localhost'), new Map(), { at: new Date() }, { a: Infinity }])
      await assert.rejects(keys.update(apiKey.id, { metadata } as object, { actor: OPERATOR }), {
        code: 'INPUT_INVALID',
      });
    assert.deepEqual((await keys.get(apiKey.id, { actor: OPERATOR }))?.metadata, { a: 1 });
    await keys.close();
  });
});
