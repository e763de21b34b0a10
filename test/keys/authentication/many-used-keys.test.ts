import assert from 'node:assert/strict';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Activity, writeEvents } from '../../../src/keys/authentication/activity.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type KeyUse, USE } from '../../../src/keys/key/use.ts';
import type { KeyWriter } from '../../../src/keys/repository/repository.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { idOf, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { until } from '../../support/until.ts';

describeOnEach('the use of many keys', (dialect) => {
  let test: TestKeys;
  let scheduled: { work: () => void; delay: number }[];
  /** Runs before usage or events are written. */
  let beforeWrite: (usage: readonly KeyUse[]) => void;
  /** The writes since the start of `elapse`. */
  let written: Promise<void>[];
  let activity: Activity;
  beforeEach(async () => {
    test = await openTestKeys();
    scheduled = [];
    beforeWrite = () => {};
    written = [];
    const { options, time } = test;
    const write = (usage: readonly KeyUse[], work: (writer: KeyWriter) => Promise<void>) => {
      beforeWrite(usage);
      const writing = test.store.repository.write(work, { counts: usage.length > 0 });
      written.push(writing);
      return writing;
    };
    activity = new Activity({
      clock: options.clock,
      schedule: (work, delay) => scheduled.push({ work, delay }),
      writeUse: async (usage) => write(usage, (writer) => writer.port(USE).add(usage)),
      writeEvents: (events) => write([], (writer) => writeEvents(writer, events, { ...options, now: time.now })),
    });
  });
  afterEach(() => test.store.close());
  const insertKeys = async (count: number) => {
    // Uses are numbered by the first four bytes of the ids, so that consecutive ids get consecutive numbers.
    const keys = Array.from({ length: count }, (_, index) => storedKey(`${index}`));
    await test.store.repository.write((writer) => writer.insert(keys));
    return keys;
  };
  const usesOf = async (keys: readonly { id: string }[]) => {
    const usage = await test.keys.useOf(keys.map(({ id }) => id));
    return keys.map(({ id }) => usage.get(id)?.uses);
  };
  const delays = () => scheduled.map(({ delay }) => delay);
  /** Uses a key and writes that. Each write takes this long. */
  const flush = async (key: ReturnType<typeof storedKey>, writeMs: number) => {
    beforeWrite = () => void (test.time.now += writeMs);
    activity.used(key, 'current');
    await elapse();
  };
  /** Runs all that was scheduled, as if it were due. */
  const elapse = async () => {
    written = [];
    for (const { work } of scheduled.splice(0)) work();
    await until(() => written.length > 0);
    await Promise.all(written);
    await yieldToEventLoop();
  };

  it('is written in pieces, sorted by id, and others write in between', async () => {
    const keys = await insertKeys(4500);
    const pieces: string[][] = [];
    const uses: KeyUse[] = [];
    let other: Promise<unknown> | undefined;
    let piecesBeforeOther: number | undefined;
    beforeWrite = (usage) => {
      pieces.push(usage.map(({ id }) => id));
      uses.push(...usage);
      other ??= test.store.repository.write(async () => void (piecesBeforeOther = pieces.length));
    };
    for (const key of keys) {
      activity.used(key, 'current');
      activity.used(key, 'current');
      activity.usedPermission(key.id, 'ME:READ_OWN');
    }
    await activity.finish();
    await other;
    assert.deepEqual(
      pieces.map(({ length }) => length),
      Array.from({ length: 18 }, () => 250),
    );
    assert.deepEqual(pieces.flat(), keys.map(({ id }) => id).toSorted());
    assert.ok(piecesBeforeOther! < 18);
    assert.deepEqual(new Set(await usesOf(keys)), new Set([2]));
    const { permissions, lastUsedAt } = uses.find(({ id }) => id === idOf('4321'))!;
    assert.deepEqual([[...permissions], lastUsedAt], [['ME:READ_OWN'], test.time.now]);
  });

  it('is written once, even if a part fails: that one and those after it are written later', async () => {
    const keys = await insertKeys(4500);
    let writes = 0;
    beforeWrite = () => {
      writes += 1;
      if (writes === 2) throw new Error('The store cannot take it.');
    };
    for (const key of keys) activity.used(key, 'current');
    await assert.rejects(activity.finish(), /cannot take it/);
    const written = (await usesOf(keys)).filter((uses) => uses !== undefined);
    for (const key of keys) activity.used(key, 'current');
    await activity.finish();
    assert.deepEqual([written.length, new Set(await usesOf(keys))], [250, new Set([2])]);
  });

  if (dialect === 'postgres')
    it('keeps no key from being changed, renamed, rotated or deleted while it is written in PostgreSQL', async () => {
      const ids: string[] = [];
      for (const name of ['Used', 'Unused', 'Deleted']) {
        const { apiKey: key } = await test.keys.create({ name, permissions: ['ME:READ_OWN'] }, OPERATOR);
        ids.push(key.id);
      }
      const start = Math.floor(test.time.now / 3_600_000) * 3_600_000;
      const usageOf = (id: string, hour: number): KeyUse => ({
        id,
        uses: 1,
        lastUsedAt: test.time.now,
        previousLastUsedAt: null,
        permissions: ['ME:READ_OWN'],
        hours: [{ start: start + hour * 3_600_000, accepted: 1, forbidden: 0, limited: 0, refused: 0 }],
      });
      const add = (usage: KeyUse[], meanwhile = async () => {}) =>
        test.store.repository.write(
          async (writer) => {
            await writer.port(USE).add(usage);
            await meanwhile();
          },
          { counts: true },
        );
      await add([usageOf(ids[0]!, 0), usageOf(ids[2]!, 0)]);
      await add(
        ids.map((id) => usageOf(id, 1)),
        async () => {
          for (const id of ids) {
            await test.keys.update(id, { name: `Renamed ${ids.indexOf(id)}` }, OPERATOR);
            await test.keys.rotate(id, {}, OPERATOR);
            await test.keys.setEnabled(id, false, OPERATOR);
          }
          await test.keys.delete([ids[2]!], OPERATOR);
        },
      );
      assert.deepEqual(await usesOf(ids.slice(0, 2).map((id) => ({ id }))), [2, 1]);
    });

  for (const [writeMs, restMs] of [
    [10, 2000],
    [100, 3000],
    [5000, 30_000],
  ] as const) {
    it(`is written ${restMs} ms after writing it took ${writeMs} ms`, async () => {
      const [key] = await insertKeys(1);
      await flush(key!, writeMs);
      activity.used(key!, 'current');
      assert.deepEqual(delays(), [restMs]);
    });
  }

  it('is written two seconds after the next use, if that comes when the rest is over', async () => {
    const [key] = await insertKeys(1);
    await flush(key!, 5000);
    test.time.now += 29_000;
    await flush(key!, 0);
    test.time.now += 60_000;
    activity.used(key!, 'current');
    assert.deepEqual(delays(), [2000]);
  });

  it('is written also where a permission is needed after the use itself was written', async () => {
    const [key] = await insertKeys(1);
    await flush(key!, 0);
    test.time.now += 1000;
    activity.usedPermission(key!.id, 'ME:READ_OWN');
    assert.deepEqual(delays(), [2000]);
    let written: readonly KeyUse[] = [];
    beforeWrite = (usage) => void (written = usage);
    await elapse();
    assert.deepEqual(
      written.map(({ id, permissions, lastUsedAt }) => [id, [...permissions], lastUsedAt]),
      [[key!.id, ['ME:READ_OWN'], test.time.now]],
    );
  });

  it('that takes long to write does not delay the grace of a rotation, nor refusals', async () => {
    const [key] = await insertKeys(1);
    await flush(key!, 5000);
    const { apiKey: created } = await test.keys.create({ name: 'Rotated', permissions: ['ME:READ_OWN'] }, OPERATOR);
    await test.keys.rotate(created.id, { grace: '1h', activate: 'on-first-use' }, OPERATOR);
    const rotated = (await test.keys.findById(created.id, OPERATOR))!;
    activity.refused({ reason: 'malformed', actor: { kind: 'REQUEST', id: null, name: null }, apiKey: null });
    activity.used(rotated, 'current');
    assert.deepEqual(delays(), [2000, 0, 30_000]);
    scheduled = scheduled.filter(({ delay }) => delay === 0);
    await elapse();
    assert.ok((await test.keys.findById(created.id, OPERATOR))!.rotation!.previousEndsAt !== null);
    assert.equal((await test.keys.audit.read({ action: 'refuse' }, OPERATOR)).length, 1);
    assert.deepEqual(await usesOf([rotated]), [undefined]);
    await activity.finish();
    assert.deepEqual(await usesOf([rotated]), [1]);
  });

  it('that comes while it is written is written after a rest, too', async () => {
    const [key] = await insertKeys(1);
    await flush(key!, 0);
    activity.used(key!, 'current');
    beforeWrite = () => {
      test.time.now += 200;
      activity.used(key!, 'current');
    };
    await elapse();
    assert.deepEqual([delays(), await usesOf([key!])], [[6000], [2]]);
    beforeWrite = () => {};
    await activity.finish();
    assert.deepEqual(await usesOf([key!]), [3]);
  });
});
