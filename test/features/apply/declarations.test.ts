import assert from 'node:assert/strict';
import Database from 'better-sqlite3';
import type { AppliedKeys, ApplyOptions } from '../../../src/features/apply/apply.ts';
import { DeclarationError } from '../../../src/keys/basics/document.ts';

import { STEPS } from '../../../src/keys/basics/steps.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { A, applyDeclared, B, C } from './declared-keys.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { failDelivery } from '../../support/delivery.ts';
import { Declarations } from '../../../src/features/apply/apply.ts';

describe('applying declared keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const apply = (declared: readonly object[], options?: ApplyOptions, actor?: Actor) =>
    applyDeclared(test.keys, declared, options, actor);
  const all = async () =>
    (await test.keys.list({ first: 500 }, OPERATOR)).keys.toSorted((a, b) => a.name.localeCompare(b.name));
  const names = async () => (await all()).map(({ name }) => name);
  const find = async (name: string) => (await test.keys.findByName(name, OPERATOR))!;
  const audit = async () =>
    (await test.keys.audit.read({}, OPERATOR)).map(({ action, apiKey: key }) => `${action} ${key?.name}`).toReversed();
  const counts = async (...args: Parameters<typeof apply>) => {
    const { plan } = await apply(...args);
    return [plan.creates.length, plan.updates.length, plan.deletes.length, plan.unchanged];
  };

  it('makes new ones, which work and are marked as managed', async () => {
    const end = '2031-01-01T00:00:00Z';
    const { plan, created } = await apply([
      { ...A, name: ' A ', description: ' For A ', expiresAt: end },
      { ...B, enabled: false },
    ]);
    assert.deepEqual(
      plan.creates.map(({ name }) => name),
      ['A', 'B'],
    );
    assert.deepEqual(
      created.map(({ apiKey }) => apiKey),
      await all(),
    );
    const [first, second] = created;
    assert.deepEqual(first!.apiKey, {
      id: first!.apiKey.id,
      name: 'A',
      description: 'For A',
      owner: null,
      tags: [],
      metadata: null,
      roles: ['GUEST'],
      permissions: [],
      limits: [],
      allowFrom: null,
      audience: null,
      publicId: first!.key.slice(4, 16),
      createdAt: test.time.now,
      createdBy: null,
      expiresAt: Date.parse(end),
      disabledAt: null,
      managed: true,
      person: null,
      rotation: null,
    });
    assert.equal(second!.apiKey.disabledAt, test.time.now);
    assert.ok('principal' in (await authenticate(test.keys, first!.key)));
    assert.deepEqual(await audit(), ['CREATE A', 'CREATE B']);
  });

  it('changes an existing key to exactly what is declared, except for its secret and whether it is enabled', async () => {
    const { key: secret, apiKey: key } = await test.keys.create(
      { ...A, description: 'Old', permissions: ['ME:READ_OWN'], expiresIn: '1d' },
      OPERATOR,
    );
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const { plan } = await apply([{ name: 'A', permissions: ['DOCKER:READ_ANY'] }]);
    const expected = {
      ...key,
      description: null,
      roles: [],
      permissions: ['DOCKER:READ_ANY'],
      expiresAt: null,
      disabledAt: test.time.now,
    };
    assert.deepEqual(await find('A'), expected);
    assert.deepEqual(
      plan.updates.map(({ after }) => after),
      [expected],
    );
    assert.deepEqual(await authenticate(test.keys, secret), { refused: 'disabled', publicId: key.publicId });
  });

  it('enables or disables a key if declared, with separate entries in the audit log', async () => {
    await apply([A, B]);
    await apply([
      { ...A, enabled: false },
      { ...B, description: 'New', enabled: false },
    ]);
    await apply([{ ...A, enabled: true }, B]);
    assert.deepEqual(
      (await all()).map(({ disabledAt }) => disabledAt !== null),
      [false, true],
    );
    assert.deepEqual(await audit(), [
      'CREATE A',
      'CREATE B',
      'DISABLE A',
      'UPDATE B',
      'DISABLE B',
      'ENABLE A',
      'UPDATE B',
    ]);
  });

  it('writes nothing if all is as declared, whatever the order and case of the lists', async () => {
    const roles = { name: 'Lists', roles: ['GUEST', 'VIEWER'], permissions: ['ME:READ_OWN', 'DOCKER:READ_ANY'] };
    await apply([A, roles]);
    const watcher = new Database(test.store.location);
    try {
      const version = () => watcher.pragma('data_version', { simple: true });
      const before = version();
      const again = {
        name: 'Lists',
        roles: ['viewer', 'guest', 'VIEWER'],
        permissions: ['docker:read_any', 'me:read_own'],
      };
      for (const prune of [false, true]) assert.deepEqual(await counts([again, A], { prune }), [0, 0, 0, 2]);
      await test.keys.feature(Declarations).plan([], { prune: true }, OPERATOR);
      // It does not wait for the write lock either.
      watcher.exec('BEGIN IMMEDIATE');
      const { plan, created } = await apply([again, A]);
      assert.deepEqual([plan.unchanged, created], [2, []]);
      watcher.exec('ROLLBACK');
      assert.equal(version(), before);
      await apply([{ ...again, roles: ['VIEWER'] }, A]);
      assert.notEqual(version(), before, 'a change is seen');
    } finally {
      watcher.close();
    }
    assert.deepEqual(await audit(), ['CREATE A', 'CREATE Lists', 'UPDATE Lists']);
  });

  it('adds to the grants of a key, and takes from them', async () => {
    await apply([A]);
    for (const grants of [
      { roles: ['GUEST', 'VIEWER'], permissions: ['ME:READ_OWN', 'DOCKER:READ_ANY'] },
      { roles: ['VIEWER'], permissions: ['ME:READ_OWN', 'DOCKER:READ_ANY', 'VMS:READ_ANY'] },
      { roles: ['VIEWER', 'CONNECT'], permissions: ['ME:READ_OWN'] },
    ]) {
      assert.deepEqual(await counts([{ ...A, ...grants }]), [0, 1, 0, 0]);
      const { roles, permissions } = await find('A');
      assert.deepEqual({ roles, permissions }, grants);
    }
  });

  it('leaves a key as it is that is disabled or enabled already', async () => {
    const declared = [
      { ...A, enabled: false },
      { ...B, enabled: true },
    ];
    await apply(declared);
    const { disabledAt } = await find('A');
    test.time.now += 1000;
    assert.deepEqual(await counts(declared), [0, 0, 0, 2]);
    assert.deepEqual([(await find('A')).disabledAt, (await find('B')).disabledAt], [disabledAt, null]);
  });

  it('may give the name of a pruned key to one that looks like it', async () => {
    await apply([{ ...A, name: 'Admin' }]);
    const { plan } = await apply([{ ...A, name: '\u0410dmin' }], { prune: true });
    assert.deepEqual([plan.confusable, await names()], [[], ['\u0410dmin']]);
  });

  it('accepts a past expiry only where the key has it already', async () => {
    const past = (end: string) => ({ ...A, expiresAt: end });
    const issues = async (declared: readonly object[]) => {
      const error: unknown = await apply(declared).catch((error: unknown) => error);
      assert.ok(error instanceof DeclarationError);
      return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    };
    await apply([past('2030-02-01T00:00:00Z')]);
    test.time.now = Date.UTC(2030, 2, 1);
    assert.deepEqual(await counts([past('2030-02-01T02:00:00+02:00')]), [0, 0, 0, 1]);
    assert.deepEqual(await issues([B, past('2030-02-02T00:00:00Z')]), [
      'keys.1.expiresAt: "2030-02-02T00:00:00.000Z" is in the past. Choose a later date.',
    ]);
    assert.match(
      (await issues([{ ...B, expiresAt: '2030-02-01T00:00:00Z' }]))[0]!,
      /^keys\.0\.expiresAt: .* is in the past/,
    );
    assert.match((await issues([{ ...B, expiresAt: '2050-01-01T00:00:00Z' }]))[0]!, /more than ten years away/);
    assert.deepEqual(await names(), ['A']);
  });

  describe('with prune', () => {
    it('deletes keys created by apply, and never others, not even those that it changed', async () => {
      await test.keys.create(A, OPERATOR);
      await test.keys.create({ ...C, name: 'Other' }, OPERATOR);
      await apply([{ ...A, description: 'Adopted' }, B, C]);
      assert.equal((await find('A')).managed, false);
      assert.deepEqual(await counts([C]), [0, 0, 0, 1]);
      assert.deepEqual(await counts([C], { prune: true }), [0, 0, 1, 1]);
      assert.deepEqual(await names(), ['A', 'C', 'Other']);
      assert.deepEqual(await counts([], { prune: true }), [0, 0, 1, 0]);
      assert.deepEqual(await names(), ['A', 'Other']);
    });

    it('changes nothing where keys would be deleted that the pruned ones created, and names them', async () => {
      const { created } = await apply([{ name: 'Parent', roles: ['ADMIN'] }, A]);
      const parent = await authenticate(test.keys, created[0]!.key);
      assert.ok('principal' in parent);
      await createPrincipal(test.keys, { name: 'Child', roles: ['GUEST'] }, parent.principal);
      const refused = { code: 'PRUNE_REFUSED', message: /because pruned keys created them: "Child"\./ };
      await assert.rejects(apply([{ ...A, description: 'New' }, B], { prune: true }), refused);
      await assert.rejects(test.keys.feature(Declarations).plan([], { prune: true }, OPERATOR), refused);
      assert.deepEqual(await names(), ['A', 'Child', 'Parent']);
      assert.equal((await find('A')).description, null);

      // Deleting a key also deletes the keys that it declared.
      await test.keys.delete([(await find('Child')).id], OPERATOR);
      await apply([{ name: 'Declared child', roles: ['GUEST'] }], {}, parent.principal);
      assert.equal((await find('Declared child')).createdBy, parent.principal.apiKey.id);
      await assert.rejects(apply([A, { name: 'Declared child', roles: ['GUEST'] }], { prune: true }), {
        code: 'PRUNE_REFUSED',
      });
      assert.deepEqual(await counts([A], { prune: true }), [0, 0, 2, 1]);
      assert.deepEqual(await names(), ['A']);
    });
  });

  describe('in one transaction', () => {
    const thousand = Array.from({ length: 1000 }, (_, index) => ({ name: `Key ${index}`, roles: ['VIEWER'] }));

    it('prepares the delivery before anything is committed, and changes nothing where that fails', async () => {
      await apply([A, B]);
      const seen: string[] = [];
      const prepare = ({ created }: AppliedKeys) => {
        const other = new Database(test.store.location, { readonly: true });
        seen.push(
          ...created.map(({ apiKey }) => apiKey.name),
          String(other.prepare('SELECT count(*) FROM api_keys').pluck().get()),
        );
        other.close();
        throw new KeysError('OUTPUT_FAILED', 'No room.');
      };
      const declared = [{ ...A, description: 'New' }, C];
      const delivery = { prepare, deliver: () => assert.fail('nothing was committed') };
      await assert.rejects(apply(declared, { prune: true, delivery }), { code: 'OUTPUT_FAILED', message: 'No room.' });
      assert.deepEqual(seen, ['C', '2']);
      assert.deepEqual(await names(), ['A', 'B']);
      assert.deepEqual(await audit(), ['CREATE A', 'CREATE B']);
    });

    it('makes 1,000 keys or none', async () => {
      const file = new Database(test.store.location);
      file.exec(
        `CREATE TRIGGER broken BEFORE INSERT ON api_keys WHEN NEW.name = 'Key 999' BEGIN SELECT RAISE(ABORT, 'broken'); END`,
      );
      await assert.rejects(apply(thousand), { code: 'STORE_FAILED' });
      assert.deepEqual([await names(), await audit()], [[], []]);
      file.exec('DROP TRIGGER broken');
      file.close();
      assert.deepEqual(await counts(thousand), [1000, 0, 0, 0]);
      assert.deepEqual(await counts(thousand), [0, 0, 0, 1000]);
      const verified = (await test.keys.audit.check()).verification;
      assert.equal('entries' in verified && verified.entries, 1000);
    });

    it('asks the store as often for 1,000 changes of keys as for 500, or twice as often', async () => {
      const traced: string[] = [];
      const trace = (step: unknown) => void traced.push((step as { fields: { sql: string } }).fields.sql);
      // Subscribe before the store is opened, which decides whether statements are published.
      STEPS.trace.subscribe(trace);
      const opened = await openTestKeys();
      try {
        const { principal } = await createPrincipal(opened.keys, { name: 'Admin', roles: ['ADMIN'] });
        const statements = async (count: number, roles: string[], description: string) => {
          const declared = thousand.slice(0, count).map((key) => ({ ...key, roles, description }));
          traced.length = 0;
          const { plan } = await applyDeclared(opened.keys, declared, {}, principal);
          return { changed: plan.creates.length + plan.updates.length, count: traced.length };
        };
        assert.equal((await statements(1000, ['GUEST'], 'made')).changed, 1000);
        const half = await statements(500, ['GUEST'], 'described');
        const whole = await statements(1000, ['GUEST'], 'described anew');
        const widened = await statements(1000, ['VIEWER'], 'widened');
        assert.deepEqual([half.changed, whole.changed, widened.changed], [500, 1000, 1000]);
        for (const { count } of [whole, widened]) assert.ok(count <= 2 * half.count, `${count} and ${half.count}`);
        assert.ok(half.count < 50, String(half.count));
      } finally {
        STEPS.trace.unsubscribe(trace);
        await opened.store.close();
      }
    });
  });

  describe('and reverting it', () => {
    const applyLost = (...[keys, meanwhile]: [object[], ((applied: AppliedKeys) => Promise<unknown>)?]) =>
      failDelivery((delivery) => apply(keys, { prune: true, delivery }), meanwhile);

    it('leaves the keys as they were', async () => {
      await apply([A, B, C]);
      const before = await all();
      const declared = [
        { ...A, description: 'New', enabled: false },
        { name: 'D', roles: ['GUEST'] },
      ];
      await applyLost(declared, async () => assert.deepEqual(await names(), ['A', 'D']));
      assert.deepEqual(await all(), before);
    });

    it('leaves out a deleted key whose creator was deleted since', async () => {
      const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
      await apply([A], {}, admin.principal);
      await apply([B]);
      await applyLost([], () => test.keys.delete([admin.principal.apiKey.id], OPERATOR));
      assert.deepEqual(await names(), ['B']);
      await apply([A], {}, (await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] })).principal);
      await applyLost([]);
      assert.deepEqual(await names(), ['A', 'Admin', 'B']);
    });

    it('leaves what others have changed since', async () => {
      await apply([A, B]);
      await applyLost([{ ...A, description: 'New' }, C], async ({ created }) => {
        await test.keys.update((await find('A')).id, { description: 'Newer' }, OPERATOR);
        await test.keys.create({ ...B, description: 'Another' }, OPERATOR);
        await test.keys.delete([created[0]!.apiKey.id], OPERATOR);
      });
      assert.deepEqual(
        (await all()).map(({ name, description }) => [name, description]),
        [
          ['A', 'Newer'],
          ['B', 'Another'],
        ],
      );
    });
  });
});
