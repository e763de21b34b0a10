import assert from 'node:assert/strict';
import { openKeys } from '../../../src/service/open-keys.ts';
import { digestSecret } from '../../../src/keys/secret/secret.ts';
import { tempStore } from '../../support/temp.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import Database from 'better-sqlite3';
import { OPERATOR, principalOf } from '../../../src/keys/authorization/principal.ts';
import type { KeyRepository } from '../../../src/keys/repository/repository.ts';
import { KeyChanges, MAX_CHANGES } from '../../../src/store/key-changes.ts';
import type { Chain } from '../../../src/keys/authorization/chain.ts';
import { VerifiedKeys } from '../../../src/keys/authentication/verified-keys.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import { openStore } from '../../../src/store/open.ts';
import { changeDirectly } from '../../support/direct.ts';
import { authenticate, idOf, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

/** A store that counts lookups of secrets. */
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
    [secret, id] = [created.key, created.apiKey.id];
  });
  afterEach(() => test.store.close());
  const enter = async () => {
    const result = await authenticate(test.keys, secret);
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
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result && result.principal.access.has('INFO', 'READ_ANY'));
    await test.keys.delete([id], OPERATOR);
    assert.equal(await enter(), 'unknown');
  });

  it('is not looked up again after other keys were created, changed and deleted, by this process or by another', async () => {
    await enter();
    const other = await openTestKeys({ database: test.database });
    for (const { keys } of [test, other]) {
      const { apiKey: key } = await keys.create({ name: 'Temporary', roles: ['GUEST'] }, OPERATOR);
      await keys.setEnabled(key.id, false, OPERATOR);
      await keys.delete([key.id], OPERATOR);
      await turn();
      assert.equal(await enter(), 'accepted');
    }
    await other.store.close();
    assert.equal(counted.asked(), 1);
  });

  it('is looked up again after its creator has changed', async () => {
    const creator = await test.keys.create({ name: 'Creator', roles: ['ADMIN'] }, OPERATOR);
    const actor = principalOf({ keys: [creator.apiKey], isComplete: true }, test.keys.catalog);
    secret = (await test.keys.create({ name: 'Created', roles: ['GUEST'] }, actor)).key;
    await enter();
    await test.keys.setEnabled(creator.apiKey.id, false, OPERATOR);
    assert.equal(await enter(), 'disabled');
  });

  it('is looked up again after more changes by another process than the store keeps', async () => {
    await enter();
    const other = new Database(test.database);
    other.exec(`update api_keys set disabled_at = 1;
      insert into key_changes (key_id) with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
        select 'another' from n`);
    const kept = Number(other.prepare('select count(*) from key_changes').pluck().get());
    // Old entries are removed 256 at a time.
    assert.ok(kept >= 4097 && kept < 4097 + 256, `${kept}`);
    other.close();
    await turn();
    assert.equal(await enter(), 'disabled');
  });

  it('is found at once, without a promise, where the store is a file', () => {
    const { authenticator } = new KeysService({ ...test.options, repository: test.store.repository });
    for (const _ of ['first', 'second']) assert.ok('principal' in (authenticator.confirm(secret) as object));
  });

  it('is not found as a command leaves it in a change that is rolled back', async () => {
    const command = await openStore({ database: test.database, busyTimeoutMs: 25 });
    const { authenticator } = new KeysService({ ...test.options, repository: command.repository });
    let answer: ReturnType<typeof authenticator.confirm> | undefined;
    const change = command.repository.write(async (writer) => {
      const key = (await writer.findById(id))!;
      await writer.update([{ before: key, after: { ...key, disabledAt: 1 } }]);
      answer = authenticator.confirm(secret);
      throw new Error('rolled back');
    });
    await assert.rejects(change);
    assert.ok('principal' in (await answer!));
    await command.close();
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
    await authenticate(other.keys, secret);
    await other.keys.finishActivity();
    await turn();
    assert.equal([...(await test.keys.useOf([id])).values()][0]?.uses, 2);
    await enter();
    assert.equal(counted.asked(), 1);
    await other.store.close();
  });

  for (const [change, expected] of [
    ['update api_keys set disabled_at = 1', 'disabled'],
    ['delete from api_keys', 'unknown'],
    ['update api_keys set digest = public_id', 'unknown'],
    [
      `insert or replace into api_keys (id, name, roles, permissions, public_id, digest, created_at)
        select 'new', name, roles, permissions, 'new', 'new', created_at from api_keys`,
      'unknown',
    ],
    ["update api_keys set digest = 'new'; delete from key_changes", 'unknown'],
    ["update api_keys set digest = 'new'; update key_changes set mark = 'new', key_id = 'other'", 'unknown'],
  ] as const) {
    it(`is looked up again after a change by hand: ${change}`, async () => {
      await enter();
      await changeDirectly(test.database, change);
      assert.equal(await enter(), expected);
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
    for (let attempt = 0; attempt < 1000; attempt += 1) await authenticate(test.keys, `unknown${attempt}`);
    assert.equal(counted.asked(), 1001);
    await enter();
    assert.equal(counted.asked(), 1001);
  });
});

/** Keys that change, with the notifications of a store. */
class ChangingKeys {
  #changes = new KeyChanges();
  isKnown = true;
  change = (...ids: string[]) => this.#changes.add(ids.map(idOf));
  changeUnknown = () => this.#changes.addUnknown();
  revision = () => (this.isKnown ? this.#changes.revision : undefined);
  keysChangedSince = (revision: number) => this.#changes.since(revision);
}

describe('an open key store that remembers one secret', () => {
  it('looks each of two up again that take turns', async () => {
    const keys = await openKeys({ database: tempStore(), maxVerifiedKeys: 1 });
    const [one, other] = [
      await keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR),
      await keys.create({ name: 'B', roles: ['GUEST'] }, OPERATOR),
    ];
    const isKnown = ({ key: secret }: { key: string }) =>
      keys.authenticator.findVerified(digestSecret(secret)) !== undefined;
    for (const { key: secret } of [one, other]) await authenticate(keys, secret);
    assert.deepEqual([isKnown(one), isKnown(other)], [false, true]);
    await keys.close();
  });
});

describe('the cache of verified keys', () => {
  const entryOf = (...ids: [string, ...string[]]) => {
    const [key, ...ancestors] = ids.map((id) => storedKey(id));
    const chain: Chain = { keys: [key!, ...ancestors], isComplete: true };
    return { principal: principalOf(chain, createCatalog()), expiresAt: null };
  };
  let store: ChangingKeys;
  let verified: VerifiedKeys;
  beforeEach(() => {
    store = new ChangingKeys();
    verified = new VerifiedKeys({ repository: store, counts: { evicted: 0 } });
    for (const [digest, chain] of Object.entries({ a: ['a'], b: ['b'], aChild: ['child', 'a'], other: ['a'] }))
      verified.set(digest, 0, entryOf(...(chain as [string])));
  });
  const known = () => ['a', 'b', 'aChild', 'other'].filter((digest) => verified.get(digest, () => 0));

  it('forgets a key that changed, by each of its secrets, with its child keys, and no other', () => {
    store.change('a');
    assert.deepEqual(known(), ['b']);
    verified.set('a', 1, entryOf('a'));
    store.change('child', 'unknown');
    assert.deepEqual(known(), ['a', 'b']);
  });

  it("forgets only a key's children if only that changed", () => {
    store.change('child');
    assert.deepEqual(known(), ['a', 'b', 'other']);
  });

  it('forgets all where any key may have changed', () => {
    store.changeUnknown();
    assert.deepEqual(known(), []);
  });

  it('forgets all after more changes than are remembered, and only what changed up to there', () => {
    for (let count = 0; count < MAX_CHANGES; count += 1) store.change('unknown');
    assert.deepEqual(known(), ['a', 'b', 'aChild', 'other']);
    for (let count = 0; count <= 2 * MAX_CHANGES; count += 1) store.change('unknown');
    assert.deepEqual(known(), []);
  });

  it('knows nothing while changes are not known, and again what did not change meanwhile', () => {
    store.isKnown = false;
    assert.deepEqual(known(), []);
    verified.set('c', 0, entryOf('c'));
    store.change('b');
    store.isKnown = true;
    assert.deepEqual(known(), ['a', 'aChild', 'other']);
    assert.equal(
      verified.get('c', () => 0),
      undefined,
    );
  });

  it('takes no key that changed, or whose creator did, since the store was asked', () => {
    store.change('a');
    verified.set('a', 0, entryOf('a'));
    verified.set('aChild', 0, entryOf('child', 'a'));
    verified.set('c', 0, entryOf('c'));
    assert.deepEqual(known(), ['b']);
    assert.ok(verified.get('c', () => 0));
    store.changeUnknown();
    verified.set('c', 1, entryOf('c'));
    verified.set('c', undefined, entryOf('c'));
    assert.equal(
      verified.get('c', () => 0),
      undefined,
    );
  });

  it('forgets a key that was verified again after it had changed, once it changes again', () => {
    store.change('child');
    verified.set('aChild', 1, entryOf('child', 'a'));
    store.change('a');
    assert.deepEqual(known(), ['b']);
  });

  it('has at most as many secrets as configured, and keeps most of somewhat more that alternate', () => {
    let state = 1;
    const random = () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
    const counts = { evicted: 0 };
    const turning = new VerifiedKeys({ repository: store, maxVerifiedKeys: 1000, random, counts });
    const digests = Array.from({ length: 1050 }, (_, index) => String(index));
    let hits = 0;
    for (let round = 0; round < 10; round += 1)
      for (const digest of digests) {
        if (turning.get(digest, () => 0)) hits += 1;
        else turning.set(digest, 0, entryOf(digest));
      }
    assert.equal(digests.filter((digest) => turning.get(digest, () => 0)).length, 1000);
    assert.ok(hits > 0.8 * 9 * digests.length, `${hits} hits`);
    assert.equal(turning.size, 1000);
    assert.equal(counts.evicted, digests.length * 10 - hits - 1000);
  });
});
