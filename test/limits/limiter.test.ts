import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { Restrictions } from '../../src/keys/authorization/restrictions.ts';
import type { Limit } from '../../src/keys/basics/limit.ts';
import type { LimitStore } from '../../src/limits/lease.ts';
import { type Answer, Limiter } from '../../src/limits/limiter.ts';
import { describeOnEach } from '../support/dialects.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

describeOnEach('what a process knows of limits', () => {
  let test: TestKeys;
  /** The number of limits in each request to the store. */
  let asked: number[];
  let failure: Error | undefined;
  let scheduled: { work: () => void; delay: number }[];
  let limiter: Limiter;
  beforeEach(async () => {
    test = await openTestKeys({ asServer: true });
    [asked, failure, scheduled] = [[], undefined, []];
    const store: LimitStore = {
      lease(requests) {
        asked.push(requests.length);
        return failure ? Promise.reject(failure) : test.store.limits.lease(requests);
      },
    };
    const elapsed = () => test.time.now;
    const schedule = (work: () => void, delay: number) => void scheduled.push({ work, delay });
    limiter = new Limiter({ store, elapsed, schedule, id: 'this' });
  });
  afterEach(() => test.store.close());

  let count = 0;
  const create = async (limit: Limit): Promise<Restrictions> => {
    count += 1;
    const { apiKey: key } = await test.keys.create(
      { name: `Key ${count}`, roles: ['GUEST'], limits: [limit] },
      OPERATOR,
    );
    return { limitsId: key.id, limits: [{ keyId: key.id, limit }], networks: [], audiences: [] };
  };
  const isWithin = (answer: Answer) => answer !== 'gone' && answer.isWithin;
  const enter = (restrictions: Restrictions, times = 1) =>
    Promise.all(Array.from({ length: times }, async () => limiter.enter(restrictions))).then((answers) =>
      answers.map(isWithin),
    );
  const lettingIn = async (restrictions: Restrictions, times: number) =>
    (await enter(restrictions, times)).filter(Boolean).length;

  it('is asked for once by requests that come together', async () => {
    const restrictions = await create('5/h');
    assert.equal(await lettingIn(restrictions, 100), 5);
    assert.ok(asked.length <= 3, asked.join());
  });

  it('is asked for in one transaction where several keys need it', async () => {
    const keys = await Promise.all(Array.from({ length: 20 }, () => create('5/h')));
    const answers = await Promise.all(keys.map((restrictions) => lettingIn(restrictions, 7)));
    assert.deepEqual(answers, Array(20).fill(5));
    assert.ok(asked.length <= 4, asked.join());
  });

  it('answers at once that nothing is left, until there is something again', async () => {
    const restrictions = await create('2/h');
    assert.deepEqual(await enter(restrictions, 2), [true, true]);
    const before = asked.length;
    for (let index = 0; index < 50; index += 1) {
      const answer = limiter.enter(restrictions);
      assert.ok(!(answer instanceof Promise) && !isWithin(answer));
    }
    assert.equal(asked.length, before);
    test.time.now += 1_800_000;
    assert.deepEqual(await enter(restrictions, 2), [true, false]);
  });

  it('accepts by a lease without a promise', async () => {
    const restrictions = await create('1000/m');
    for (let index = 0; index < 14; index += 1) await enter(restrictions);
    const answers = Array.from({ length: 5 }, () => limiter.enter(restrictions));
    assert.ok(answers.every((answer) => !(answer instanceof Promise) && isWithin(answer)));
    assert.ok(asked.length < 8, asked.join());
  });

  it('fails with the store for waiting requests, and recovers once it answers', async () => {
    const restrictions = await create('5/h');
    failure = new Error('no answer');
    const answers = await Promise.allSettled([limiter.enter(restrictions), limiter.enter(restrictions)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    failure = undefined;
    assert.equal(await lettingIn(restrictions, 9), 5);
  });

  it('returns the rest of a lease when that ends, or the program does', async () => {
    const restrictions = await create('1000/m');
    const left = async () => {
      const [grant] = await test.store.limits.lease([
        {
          holder: 'other',
          turn: 1,
          used: 0,
          limits: [{ ...restrictions.limits[0]!, unusedAt: 0 }],
          waiting: 0,
          ahead: 0,
          lifeUs: 0,
        },
      ]);
      return 1000 - grant!.limits[0]!.leased;
    };
    for (let index = 0; index < 6; index += 1) await enter(restrictions);
    const held = 1000 - (await left());
    assert.ok(held > 0);
    await limiter.finish();
    assert.equal(await left(), 1000);
    for (let index = 0; index < 6; index += 1) await enter(restrictions);
    assert.ok((await left()) < 1000);
    const { work, delay } = scheduled.at(-1)!;
    assert.equal(delay, 6001, 'a tenth of a minute');
    test.time.now += delay;
    work();
    await limiter.finish();
    assert.equal(await left(), 1000);
    await limiter.finish();
    assert.deepEqual(await enter(restrictions), [true], 'it can be asked for again');
  });

  it('is forgotten when unused', async () => {
    const restrictions = await create('5/h');
    assert.equal(await lettingIn(restrictions, 6), 5);
    const [sweep] = scheduled;
    assert.equal(sweep?.delay, 60_000);
    sweep.work();
    const before = asked.length;
    assert.equal(await lettingIn(restrictions, 1), 0);
    assert.equal(asked.length, before, 'that nothing is left is still known');
    test.time.now += 3_600_000;
    const sweeps = scheduled.filter(({ delay }) => delay === 60_000);
    sweeps.at(-1)!.work();
    assert.equal(scheduled.filter(({ delay }) => delay === 60_000).length, sweeps.length, 'there is nothing to sweep');
    assert.equal(await lettingIn(restrictions, 6), 5);
  });
});
