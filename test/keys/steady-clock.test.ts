import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { KeysService } from '../../src/keys/service.ts';
import { SteadyClock } from '../../src/keys/steady-clock.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';

const [MINUTE, HOUR] = [60_000, 3_600_000];

describe('the clock', () => {
  /** A clock of a machine, which can be set, and the clock over it. */
  const clocks = (time: number, remembered: number) => {
    const machine = { time, elapsed: 0 };
    const clock = new SteadyClock({ read: () => machine.time, elapsed: () => machine.elapsed }, remembered);
    return { machine, clock };
  };

  it('follows that of the machine forwards, and backwards by up to a minute', () => {
    const { machine, clock } = clocks(10 * HOUR, 0);
    for (const [set, shown] of [
      [10 * HOUR, 10 * HOUR],
      [10 * HOUR - MINUTE, 10 * HOUR - MINUTE],
      [8 * HOUR, 10 * HOUR - MINUTE],
      [9 * HOUR, 10 * HOUR - MINUTE],
      [11 * HOUR, 11 * HOUR],
    ] as const) {
      machine.time = set;
      assert.deepEqual([clock.now(), clock.behind()], [shown, shown - set]);
    }
  });

  it('starts at what is remembered, and goes on by itself while that of the machine is behind', () => {
    const { machine, clock } = clocks(HOUR, 3 * HOUR);
    assert.equal(clock.now(), 3 * HOUR - MINUTE);
    [machine.time, machine.elapsed] = [HOUR / 2, HOUR + 0.5];
    assert.equal(clock.now(), 4 * HOUR - MINUTE);
    [machine.time, machine.elapsed] = [5 * HOUR, 2 * HOUR];
    assert.equal(clock.now(), 5 * HOUR);
    [machine.time, machine.elapsed] = [0, 2 * HOUR + MINUTE];
    assert.equal(clock.now(), 5 * HOUR, 'a minute later, a minute back');
  });
});

describeOnEach('the clock of the machine is set back by two hours', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  /** A program that opens the store while the clock is two hours behind. */
  const later = async () => {
    const time = test.time.now - 2 * HOUR;
    const clock = new SteadyClock({ read: () => time, elapsed: () => 0 }, await test.store.repository.latestTime());
    return new KeysService({ ...test.options, clock: () => clock.now() });
  };
  const expiring = async () => {
    const { key: secret } = await test.keys.create({ name: 'A', roles: ['GUEST'], expiresIn: '1h' }, OPERATOR);
    test.time.now += HOUR + 2 * MINUTE;
    assert.deepEqual(await reasonOf(test.keys, secret), 'expired');
    return secret;
  };
  const reasonOf = async (keys: KeysService, secret: string) => {
    const result = await authenticate(keys, secret);
    return 'principal' in result ? 'accepted' : result.refused;
  };
  const writes: Record<string, () => Promise<unknown>> = {
    'a change of another key': () => test.keys.create({ name: 'B', roles: ['GUEST'] }, OPERATOR),
    'the use of another key': async () => {
      test.time.now -= HOUR;
      const { key: secret } = await test.keys.create({ name: 'B', roles: ['GUEST'] }, OPERATOR);
      test.time.now += HOUR;
      assert.equal(await reasonOf(test.keys, secret), 'accepted');
      await test.keys.finishActivity();
    },
    'a refused request': () => test.keys.finishActivity(),
    'the stop of a server': () => test.keys.store.rememberTime(),
  };
  for (const [what, write] of Object.entries(writes)) {
    it(`and an expired key stays expired, after ${what}`, async () => {
      const secret = await expiring();
      await write();
      assert.equal(await reasonOf(await later(), secret), 'expired');
    });
  }

  it('and the store keeps the later time', async () => {
    await test.keys.store.rememberTime();
    const latest = test.time.now;
    test.time.now -= 2 * HOUR;
    await test.keys.store.rememberTime();
    assert.equal(await test.store.repository.latestTime(), latest);
  });
});
