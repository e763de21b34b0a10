import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { OPERATOR, requirePermission } from '../../../src/keys/authorization/principal.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys, whileUseWaits } from '../../support/keys.ts';
import { until } from '../../support/until.ts';

describeOnEach('activity, written in the background', (dialect) => {
  let test: TestKeys;
  let scheduled: { work: () => void; delay: number }[];
  beforeEach(async () => {
    scheduled = [];
    test = await openTestKeys({
      lockWaitMs: 100,
      schedule: (work, delay) => scheduled.push({ work, delay }),
    });
  });
  afterEach(() => test.store.close());
  /** Runs what was scheduled, as if it were due. Uses during a flush are scheduled at its end. */
  const elapse = async () => {
    await until(() => scheduled.length > 0);
    for (const { work } of scheduled.splice(0)) work();
  };
  const create = (name: string) =>
    test.keys.create({ name, permissions: ['ME:READ_OWN', 'API_KEY:CREATE_ANY'] }, OPERATOR);
  const usesOf = async (id: string) => (await test.keys.useOf([id])).get(id)?.uses;
  const refusals = async () =>
    (await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR)).toReversed().map(({ after }) => after);
  /** Locks the store while `work` runs. */
  const whileLocked = async (work: () => Promise<unknown>) => {
    const other = await openTestKeys({ database: test.database });
    await other.store.repository.write(async () => void (await work()));
    await other.store.close();
  };

  it('comes two seconds after the first use, and again two seconds after the next one', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    for (const uses of [2, 4]) {
      for (let use = 0; use < 2; use += 1) await authenticate(test.keys, secret);
      await until(() => scheduled.length > 0);
      assert.deepEqual(
        scheduled.map(({ delay }) => delay),
        [2000],
      );
      await elapse();
      await until(async () => (await usesOf(key.id)) === uses);
    }
  });

  it('comes two seconds after a refusal, too, and has it beside a use', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    await authenticate(test.keys, 'nonsense');
    assert.deepEqual(
      scheduled.map(({ delay }) => delay),
      [2000],
    );
    await authenticate(test.keys, secret);
    await elapse();
    await until(async () => (await usesOf(key.id)) === 1);
    assert.deepEqual(await refusals(), [{ reason: 'malformed', count: 1 }]);
  });

  it('is tried again later where the store cannot take it, and loses nothing', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    requirePermission(result.principal, 'ME', 'READ_OWN');
    await authenticate(test.keys, 'nonsense');
    const failing = async () => {
      await elapse();
      await until(() => scheduled.length === 2);
    };
    // On PostgreSQL, other changes do not delay the usage.
    await whileLocked(() => (dialect === 'postgres' ? whileUseWaits(test, failing) : failing()));
    const delays = scheduled.map(({ delay }) => delay);
    assert.deepEqual([delays, await usesOf(key.id)], [[2000, 2000], undefined]);
    await elapse();
    await until(async () => (await usesOf(key.id)) === 1);
    assert.deepEqual(test.usedGrants.of(key.id), ['ME:READ_OWN']);
    assert.deepEqual(await refusals(), [{ reason: 'malformed', count: 1 }]);
  });

  for (const [when, isLocked] of [
    ['at once', false],
    ['a little later where the store cannot take it at once', true],
  ] as const) {
    it(`begins the grace of a rotation ${when}`, async () => {
      const { apiKey: key } = await create('CI');
      const { key: secret } = await test.keys.rotate(key.id, { grace: '1h', activate: 'on-first-use' }, OPERATOR);
      await authenticate(test.keys, secret);
      assert.equal(scheduled[0]!.delay, 0);
      if (isLocked)
        await whileLocked(async () => {
          await elapse();
          await until(() => scheduled.length > 0);
        });
      else scheduled.splice(1); // Discards what is scheduled.
      await elapse();
      const endOf = async () => (await test.keys.findById(key.id, OPERATOR))!.rotation!.previousEndsAt;
      await until(async () => (await endOf()) !== null);
      assert.equal(await endOf(), test.time.now + 3_600_000);
    });
  }

  it('begins the grace of a second rotation, which came while the first was written in vain', async () => {
    const { apiKey: key } = await create('CI');
    let meanwhile: (() => Promise<unknown>) | undefined;
    const failing = await openTestKeys({
      database: test.database,
      repository: (repository) => ({
        ...repository,
        async write(work) {
          const next = meanwhile;
          meanwhile = undefined;
          await next?.();
          if (next) throw new KeysError('STORE_LOCKED', 'The store is locked.');
          return repository.write(work);
        },
      }),
    });
    const useNewSecret = async () => {
      const { key: secret } = await test.keys.rotate(key.id, { grace: '1h', activate: 'on-first-use' }, OPERATOR);
      assert.ok('principal' in (await authenticate(failing.keys, secret)));
    };
    await useNewSecret();
    meanwhile = async () => {
      await test.keys.finishRotation(key.id, OPERATOR);
      await useNewSecret();
    };
    await assert.rejects(failing.keys.finishActivity(), { code: 'STORE_LOCKED' });
    await failing.keys.finishActivity();
    const { rotation } = (await test.keys.findById(key.id, OPERATOR))!;
    assert.equal(rotation!.previousEndsAt, test.time.now + 3_600_000);
    await failing.store.close();
  });

  it('asks nothing of the store where there was no activity', async () => {
    let writes = 0;
    const idle = await openTestKeys({
      database: test.database,
      repository: (repository) => ({
        ...repository,
        write: (work) => {
          writes += 1;
          return repository.write(work);
        },
      }),
    });
    await idle.keys.finishActivity();
    assert.equal(writes, 0);
    await authenticate(idle.keys, 'nonsense');
    await idle.keys.finishActivity();
    assert.equal(writes, 1);
    await idle.store.close();
  });

  it('passes over the new secret of a key that is gone, without losing the use of others', async () => {
    const [gone, kept] = [await create('Gone'), await create('Kept')];
    const { key: secret } = await test.keys.rotate(gone.apiKey.id, { activate: 'on-first-use' }, OPERATOR);
    await authenticate(test.keys, secret);
    await authenticate(test.keys, kept.key);
    await test.keys.delete([gone.apiKey.id], OPERATOR);
    await test.keys.finishActivity();
    assert.deepEqual([await usesOf(gone.apiKey.id), await usesOf(kept.apiKey.id)], [undefined, 1]);
  });

  it('has each kind of refusal once in ten minutes, and how often it came meanwhile when they are over', async () => {
    const refuse = async (times: number) => {
      for (let time = 0; time < times; time += 1) await authenticate(test.keys, 'nonsense');
    };
    const { key: secret, apiKey: key } = await create('CI');
    let uses = 0;
    /** Counts the writes. Also writes a use, in order to wait for it. */
    const written = async () => {
      await authenticate(test.keys, secret);
      uses += 1;
      await elapse();
      await until(async () => (await usesOf(key.id)) === uses);
      return (await refusals()).map((after) => after!['count']);
    };
    await refuse(3);
    assert.deepEqual(await written(), [1]);
    test.time.now += 599_999;
    await refuse(1);
    assert.deepEqual(await written(), [1]);
    test.time.now += 1;
    await refuse(5);
    assert.deepEqual(await written(), [1, 3, 1]);
    test.time.now += 600_000;
    assert.deepEqual(await written(), [1, 3, 1, 4]);
  });

  // On PostgreSQL the same is kept, but this state takes longer to reach.
  if (dialect === 'sqlite') {
    it('keeps 1,000 refusals at most while the store cannot take them', async () => {
      const impatient = await openTestKeys({ asServer: true, database: test.database, lockWaitMs: 1 });
      await whileLocked(async () => {
        for (let written = 0; written < 1000; written += 5) {
          for (let request = 0; request < 6; request += 1)
            await authenticate(impatient.keys, createSecret(randomBytes).text);
          await assert.rejects(impatient.keys.finishActivity(), { code: 'STORE_LOCKED' });
          impatient.time.now += 600_000;
        }
      });
      await impatient.keys.finishActivity();
      await impatient.store.close();
      const { entries } = (await test.keys.audit.check()).verification as { entries: number };
      assert.equal(entries, 1000);
    });
  }

  it('names the first five of the permissions that were missing', async () => {
    const { key: secret } = await create('CI');
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    await assert.rejects(test.keys.create({ name: 'Child', roles: ['ADMIN'] }, result.principal));
    await test.keys.finishActivity();
    const [after] = await refusals();
    assert.equal((after!['missing'] as string[]).length, 5);
  });
});
