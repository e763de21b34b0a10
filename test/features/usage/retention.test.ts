import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type HourUse, NO_REQUESTS, OUTCOMES, startOf, sumOf, USE } from '../../../src/keys/key/use.ts';
import { writeUses } from '../../../src/keys/authentication/activity.ts';
import { Usage, USAGE } from '../../../src/features/usage/usage.ts';
import { Upkeep } from '../../../src/keys/authentication/upkeep.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { readDirectly } from '../../support/direct.ts';
import { authenticate, idOf, openTestKeys, storedKey, type TestKeys, withPort } from '../../support/keys.ts';
import { Random } from '../../support/random.ts';
import { until } from '../../support/until.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

describeOnEach('the recorded use of keys', (dialect) => {
  let test: TestKeys;
  let scheduled: (() => void)[];
  beforeEach(async () => {
    scheduled = [];
    test = await openTestKeys({ schedule: (work) => scheduled.push(work) });
  });
  afterEach(() => test.store.close());
  const insertKeys = async (...texts: string[]) =>
    test.store.repository.write((writer) => writer.insert(texts.map((text) => storedKey(text))));
  const addHours = (text: string, hours: readonly HourUse[]) =>
    test.store.repository.write(
      (writer) =>
        writeUses(
          writer,
          [{ id: idOf(text), uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: [], hours }],
          test.options.listeners,
        ),
      { counts: true },
    );
  const accepted = (start: number): HourUse => ({ start, accepted: 1, forbidden: 0, limited: 0, refused: 0 });
  const step = (rows: number, { now } = test.time) =>
    test.store.repository.write(
      (writer) =>
        writer.port(USAGE).condense({
          hoursFrom: startOf('DAY', now) - 90 * DAY,
          daysFrom: startOf('DAY', now) - 730 * DAY,
          rows,
        }),
      { counts: true },
    );
  /** The number of rows of keys, without the totals, which have the number -1. A key's last hour is a separate row. */
  const formatCount = async (table: 'hours' | 'days') =>
    (await readDirectly(test.database, `select 1 as one from key_usage_${table} where key_number >= 0`)).length;
  const daysOf = async (text: string) =>
    (await test.keys.feature(Usage).byPeriod(idOf(text), { by: 'DAY', from: '730d' })).periods;

  it('are hours for 90 days, then days', async () => {
    await insertKeys('a');
    const first = startOf('DAY', test.time.now) - 90 * DAY;
    await addHours('a', [first - 25 * HOUR, first - 2 * HOUR, first - HOUR, first, first + HOUR].map(accepted));
    assert.equal(await step(100), true);
    assert.deepEqual([await formatCount('hours'), await formatCount('days')], [1, 2]);
    assert.deepEqual(
      (await daysOf('a')).map(({ start, accepted }) => [(start - first) / DAY, accepted]),
      [
        [-2, 1],
        [-1, 2],
        [0, 2],
      ],
    );
  });

  it('are days for two years, and nothing from before', async () => {
    await insertKeys('a');
    const first = startOf('DAY', test.time.now) - 730 * DAY;
    await addHours('a', [first - HOUR, first, test.time.now].map(accepted));
    await step(100);
    assert.deepEqual(await formatCount('days'), 1);
    assert.deepEqual(
      (await daysOf('a')).map(({ start }) => start),
      [first, startOf('DAY', test.time.now)],
    );
  });

  it('is condensed in small steps, with the same sums in any order, by several servers at once', async () => {
    for (const seed of [1, 2, 3]) {
      const random = new Random(seed);
      const ids = ['a', 'b', 'c'].map((id) => id + seed);
      await insertKeys(...ids);
      const other = await openTestKeys({ asServer: true, database: test.database });
      const expected = new Map<string, HourUse>();
      const oldest = test.time.now - 120 * DAY;
      for (let round = 0; round < 20; round += 1) {
        for (const id of random.some(ids, 3)) {
          const starts = [...new Set(random.some([...Array(31 * 24).keys()], 20))].map((hour) => oldest + hour * HOUR);
          const hours = starts.map((start) => ({
            start,
            accepted: Math.floor(random.next() * 5) - 1,
            forbidden: Math.floor(random.next() * 3),
            limited: Math.floor(random.next() * 2),
            refused: random.chance(0.5) ? 1 : 0,
          }));
          await addHours(id, hours);
          for (const hour of hours) {
            const start = startOf('DAY', hour.start);
            const known = expected.get(`${id} ${start}`);
            expected.set(`${id} ${start}`, {
              start,
              ...sumOf(known ?? { ...hour, accepted: 0, forbidden: 0, limited: 0, refused: 0 }, hour),
            });
          }
        }
        const rows = 1 + Math.floor(random.next() * 30);
        const steps = [test, other].map(({ store }) =>
          store.repository.write(
            (writer) => writer.port(USAGE).condense({ hoursFrom: test.time.now - 90 * DAY, daysFrom: 0, rows }),
            { counts: true },
          ),
        );
        await Promise.all(steps);
      }
      const sumsOf = async () =>
        new Map(
          (
            await Promise.all(
              ids.map(async (id) => (await daysOf(id)).map((day) => [`${id} ${day.start}`, day] as const)),
            )
          )
            .flat()
            .toSorted(([one], [another]) => (one < another ? -1 : 1)),
        );
      const all = new Map([...expected].toSorted(([one], [another]) => (one < another ? -1 : 1)));
      assert.deepEqual(await sumsOf(), all, `seed ${seed}`);
      while (!(await step(50)));
      assert.deepEqual(await sumsOf(), all, `seed ${seed}, condensed`);
      await other.store.close();
    }
    assert.ok((await formatCount('hours')) < 100);
  });

  it('is removed after the writes, some thousand rows at a time, and checked once an hour', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const passes: boolean[] = [];
    const { repository } = test.store;
    const retention = new Upkeep({
      clock: () => test.time.now,
      listeners: test.options.listeners,
      repository: {
        ...repository,
        write: async (work, options) => {
          const result = await repository.write(work, options);
          passes.push(result as boolean);
          return result;
        },
      },
    });
    const oldest = test.time.now - 700 * DAY;
    await addHours(
      key.id,
      Array.from({ length: 4501 }, (_, hour) => accepted(oldest + hour * HOUR)),
    );
    for (let pass = 0; pass < 5; pass += 1) await retention.step();
    assert.deepEqual(passes, dialect === 'sqlite' ? [false, false, false, false, true] : [true]);
    assert.equal(await formatCount('hours'), 0);
    test.time.now += HOUR;
    await retention.step();
    assert.equal(passes.length, dialect === 'sqlite' ? 6 : 2);
    // A server does this after it has written usage.
    await addHours(key.id, [accepted(oldest)]);
    assert.equal(await formatCount('hours'), 1);
    await authenticate(test.keys, secret);
    for (const work of scheduled.splice(0)) work();
    // The row of the last hour is removed, too.
    await until(async () => (await formatCount('hours')) === 0);
    assert.deepEqual(
      (await test.keys.feature(Usage).byPeriod(key.id)).periods.map(({ start }) => start),
      [test.time.now],
    );
  });

  it('is removed of deleted keys in small steps, and not of a key that is there again', async () => {
    const ids = Array.from({ length: 150 }, (_, index) => idOf(String(index).padStart(3, '0')));
    await insertKeys(...ids, 'unused', 'kept');
    const early = test.time.now - 200 * DAY;
    const lastHours = [test.time.now, test.time.now + HOUR];
    for (const id of [...ids, 'kept']) await addHours(id, [early, ...lastHours].map(accepted));
    await step(10_000);
    await test.store.repository.write((writer) => writer.delete([...ids, ...['unused', 'nobody'].map(idOf)]));
    await insertKeys(ids[0]!);
    const left = async () => [await formatCount('hours'), await formatCount('days')];
    assert.deepEqual(await left(), [151, 151], 'taking access away does not wait for that');
    const { ids: deleted, next } = await test.store.repository.port(USE).ofDeleted(undefined);
    assert.deepEqual([deleted, next], [ids.slice(1), undefined]);
    const forget = (rows: number) =>
      test.store.repository.write((writer) => writer.port(USAGE).forget([...deleted, ids[0]!], rows), {
        counts: true,
      });
    // `forget` looks for at least two hours and a day of each key.
    assert.equal(await forget(100), false);
    const [hours, days] = await left();
    assert.ok(hours === days && hours! > 100 && hours! < 151, `${hours} hours, ${days} days`);
    while (!(await forget(1000)));
    assert.deepEqual(await left(), [2, 2]);
    assert.deepEqual([(await daysOf(ids[0]!)).length, (await daysOf(ids[1]!)).length], [2, 0]);
    assert.equal((await readDirectly(test.database, 'select * from key_usage')).length, 2);
  });

  it('does not keep use from being written where it fails', async () => {
    const failing = await openTestKeys({
      database: test.database,
      schedule: (work) => scheduled.push(work),
      repository: (repository) => ({
        ...repository,
        write: (work, options) =>
          repository.write(
            (writer) =>
              work(withPort(writer, USAGE, () => ({ condense: () => Promise.reject(new Error('It cannot.')) }))),
            options,
          ),
      }),
    });
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    for (const uses of [1, 2]) {
      await authenticate(failing.keys, secret);
      await until(() => scheduled.length > 0);
      for (const work of scheduled.splice(0)) work();
      await until(async () => (await test.keys.useOf([key.id])).get(key.id)?.uses === uses);
    }
    await failing.keys.finishActivity();
    await failing.store.close();
    const [period] = (await test.keys.feature(Usage).byPeriod(key.id)).periods;
    assert.deepEqual(
      OUTCOMES.map((outcome) => period![outcome]),
      [2, 0, 0, 0],
    );
  });
});

describeOn('postgres', 'the use of deleted keys', () => {
  it('is removed while another server writes it, and neither has to start again', async () => {
    const test = await openTestKeys();
    await test.store.repository.write((writer) => writer.insert([storedKey('a')]));
    const use = { id: idOf('a'), uses: 1, lastUsedAt: test.time.now, previousLastUsedAt: null, permissions: [] };
    const uses = [{ ...use, hours: [{ ...NO_REQUESTS, start: test.time.now, accepted: 1 }] }];
    const { repository } = test.store;
    const { listeners } = test.options;
    await repository.write((writer) => writeUses(writer, uses, listeners), { counts: true });
    await repository.write((writer) => writer.delete([idOf('a')]));
    const other = await openTestKeys({ asServer: true, database: test.database });
    const tries: string[] = [];
    const waits = async () =>
      (
        await readDirectly(
          test.database,
          `select 1 from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like '%key_uses%' and pid <> pg_backend_pid()`,
        )
      ).length > 0;
    let removed: Promise<void> | undefined;
    const upkeep = new Upkeep({
      ...test.options,
      listeners: listeners.map(({ forgetting, ...listener }) => ({
        ...listener,
        ...(forgetting && {
          forgetting: (...given: Parameters<typeof forgetting>) => (tries.push('removed'), forgetting(...given)),
        }),
      })),
    });
    await other.store.repository.write(
      async (writer) => {
        tries.push('written');
        await writer.port(USE).add(uses);
        removed ??= upkeep.run();
        await until(waits);
        await writer.port(USAGE).add(uses);
      },
      { counts: true },
    );
    await removed;
    assert.deepEqual(tries, ['written', 'removed']);
    for (const table of ['key_uses', 'key_usage'])
      assert.deepEqual(await readDirectly(test.database, `select * from ${table}`), [], table);
    await other.store.close();
    await test.store.close();
  });
});
