import { FEATURES } from '../../../src/features/index.ts';
import { edgesOf, Origin } from '../../../src/features/edges/index.ts';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import type { EdgePoll } from '../../../src/features/edges/edges.ts';
import { readEdgeReport } from '../../../src/features/edges/reports.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { AuditDraft } from '../../../src/keys/audit/audit-entry.ts';
import { type KeyUse, NO_REQUESTS, startOf, USE } from '../../../src/keys/key/use.ts';
import { FEED } from '../../../src/features/edges/feed.ts';
import { FileFollowing } from '../../../src/store/sqlite/followers.ts';
import { describeOn, describeOnEach } from '../../support/dialects.ts';
import { idOf, openTestKeys, type TestKeys, withPort } from '../../support/keys.ts';
import type { KeysError } from '../../../src/keys/basics/index.ts';
import { until } from '../../support/until.ts';

/** An edge's requests, with the answers. */
interface Told {
  cursor: string;
  leaseMs: number;
  /** The end of its lease, by `performance.now`. */
  until: number;
}

/** Polls until the server is sure of its changes. After a pause of this process, it is not, and edges ask again. */
async function polled({ keys }: TestKeys, edge: EdgePoll) {
  for (;;) {
    const askedAt = performance.now();
    try {
      return { askedAt, answer: await edgesOf(keys).poll(edge, new AbortController().signal) };
    } catch (error) {
      assert.equal((error as KeysError).code, 'STORE_UNAVAILABLE');
      await setImmediate();
    }
  }
}

describeOnEach('edges', () => {
  let test: TestKeys;
  /** Called after a server has read the changes, and before it answers an edge. */
  let whenRead: () => Promise<void>;
  /** The written usage. */
  let used: KeyUse[];
  beforeEach(async () => {
    used = [];
    whenRead = async () => {};
    const listener = {
      name: 'listener',
      onKeys: { used: async (_: unknown, uses: readonly KeyUse[]) => void used.push(...uses) },
    };
    test = await openTestKeys({
      features: [...FEATURES, listener],
      repository: (repository) =>
        withPort(repository, FEED, (real) => ({
          async since(...asked) {
            const found = await real.since(...asked);
            await whenRead();
            return found;
          },
        })),
    });
  });
  afterEach(async () => {
    await test.keys.endFeatures();
    await test.store.close();
  });

  const create = async (name: string) => (await test.keys.create({ name, roles: ['VIEWER'] }, OPERATOR)).apiKey;
  const head = () => test.store.repository.port(FEED).head();
  const key = { id: randomUUID(), name: 'Edges' };
  const poll = async (asked: { id: string; after: string; leaseMs?: number; keyId?: string }) => {
    const { id, after, leaseMs: wanted = 300, keyId = key.id } = asked;
    const edge = { id, name: 'test', key: { ...key, id: keyId }, address: undefined, after, leaseMs: wanted };
    const { askedAt, answer } = await polled(test, edge);
    if (typeof answer === 'string') return answer;
    const { cursor, leaseMs } = answer;
    return { cursor, leaseMs, until: askedAt + leaseMs } satisfies Told;
  };
  const follow = async (asked: Parameters<typeof poll>[0]) => {
    const told = await poll(asked);
    assert.ok(typeof told === 'object');
    return told;
  };
  /** Deletes a key. @returns when that was done */
  const deletedAt = async ({ id }: { id: string }, by = test) => {
    await by.keys.delete([id], OPERATOR);
    return performance.now();
  };

  it('stop answering before a change returns that came during an answer', async () => {
    const ci = await create('CI');
    let returned = Number.NaN;
    whenRead = async () => {
      whenRead = async () => {};
      returned = await deletedAt(ci);
    };
    const told = await follow({ id: randomUUID(), after: await head() });
    assert.ok(returned >= told.until, `${returned} ${told.until}`);
  });

  it('know a key once its creation has returned', async () => {
    const id = randomUUID();
    const after = await head();
    await follow({ id, after, leaseMs: 60_000 });
    const events: string[] = [];
    const asked = follow({ id, after, leaseMs: 60_000 });
    const created = create('CI').then(() => events.push('created'));
    const { cursor } = await asked;
    events.push('told');
    void follow({ id, after: cursor }).catch(() => {});
    await created;
    assert.deepEqual(events, ['told', 'created']);
  });

  it('are answered before their lease is over, however long a lease they ask for', async () => {
    const id = randomUUID();
    const after = await head();
    let last = await follow({ id, after, leaseMs: 60_000 });
    // A pause of this process can delay an answer, but a pause of half the requested lease would delay all of them.
    await until(async () => {
      const { until: end } = last;
      last = await follow({ id, after, leaseMs: 60_000 });
      assert.ok(last.until > end);
      return performance.now() < end;
    });
  });

  it('have a lease from when they are answered, however long that was held', async () => {
    const asked = { id: randomUUID(), after: await head(), leaseMs: 400 };
    // An edge without a lease is answered at once, and a pause of this process can end its lease.
    let last = await follow(asked);
    for (let tries = 0; last.leaseMs <= asked.leaseMs; tries += 1) {
      assert.ok(tries < 20, `${last.leaseMs}`);
      last = await follow(asked);
    }
    assert.ok((await deletedAt(await create('CI'))) >= last.until);
  });

  it('delay no change while they rest, once they are gone from that, nor where they ask no more', async () => {
    const [ci, other] = [await create('CI'), await create('Other')];
    const edge = { id: randomUUID(), name: 'test', key, address: undefined, leaseMs: 60_000, restMs: 60_000 };
    const rest = async (signal: AbortSignal) => {
      const asked = edgesOf(test.keys).poll({ ...edge, after: await head() }, signal);
      await until(() =>
        edgesOf(test.keys)
          .list()
          .some(({ restMs }) => restMs > 0),
      );
      return { asked };
    };
    const { count } = edgesOf(test.keys).waited;
    const gone = new AbortController();
    const abandoned = await rest(gone.signal);
    gone.abort();
    await abandoned.asked;
    assert.equal(edgesOf(test.keys).list()[0]!.restMs, 0);
    await deletedAt(ci);
    const told = await rest(new AbortController().signal);
    await deletedAt(other);
    const answer = await told.asked;
    assert.ok(typeof answer === 'object');
    assert.equal(answer.leaseMs, 0);
    await deletedAt(await create('Third'));
    assert.equal(edgesOf(test.keys).waited.count, count);
  });

  it('cannot be acted for by others with another key', async () => {
    const ci = await create('CI');
    const id = randomUUID();
    const { until: end, cursor } = await follow({ id, after: await head(), leaseMs: 1000 });
    const deleted = deletedAt(ci);
    await until(async () => (await head()) !== cursor);
    await follow({ id, after: await head(), keyId: randomUUID(), leaseMs: 100 });
    assert.ok((await deleted) >= end);
  });

  it('are waited for where the server that they followed has ended', async () => {
    const ci = await create('CI');
    const other = await openTestKeys({ database: test.database });
    try {
      const { until: end } = await follow({ id: randomUUID(), after: await head(), leaseMs: 60_000 });
      await test.keys.endFeatures();
      await test.store.close();
      assert.ok((await deletedAt(ci, other)) >= end);
    } finally {
      await other.store.close();
    }
  });

  it('are listed by each process, with how they are', async () => {
    const other = await openTestKeys({ database: test.database });
    try {
      const id = randomUUID();
      await follow({ id, after: await head(), leaseMs: 1000 });
      await until(async () => (await edgesOf(other.keys).all()).length > 0);
      const [edge, ...others] = await edgesOf(other.keys).all();
      assert.deepEqual([edge!.id, edge!.name, edge!.key, others], [id, 'test', key, []]);
      assert.ok(edge!.leaseMs <= 1000 && edge!.lastAskedAt <= test.time.now && edge!.lagMs >= 0);
    } finally {
      await other.store.close();
    }
  });

  it('report only values within bounds', () => {
    const report = { id: randomUUID(), usage: [], activated: [], refusals: [] };
    assert.deepEqual(readEdgeReport(report), report);
    assert.throws(() => readEdgeReport({ ...report, id: 'x'.repeat(1000) }), /must be a UUID/);
    const usage = {
      id: randomUUID(),
      uses: 2 ** 50,
      lastUsedAt: 1,
      previousLastUsedAt: null,
      permissions: [],
      hours: [],
    };
    assert.throws(() => readEdgeReport({ ...report, usage: [usage] }), /at most 1000000000/);
    const refusal = {
      at: 1,
      actor: { kind: 'KEY', id: randomUUID(), name: 'CI' },
      action: 'REFUSE',
      apiKey: { id: randomUUID(), name: 'CI' },
      before: null,
      after: {},
    };
    assert.deepEqual(readEdgeReport({ ...report, refusals: [refusal] }).refusals, [refusal]);
    for (const wrong of [
      { usage: [{ ...usage, uses: 1, id: 'k' }] },
      { activated: [{ id: 'k', publicId: 'p' }] },
      { refusals: [{ ...refusal, actor: { ...refusal.actor, id: 'k' } }] },
      { refusals: [{ ...refusal, apiKey: { ...refusal.apiKey, id: 'k' } }] },
    ])
      assert.throws(() => readEdgeReport({ ...report, ...wrong }), /must be a UUID/, JSON.stringify(wrong));
  });

  it('count once if they report twice at once, and no use is in the future', async () => {
    const { id } = await create('CI');
    const start = 3_600_000 * 1_000_000;
    const hours = [{ start, accepted: 1, forbidden: 0, limited: 0, refused: 0 }];
    const usage = [{ id, uses: 1, lastUsedAt: start, previousLastUsedAt: null, permissions: [], hours }];
    const report = { id: randomUUID(), usage, activated: [], refusals: [] };
    await Promise.all([
      test.keys.feature(Origin).takeReport(report, key),
      test.keys.feature(Origin).takeReport(report, key),
    ]);
    const total = (await test.store.repository.port(USE).totals([id])).get(id)!;
    assert.deepEqual([total.uses, total.lastUsedAt], [1, test.time.now]);
  });

  it('report of keys that are gone as well', async () => {
    const usage = [{ id: randomUUID(), uses: 1, lastUsedAt: 1, previousLastUsedAt: null, permissions: [], hours: [] }];
    await test.keys.feature(Origin).takeReport({ id: randomUUID(), usage, activated: [], refusals: [] }, key);
  });

  it('have refusals sampled like those of the server, each with the edge that saw it', async () => {
    const refusal = (index: number): AuditDraft => ({
      at: test.time.now,
      actor: { kind: 'KEY', id: idOf(`k${index % 500}`), name: `Key ${index}` },
      action: 'REFUSE',
      apiKey: null,
      before: { any: 'x'.repeat(10_000) },
      after: { reason: `forbidden ${index}`, count: 2, more: 'x'.repeat(10_000) },
      address: 'nowhere',
    });
    for (let report = 0; report < 10; report += 1) {
      const refusals = Array.from({ length: 500 }, (_, index) => refusal(report * 500 + index));
      await test.keys.feature(Origin).takeReport({ id: randomUUID(), usage: [], activated: [], refusals }, key);
    }
    await test.keys.finishActivity();
    const entries = await test.store.repository.auditLog.find({ action: 'REFUSE', order: 'oldest', limit: 10_000 });
    // Five kinds for each of 100 keys and for the rest, and a few others.
    assert.ok(entries.length <= 101 * 7, `${entries.length}`);
    assert.equal(
      entries.reduce((sum, { after }) => sum + (after!['count'] as number), 0),
      10_000,
    );
    for (const { before, after, address } of entries) {
      assert.deepEqual([before, address, after!['edge'], after!['more']], [null, undefined, key, undefined]);
    }
  });

  it('report no more requests than possible, of existing grants, and take back reports', async () => {
    const { id } = await create('CI');
    const report = async (fields: object, by = key) => {
      const one = { id, uses: 0, lastUsedAt: test.time.now, previousLastUsedAt: null, permissions: [], hours: [] };
      const usage = [{ ...one, ...fields }];
      await test.keys.feature(Origin).takeReport({ id: randomUUID(), usage, activated: [], refusals: [] }, by);
      return (await test.store.repository.port(USE).totals([id])).get(id)!.uses;
    };
    assert.equal(await report({ uses: 1_000_000_000 }), 0);
    assert.equal(await report({ uses: 40_000_000 }), 40_000_000);
    assert.equal(await report({ uses: 40_000_000 }), 40_000_000);
    test.time.now += 600_000;
    assert.equal(await report({ uses: 40 }), 40_000_040);
    assert.equal(await report({ uses: -1 }), 40_000_039);
    assert.equal(await report({ uses: -1000 }, { id: randomUUID(), name: 'Other' }), 40_000_039);
    const hours = Array.from({ length: 400 }, (_, hour) => ({ start: hour * 3_600_000, ...NO_REQUESTS, accepted: 1 }));
    const permissions = ['DISK:READ_ANY', 'MADE_UP:READ_ANY', 'role:VIEWER', 'role:NOBODY', `tool:${'x'.repeat(999)}`];
    await report({ hours, permissions });
    assert.deepEqual(test.usedGrants.of(id), ['DISK:READ_ANY', 'role:VIEWER']);
    const hoursOf = used.at(-1)!.hours;
    assert.equal(
      hoursOf.reduce((sum, { accepted }) => sum + accepted, 0),
      25,
    );
    assert.ok(hoursOf.every(({ start }) => start >= startOf('DAY', test.time.now) - 90 * 24 * 3_600_000));
  });

  it('delay changes less, the more they have delayed, however many a key has, and only those of that key', async () => {
    const ci = await create('CI');
    let enabled = true;
    const change = () => test.keys.setEnabled(ci.id, (enabled = !enabled), OPERATOR);
    const leases: number[] = [];
    for (const most of [2000, 2000, 1000, 500, 250, 125]) {
      const { count } = edgesOf(test.keys).waited;
      // A pause of this process can end a lease before the change.
      await until(async () => {
        const told = await follow({ id: randomUUID(), after: await head(), leaseMs: 60_000 });
        leases.push(told.leaseMs);
        assert.ok(told.until - performance.now() <= most, leases.join());
        await change();
        return edgesOf(test.keys).waited.count > count;
      });
    }
    assert.ok(leases[0]! > 1000 && leases.at(-1)! >= 50, leases.join());
    const other = await follow({ id: randomUUID(), after: await head(), leaseMs: 60_000, keyId: randomUUID() });
    assert.ok(other.leaseMs > 1000);
  });

  it('of one key are a thousand at most: those without a lease make room', async () => {
    const after = await head();
    for (let count = 0; count < 1005; count += 1) await poll({ id: randomUUID(), after: '1.x' });
    assert.equal(edgesOf(test.keys).list().length, 1000);
    await follow({ id: randomUUID(), after, keyId: randomUUID() });
    assert.equal(edgesOf(test.keys).list().length, 1001);
  });
});

describeOn('sqlite', 'edges of a file', () => {
  it('are as many as may answer: others are forgotten to make room', async () => {
    const test = await openTestKeys({
      repository: (repository) => withPort(repository, FEED, () => ({ since: async () => undefined })),
    });
    const asked = { name: 'test', address: undefined, after: '1.x', leaseMs: 300 };
    try {
      const answers = new Set();
      for (let count = 0; count <= 10_000; count += 1) {
        const edge = { ...asked, key: { id: `k${count % 20}`, name: 'k' }, id: randomUUID() };
        answers.add((await polled(test, edge)).answer);
        if (count % 100 === 0) await setImmediate();
      }
      assert.deepEqual(answers, new Set(['gone']));
      assert.equal(edgesOf(test.keys).list().length, 10_000);
    } finally {
      await test.keys.endFeatures();
      await test.store.close();
    }
  });

  it('are answered together while nothing changes', async () => {
    const test = await openTestKeys();
    const edge = { name: 'test', key: { id: 'k', name: 'k' }, address: undefined, leaseMs: 1000 };
    try {
      const after = await test.store.repository.port(FEED).head();
      const endOf = async (id: string) => {
        const { askedAt, answer } = await polled(test, { ...edge, id, after });
        return askedAt + (answer as { leaseMs: number }).leaseMs;
      };
      const fifthEnd = async (laterMs: number) => {
        const id = randomUUID();
        await delay(laterMs);
        for (let round = 1; round < 5; round += 1) await endOf(id);
        return endOf(id);
      };
      // A pause of this process can make an edge miss a turn.
      await until(async () => {
        const ends = await Promise.all([0, 100, 200].map(fifthEnd));
        return Math.max(...ends) - Math.min(...ends) < 50;
      });
    } finally {
      await test.keys.endFeatures();
      await test.store.close();
    }
  });

  it('still get changes after the record of followers was removed', async () => {
    const test = await openTestKeys();
    const folder = `${test.database}-followers`;
    const edge = { id: randomUUID(), name: 'test', key: { id: 'k', name: 'k' }, address: undefined, leaseMs: 300 };
    const poll = async () => {
      const after = await test.store.repository.port(FEED).head();
      return (await polled(test, { ...edge, after })).answer;
    };
    try {
      await poll();
      rmSync(folder, { recursive: true });
      await until(() => existsSync(folder));
      assert.ok(typeof (await poll()) === 'object');
    } finally {
      await test.keys.endFeatures();
      await test.store.close();
    }
  });

  it("are listed if a power failure has truncated another process's list", async () => {
    const test = await openTestKeys();
    const blind = followBlindly(test.database);
    try {
      writeFileSync(join(`${test.database}-followers`, `${randomUUID()}.note`), '{"at":1,"boo');
      assert.deepEqual(await edgesOf(test.keys).all(), []);
    } finally {
      await blind.stop();
      await test.store.close();
    }
  });

  it('are not waited for without end if their process cannot see changes', async () => {
    const test = await openTestKeys();
    const blind = followBlindly(test.database);
    try {
      await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
      // It keeps sending heartbeats.
      await until(() => blind.leasedUntil() > performance.now());
    } finally {
      await blind.stop();
      await test.store.close();
    }
  });

  it('are waited for even while the record of their process is half written', async () => {
    const test = await openTestKeys();
    const blind = followBlindly(test.database);
    const before = blind.leasedUntil();
    await until(() => blind.leasedUntil() > before);
    try {
      const folder = `${test.database}-followers`;
      const name = readdirSync(folder).find((file) => file.endsWith('.json'));
      const places = readFileSync(join(folder, name!), 'latin1').match(/.{512}/gs)!;
      const counts = places.map((place) => Number(/"count":(\d+)/.exec(place)?.[1] ?? 0));
      const file = openSync(join(folder, name!), 'r+');
      writeSync(file, '0123', counts.indexOf(Math.max(...counts)) * 512 + 100);
      closeSync(file);
      const end = blind.leasedUntil();
      await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR);
      assert.ok(performance.now() > end);
    } finally {
      await blind.stop();
      await test.store.close();
    }
  });
});

/** Follows a store without noticing changes. */
function followBlindly(database: string): FileFollowing {
  const file = { path: database, look: () => {}, seen: () => ({ number: 0, mark: '' }) };
  return new FileFollowing(file, { changed: async () => {}, ended: async () => {} });
}
