import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { SteadyClock, UNIT_MS } from '../../src/keys/basics/time.ts';
import { ServerClock } from '../../src/store/server-clock.ts';
import { openStore } from '../../src/store/open.ts';
import { describeOn, describeAlwaysOnEach } from '../support/dialects.ts';
import { idOf, openTestKeys, type TestKeys } from '../support/keys.ts';

const YEAR = 365 * UNIT_MS.d;

describeAlwaysOnEach('a clock that is a year ahead', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const given = async (name: string) => (await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR)).apiKey;
  const latest = () => test.store.repository.latestTime();

  const changes: Record<string, () => Promise<unknown>> = {
    'the creation of a key': () => given('B'),
    'a change of a key': async () => {
      const { id } = (await test.keys.list({ first: 1 }, OPERATOR)).keys[0]!;
      return test.keys.update(id, { description: 'x' }, OPERATOR);
    },
    'the deletion of old entries of the audit log': () => test.keys.audit.prune('1d'),
    'a session': () => test.keys.sessions.begin(idOf('A'), 'digest'),
    'what a server that stops remembers': () => test.keys.store.rememberTime(),
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`refuses ${what}, says why and what to do, and is not remembered`, async () => {
      await given('A');
      const before = await latest();
      test.time.now += YEAR;
      await assert.rejects(change(), {
        code: 'STORE_CLOCK',
        message:
          'The clock says 2031-01-01T00:00:00.000Z, and the store was last written at 2030-01-01T00:00:00.000Z, 365 days ' +
          'before. Nothing was changed, as keys would expire too early. Set the clock. If it is right, run "svc-api ' +
          'apikey doctor --repair clock".',
      });
      assert.equal(await latest(), before);
      test.time.now -= YEAR;
      await change();
    });
  }

  it('does not stop what takes access away, and is not remembered by it', async () => {
    const { id } = await given('A');
    const before = await latest();
    test.time.now += YEAR;
    await test.keys.delete([id], OPERATOR);
    assert.deepEqual(await test.store.repository.list({ limit: 9 }), []);
    assert.equal(await latest(), before);
  });

  it('has no keys disabled as unused: they would all be', async () => {
    await test.store.close();
    test = await openTestKeys({ policy: { disableUnused: '60d' } });
    await given('A');
    test.time.now += YEAR;
    await assert.rejects(test.keys.unusedKeys.disableUnused().next(), { code: 'STORE_CLOCK' });
    assert.equal((await test.keys.list({ first: 1 }, OPERATOR)).keys[0]!.disabledAt, null);
  });

  it('is plausible where a store rests as long, and where it is new', async () => {
    test.time.now += YEAR;
    await given('A');
    test.time.now += 90 * UNIT_MS.d;
    await given('B');
    test.time.now += 180 * UNIT_MS.d;
    await given('C');
    test.time.now += 361 * UNIT_MS.d;
    await assert.rejects(given('D'), { code: 'STORE_CLOCK' });
    test.time.now -= 2 * UNIT_MS.d;
    await given('D');
  });
});

describe('the clock of a running program', () => {
  const clockAt = (time: number, remembered: number) => {
    const machine = { time, elapsed: 0 };
    return {
      machine,
      clock: new SteadyClock({ read: () => machine.time, elapsed: () => machine.elapsed }, remembered),
    };
  };

  it('follows a later time that another program has written', () => {
    const { clock } = clockAt(UNIT_MS.d, 0);
    assert.equal(clock.now(), UNIT_MS.d);
    clock.observe(3 * UNIT_MS.d);
    assert.equal(clock.now(), 3 * UNIT_MS.d - UNIT_MS.m);
  });

  it('goes back with a store whose time was repaired, but not behind that of the machine', () => {
    const { clock, machine } = clockAt(UNIT_MS.d, 3 * UNIT_MS.d);
    assert.equal(clock.now(), 3 * UNIT_MS.d - UNIT_MS.m);
    machine.elapsed = UNIT_MS.s;
    clock.observe(UNIT_MS.d);
    assert.equal(clock.now(), UNIT_MS.d);
    machine.time = 0;
    assert.equal(clock.now(), UNIT_MS.d - UNIT_MS.m);
  });
});

describe('the clock of a database server', () => {
  it('is known as well as its last answers tell, however long they took', () => {
    const clock = new ServerClock();
    const now = performance.now();
    clock.answered(1_000_000, now);
    assert.ok(Math.abs(clock.now() - 1_000_000) < UNIT_MS.m);
    // One that was asked for long ago says little.
    clock.answered(1_000_000 - 500, now - UNIT_MS.h);
    assert.ok(clock.now() >= 1_000_000);
    clock.answered(5_000_000, performance.now());
    assert.ok(Math.abs(clock.now() - 5_000_000) < UNIT_MS.m);
    clock.answered(2_000_000, performance.now());
    assert.ok(Math.abs(clock.now() - 2_000_000) < UNIT_MS.m);
  });
});

describeOn('postgres', 'the time of a store', () => {
  it('is that of the database server, whatever the clock of the machine says', async () => {
    const { now } = Date;
    const { database, store: first } = await openTestKeys();
    await first.close();
    Date.now = () => now() + YEAR;
    try {
      const store = await openStore({ database });
      assert.ok(Math.abs(store.time() - now()) < UNIT_MS.h);
      await store.close();
    } finally {
      Date.now = now;
    }
  });
});
