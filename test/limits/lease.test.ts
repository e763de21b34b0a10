import assert from 'node:assert/strict';
import type { AppliedLimit } from '../../src/keys/authorization/restrictions.ts';
import type { Limit } from '../../src/keys/basics/limit.ts';
import { available, grantLease, type LeaseRequest, computeRate, spend } from '../../src/limits/lease.ts';
import { EPOCH, LeasingProcess, SharedLimits, unusedState } from '../support/leasing.ts';
import { Random } from '../support/random.ts';

const SECOND = 1_000_000;
const limitsOf = (...limits: Limit[]): AppliedLimit[] => limits.map((limit) => ({ keyId: 'key', limit }));

describe('processes that lease a limit', () => {
  for (const limit of ['7/s', '40/s', '100/m', '1000/m', '600000/m', '5/h', '30/budget', '5000/budget'] as const)
    it(`of ${limit} never accept more than one process would, even if they repeat requests or are killed`, () => {
      for (let seed = 1; seed <= 20; seed += 1)
        for (const repeats of [0, 0.1]) {
          const { shared, asked } = simulate(limit, seed, repeats);
          assert.deepEqual(shared.excess(), [], `seed ${seed}`);
          assert.ok(shared.admitted.length > 0 && asked > 0);
        }
    });

  it('of two keys never exceed that of the parent key of both', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = new Random(seed);
      const shared = new SharedLimits();
      const parent: AppliedLimit = { keyId: 'parent', limit: '100/m' };
      const processes = ['one', 'other'].flatMap((keyId) =>
        [1, 2].map((number) => {
          const own = keyId === 'one' ? [{ keyId, limit: '80/m' } as const] : [];
          return new LeasingProcess(shared, [...own, parent], `${keyId} ${number}`);
        }),
      );
      run(random, shared, processes, 2000);
      assert.deepEqual(shared.excess(), [], `seed ${seed}`);
    }
  });
});

describe('processes whose requests count as different numbers', () => {
  it('never accept more than each of their limits has, and spend a budget to its end', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = new Random(seed);
      const shared = new SharedLimits();
      const processes = [1, 1, 3, 5].map((cost, index) => {
        const weighted = (['1000/m', '2500/budget', '1500/uses'] as const).map((limit) => {
          return { keyId: 'key', limit, weight: limit === '1500/uses' ? 1 : cost };
        });
        return new LeasingProcess(shared, weighted, `${index}`);
      });
      run(random, shared, processes, 6000);
      for (let index = 0; index < 300; index += 1) {
        for (const process of processes) process.decide();
        shared.now += SECOND;
      }
      assert.deepEqual(shared.excess(), [], `seed ${seed}`);
      const { unusedAt, leases } = shared.states.get('key 2500/budget')!;
      assert.deepEqual([unusedAt, leases], [2500, []], `seed ${seed}`);
    }
  });
});

describe('one process', () => {
  for (const limit of ['7/s', '100/m', '5/h', '400/m'] as const)
    it(`with a limit of ${limit} decides as if there were no leases`, () => {
      for (let seed = 1; seed <= 10; seed += 1) {
        const random = new Random(seed);
        const shared = new SharedLimits();
        const process = new LeasingProcess(shared, limitsOf(limit), 'only');
        const rate = computeRate(limit);
        let unusedAt = 0;
        for (let index = 0; index < 1000; index += 1) {
          shared.now += Math.floor(random.next() * rate.intervalUs * random.pick([0, 0.2, 1, 2, 30]));
          const expected = available(unusedAt, shared.now, rate) > 0;
          if (expected) unusedAt = spend(unusedAt, shared.now, 1, rate);
          assert.equal(process.decide(), expected, `seed ${seed}, request ${index}`);
        }
      }
    });

  it('asks the store for less than one of a hundred requests, within a limit and far above it', () => {
    for (const perSecond of [1000, 100_000]) {
      const shared = new SharedLimits();
      const process = new LeasingProcess(shared, limitsOf('600000/m'), 'only');
      for (let index = 0; index < 100_000; index += 1) {
        shared.now += SECOND / perSecond;
        process.decide();
      }
      assert.ok(process.asked < 1000, `${perSecond}: ${process.asked}`);
    }
  });
});

describe('a lease', () => {
  let turn = 0;
  const request = (fields: Partial<LeaseRequest> & { limit?: Limit; unusedAt?: number }): LeaseRequest => {
    const { limit = '100/m', unusedAt = 0, ...rest } = fields;
    const limits = [{ keyId: 'key', limit, unusedAt }];
    turn += 1;
    return { holder: 'a', turn, used: 0, limits, waiting: 1, ahead: 0, lifeUs: 6 * SECOND, ...rest };
  };
  const grant = (state: ReturnType<typeof unusedState>, fields: Parameters<typeof request>[0], now: number) => {
    const { states, grant: granted } = grantLease([state], request(fields), EPOCH + now);
    return { state: states[0]!, granted: granted.granted, ahead: granted.ahead };
  };
  const most = (state: ReturnType<typeof unusedState>, now: number, limit: Limit = '100/m') =>
    grant(state, { holder: 'b', waiting: 1000, limit }, now).granted;

  it('is a tenth of the limit at most, and impossible below ten', () => {
    assert.equal(grant(unusedState('100/m'), { ahead: 1000 }, 0).ahead, 10);
    assert.equal(grant(unusedState('19/m'), { ahead: 1000, limit: '19/m' }, 0).ahead, 1);
    assert.equal(grant(unusedState('9/m'), { ahead: 1000, limit: '9/m' }, 0).ahead, 0);
  });

  it('is of a thousandth of a budget at most, so that nearly nothing of one gets lost', () => {
    for (const [limit, ahead] of [
      ['999/budget', 0],
      ['50000/budget', 50],
    ] as const)
      assert.equal(grant(unusedState(limit), { ahead: 1000, limit }, 0).ahead, ahead);
  });

  it('of a changed budget continues with the spent amount, also beyond its end', () => {
    const { state } = grant(unusedState('100/budget'), { waiting: 80, limit: '100/budget' }, 0);
    const lowered = grant(state, { waiting: 1, limit: '50/budget' }, 0);
    assert.deepEqual([lowered.granted, lowered.state.unusedAt], [0, 80]);
    assert.equal(most(lowered.state, 0, '90/budget'), 10);
  });

  it('stays as it is where what asked for it arrives again, and where something older does', () => {
    const older = grant(unusedState('100/m'), { turn: 1, ahead: 10 }, 0);
    const newer = grant(older.state, { turn: 2, used: 10, ahead: 10 }, 0);
    assert.equal(newer.ahead, 10);
    const again = grant(newer.state, { turn: 2, used: 10, ahead: 10, waiting: 0 }, 0);
    assert.deepEqual([again.state, again.ahead], [newer.state, 10]);
    const late = grant(newer.state, { turn: 1, ahead: 10 }, 0);
    assert.deepEqual([late.state, late.granted, late.ahead], [newer.state, 0, 0]);
  });

  it('counts in full while it lasts', () => {
    const { state } = grant(unusedState('100/m'), { ahead: 10 }, 0);
    assert.equal(most(state, 0), 89);
    assert.equal(most(state, 6 * SECOND), 90, 'the one that was accepted is available again');
  });

  it('returns the unused part, and counts the rest from its use', () => {
    const { state } = grant(unusedState('100/m'), { ahead: 10 }, 0);
    const unusedAt = EPOCH + SECOND + 4 * 600_000;
    const { state: settled } = grant(state, { used: 4, unusedAt, waiting: 0 }, SECOND);
    assert.equal(most(settled, SECOND), 96);
    assert.equal(most(grant(state, { used: 0, waiting: 0 }, SECOND).state, SECOND), 100);
  });

  it('of a process that died costs as much as was leased, and no more', () => {
    const { state } = grant(unusedState('100/m'), { ahead: 10 }, 0);
    const end = 7 * SECOND;
    for (const now of [0, SECOND, end - 1, end]) assert.ok(most(state, now) >= 89, `${most(state, now)} at ${now}`);
    assert.equal(most(state, end), 90, 'it counts as used at its end');
    assert.equal(most(state, end + 6 * SECOND), 100);
  });

  it('is not used any more once its time is over, by the clock of its process', () => {
    for (const [wait, expected] of [
      [6 * SECOND - 1, true],
      [6 * SECOND, undefined],
    ] as const) {
      const shared = new SharedLimits();
      const process = new LeasingProcess(shared, limitsOf('100/m'), 'a', 1e12);
      for (let index = 0; index < 5; index += 1) assert.equal(process.decide(), true);
      assert.equal(process.asked, 3, 'of the last lease one is left');
      // A lease starts when it is requested, however long the answer takes.
      process.ask(1);
      process.answer();
      shared.now += wait;
      process.receive();
      assert.equal(process.enter(), expected);
    }
  });

  it('that has counted as used cannot be given back', () => {
    const { state } = grant(unusedState('100/m'), { ahead: 10 }, 0);
    const { state: over } = grant(state, { holder: 'b', waiting: 0 }, 7 * SECOND);
    assert.equal(most(grant(over, { used: 0, waiting: 0 }, 7 * SECOND).state, 7 * SECOND), 90);
  });

  it('covers several limits at once if each allows it, or none', () => {
    const limits = (['100/m', '3/h'] as const).map((limit) => ({ keyId: 'key', limit, unusedAt: 0 }));
    const before = limits.map(({ limit }) => unusedState(limit));
    const asked = { ...request({}), limits, waiting: 5 };
    const { states, grant: granted } = grantLease(before, asked, EPOCH);
    assert.equal(granted.granted, 3);
    assert.equal(most(states[0]!, 0), 97, 'those that the other limit refused do not count');
    assert.equal(grantLease(states, { ...asked, waiting: 1 }, EPOCH).grant.granted, 0);
  });

  it('of a limit that was changed goes on with as many as were used', () => {
    const { state } = grant(unusedState('100/m'), { waiting: 30 }, 0);
    assert.equal(most(state, 0, '50/m'), 20);
    assert.equal(most(state, 0, '200/m'), 170);
    assert.equal(most(state, 0, '10/m'), 0);
    const lowered = grant(state, { waiting: 0, limit: '10/m' }, 0).state;
    assert.equal(most(lowered, 6 * SECOND, '10/m'), 1, 'no more than all are used');
  });

  it('outlasts a clock that is set back by its own duration at most', () => {
    const used = grant(unusedState('100/m'), { waiting: 90, ahead: 10 }, 0).state;
    const back = -86_400 * SECOND;
    const { state } = grant(used, { holder: 'b', waiting: 0 }, back);
    assert.equal(most(state, back), 0);
    assert.equal(most(state, back + 60 * SECOND), 95, 'five were leased, and count as used after the others');
  });
});

function simulate(limit: Limit, seed: number, repeats: number): { shared: SharedLimits; asked: number } {
  const random = new Random(seed);
  const shared = new SharedLimits();
  const processes = Array.from(
    { length: 1 + Math.floor(random.next() * 5) },
    (_, index) => new LeasingProcess(shared, limitsOf(limit), `${index}`, Math.floor(random.next() * 1e12)),
  );
  run(random, shared, processes, 3000, computeRate(limit).intervalUs, repeats);
  return { shared, asked: processes.reduce((sum, { asked }) => sum + asked, 0) };
}

/** Simulates requests, slow answers, returned leases, killed processes and pauses. */
function run(
  random: Random,
  shared: SharedLimits,
  processes: readonly LeasingProcess[],
  steps: number,
  intervalUs = 600_000,
  repeats = 0,
): void {
  for (let step = 0; step < steps; step += 1) {
    const scale = random.pick([0, 0, 0.1, 1, random.chance(0.05) ? 200 : 1]);
    shared.now += Math.floor(random.next() * intervalUs * scale);
    const process = random.pick(processes);
    if (repeats > 0 && random.chance(repeats)) process.repeat(random.pick([0, 0, 1, 2]));
    if (random.chance(0.005)) process.restart(`after step ${step}`);
    else if (!process.isAsking && random.chance(0.02)) process.ask(0);
    else if (process.enter(1 + Math.floor(random.next() * 3)) === undefined) {
      if (random.chance(0.7)) process.answer();
      if (random.chance(0.5)) shared.now += Math.floor(random.next() * intervalUs);
      if (random.chance(0.7)) process.receive();
    }
  }
}
