import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { ExportedKey } from '../../../src/features/transfer/export.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { Transfer } from '../../../src/features/transfer/transfer.ts';

describeOnEach('exporting keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  async function exported(withDigests = false): Promise<{ keys: ExportedKey[]; rotating: number; pages: number[] }> {
    const all: ExportedKey[] = [];
    const pages: number[] = [];
    let sum = 0;
    for await (const { keys, rotating } of test.keys.feature(Transfer).export({ withDigests })) {
      all.push(...keys);
      pages.push(keys.length);
      sum += rotating;
    }
    return { keys: all, rotating: sum, pages };
  }

  it('gives none without keys', async () => {
    assert.deepEqual(await exported(), { keys: [], rotating: 0, pages: [] });
  });

  it('gives all that can be imported again, and the digest only where it is asked for', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      {
        name: 'CI',
        description: 'Nightly',
        roles: ['GUEST'],
        permissions: ['DOCKER:READ_ANY'],
        limits: ['100/m'],
        allowFrom: ['10.0.0.0/8'],
        expiresIn: '1h',
      },
      OPERATOR,
    );
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const expected = {
      id: key.id,
      name: 'CI',
      description: 'Nightly',
      roles: ['GUEST'],
      permissions: ['DOCKER:READ_ANY'],
      limits: ['100/m'],
      allowFrom: ['10.0.0.0/8'],
      prefix: `svc_${key.publicId}_…`,
      createdAt: '2030-01-01T00:00:00.000Z',
      createdBy: null,
      expiresAt: '2030-01-01T01:00:00.000Z',
      disabled: true,
    };
    assert.deepEqual((await exported()).keys, [expected]);
    const sha256 = createHash('sha256').update(secret).digest('hex');
    assert.deepEqual((await exported(true)).keys, [{ ...expected, sha256 }]);
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await test.keys.update(key.id, { expiresAt: null }, OPERATOR);
    const [{ disabled, expiresAt } = expected] = (await exported()).keys;
    assert.deepEqual([disabled, expiresAt], [false, null]);
  });

  it('counts the keys whose previous secret still works', async () => {
    const ids = await Promise.all(
      ['A', 'B', 'C'].map(async (name) => (await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR)).apiKey.id),
    );
    for (const id of ids.slice(1)) await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    await test.keys.finishRotation(ids[1]!, OPERATOR);
    assert.equal((await exported()).rotating, 1);
    test.time.now += 3_600_000;
    assert.equal((await exported()).rotating, 0);
  });

  it('comes page by page, each key once, and after its creator', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
    const child = await createPrincipal(test.keys, { name: 'Child', roles: ['ADMIN'] }, principal);
    const id = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
    const creators = [null, principal.apiKey.id, child.principal.apiKey.id];
    const many = Array.from({ length: 1503 }, (_, index) =>
      storedKey(id(index), { createdBy: creators[index % 3]!, createdAt: index }),
    );
    await test.store.repository.write((writer) => writer.insert(many));
    const { keys, pages } = await exported();
    assert.deepEqual([keys.length, new Set(keys.map((key) => key.id)).size, Math.max(...pages)], [1505, 1505, 500]);
    const seen = new Set<string | null>([null]);
    for (const key of keys) {
      assert.ok(seen.has(key.createdBy), key.name);
      seen.add(key.id);
    }
  });
});
