import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import Database from 'better-sqlite3';
import { OPERATOR, principalOf } from '../../../src/keys/authorization/principal.ts';
import type { KeyRepository } from '../../../src/keys/repository.ts';
import { VerifiedKeys } from '../../../src/keys/authentication/verified-keys.ts';
import { openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

/** A store of which the test knows how often it was asked about a secret. */
function counting(repository: KeyRepository): {
  asked: () => number;
  repository: KeyRepository;
  before: (work: () => Promise<void>) => void;
} {
  let asked = 0;
  let next: (() => Promise<void>) | undefined;
  return {
    asked: () => asked,
    before: (work) => (next = work),
    repository: {
      ...repository,
      revision: () => repository.revision(),
      async findByDigest(digest) {
        asked += 1;
        const found = await repository.findByDigest(digest);
        const meanwhile = next;
        next = undefined;
        await meanwhile?.();
        return found;
      },
    },
  };
}

describe('a key that was accepted', () => {
  let test: TestKeys;
  let counted: ReturnType<typeof counting>;
  let secret: string;
  let id: string;
  beforeEach(async () => {
    test = await openTestKeys({ repository: (repository) => (counted = counting(repository)).repository });
    const created = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    [secret, id] = [created.secret, created.key.id];
  });
  afterEach(() => test.store.close());
  const enter = async () => {
    const result = await test.keys.authenticate(secret);
    return 'refused' in result ? result.refused : 'accepted';
  };
  const turn = () => new Promise(setImmediate);

  it('is not looked up again, turn after turn, while the store is unchanged', async () => {
    for (let time = 0; time < 10; time += 1) {
      assert.equal(await enter(), 'accepted');
      await turn();
    }
    assert.equal(counted.asked(), 1);
  });

  it('is not asked for where the secret was mistyped: the checksum tells', async () => {
    secret = `${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`;
    assert.deepEqual([await enter(), counted.asked()], ['malformed', 0]);
  });

  it('is looked up again after a change by this process, at once', async () => {
    await enter();
    await test.keys.update(id, { roles: ['VIEWER'] }, OPERATOR);
    const result = await test.keys.authenticate(secret);
    assert.ok('principal' in result && result.principal.access.has('INFO', 'READ_ANY'));
    await test.keys.delete([id], OPERATOR);
    assert.equal(await enter(), 'unknown');
  });

  it('is looked up again after a change by another process, in the next turn', async () => {
    await enter();
    const other = await openTestKeys({ database: test.database });
    await other.keys.setEnabled(id, false, OPERATOR);
    await turn();
    assert.equal(await enter(), 'disabled');
    await other.keys.setEnabled(id, true, OPERATOR);
    await turn();
    assert.deepEqual([await enter(), await enter()], ['accepted', 'accepted']);
    await other.keys.delete([id], OPERATOR);
    await other.store.close();
    await turn();
    assert.equal(await enter(), 'unknown');
  });

  it('is not looked up again after its uses were counted, by this process or by another', async () => {
    await enter();
    await test.keys.finishActivity();
    await enter();
    const other = await openTestKeys({ database: test.database });
    await other.keys.authenticate(secret);
    await other.keys.finishActivity();
    await turn();
    assert.equal([...(await test.keys.usageOf([id])).values()][0]?.uses, 2);
    await enter();
    assert.equal(counted.asked(), 1);
    await other.store.close();
  });

  for (const [change, expected] of [
    ['update api_keys set disabled_at = 1', 'disabled'],
    ['delete from api_keys', 'unknown'],
    ['update api_keys set digest = public_id', 'unknown'],
  ] as const) {
    it(`is looked up again after a change by hand: ${change}`, async () => {
      await enter();
      const other = new Database(test.database);
      other.exec(change);
      await turn();
      assert.equal(await enter(), expected);
      other.close();
    });
  }

  it('is not cached in the state before a change that happened during the query', async () => {
    counted.before(async () => void (await test.keys.delete([id], OPERATOR)));
    assert.equal(await enter(), 'accepted', 'it was there when the question came');
    assert.equal(await enter(), 'unknown');
  });

  it('expires on time, and is not looked up again before', async () => {
    await test.keys.update(id, { expiresIn: '1h' }, OPERATOR);
    await enter();
    test.time.now += 3_600_000 - 1;
    assert.deepEqual([await enter(), counted.asked()], ['accepted', 1]);
    test.time.now += 1;
    assert.equal(await enter(), 'expired');
  });

  it('is refused after the grace of its secret', async () => {
    await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    assert.deepEqual([await enter(), await enter()], ['accepted', 'accepted']);
    test.time.now += 3_600_000;
    assert.equal(await enter(), 'rotated');
  });

  it('stays cached whatever others are refused, and these are not cached', async () => {
    await enter();
    for (let attempt = 0; attempt < 1000; attempt += 1) await test.keys.authenticate(`unknown${attempt}`);
    assert.equal(counted.asked(), 1001);
    await enter();
    assert.equal(counted.asked(), 1001);
  });
});

describe('the cache of verified keys', () => {
  const entryOf = (name: string) => ({
    principal: principalOf({ keys: [storedKey(name)], isComplete: true }, createCatalog()),
    expiresAt: null,
  });

  it('is bounded: the oldest is evicted', () => {
    const verified = new VerifiedKeys();
    for (let index = 0; index <= 20_000; index += 1) verified.set(`${index}`, 1, entryOf(`${index}`));
    assert.equal(verified.get('0', 1, 0), undefined);
    assert.equal(verified.get('1', 1, 0)?.principal.key.id, '1');
    assert.equal(verified.get('20000', 1, 0)?.principal.key.id, '20000');
  });

  it('is valid for one revision of the store, and for no unknown one', () => {
    const verified = new VerifiedKeys();
    verified.set('a', 1, entryOf('a'));
    assert.equal(verified.get('a', 2, 0), undefined);
    assert.equal(verified.get('a', undefined, 0), undefined);
    verified.set('b', 2, entryOf('b'));
    verified.set('a', 1, entryOf('a'));
    assert.deepEqual(
      [verified.get('a', 2, 0), verified.get('a', 1, 0), verified.get('b', 2, 0)?.principal.key.id],
      [undefined, undefined, 'b'],
    );
    verified.set('c', undefined, entryOf('c'));
    assert.equal(verified.get('c', undefined, 0), undefined);
    assert.equal(verified.get('b', 2, 0)?.principal.key.id, 'b');
  });
});
