import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Clocks, EdgeCopy } from '../../src/edge/edge-copy.ts';
import { KeyTable } from '../../src/edge/key-table.ts';
import { digestOf, type FeedRow, lineOf } from '../support/feed-rows.ts';
import { collectingLog } from '../support/log.ts';
import { Random } from '../support/random.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const GRACE_MS = 60_000;
const LEASE_MS = 1000;
const NOW = 1_790_000_000_000;

/** What a process reads that starts. */
interface Read {
  names?: Record<string, string>;
  staleMs?: number;
  /** Why it does not use the copy. */
  reason?: string;
}

describe('the copy of the keys of an edge', () => {
  const { log, lines } = collectingLog();
  let path: string;
  let token: string;
  let clocks: Clocks;
  let table: KeyTable;
  const open: { stop: () => Promise<void>; close?: () => void }[] = [];

  const rowOf = (id: string, name = `name of ${id}`): FeedRow => ({ id, digest: digestOf(id), previous: null, name });
  const put = (row: FeedRow) => {
    table.put(lineOf(row));
    return Buffer.from(`+${lineOf(row).toString()}\n`);
  };
  const remove = (id: string) => {
    table.remove(id);
    return Buffer.from(`-${JSON.stringify([id])}\n`);
  };
  const newCopy = () => {
    const copy = new EdgeCopy({ path, token: () => token, graceMs: GRACE_MS, log, clocks: () => clocks });
    open.push(copy);
    return copy;
  };
  const take = (copy: EdgeCopy, changed: Buffer = Buffer.alloc(0), askedAt = performance.now()) =>
    copy.taken(table, changed, { askedAt, leaseMs: LEASE_MS });
  const written = () => lines.filter(({ message }) => message === 'the copy of the keys was written').length;
  /** A copy of all keys that are in the table. */
  const writtenCopy = async () => {
    const [copy, before] = [newCopy(), written()];
    take(copy);
    await until(() => written() > before);
    return copy;
  };
  /** What a process reads that starts now: names by ids; the reason where it does not use the copy. */
  const read = async (): Promise<Read> => {
    const found = new KeyTable();
    const before = lines.length;
    const staleMs = await newCopy().read(found);
    const names = [...found.rows()].map((row) => JSON.parse(row.toString()) as string[]).map((row) => [row[0], row[3]]);
    found.close();
    if (staleMs !== undefined) return { names: Object.fromEntries(names) as Record<string, string>, staleMs };
    const fields = lines.slice(before).map((line) => line.fields as { reason?: string });
    return { reason: fields.at(-1)!.reason! };
  };
  const later = (ms: number, more: Partial<Clocks> = {}): Clocks => ({
    boot: clocks.boot,
    sinceBoot: [clocks.sinceBoot[0] + ms, clocks.sinceBoot[1] + ms],
    wall: clocks.wall + ms,
    ...more,
  });

  beforeEach(() => {
    path = join(tempFolder(), 'keys');
    token = 'svc_token';
    clocks = { boot: 'one', sinceBoot: [500_000, 900_000], wall: NOW };
    table = new KeyTable();
    for (let index = 0; index < 5; index += 1) put(rowOf(`id-${index}`));
  });

  afterEach(async () => {
    for (const each of open.splice(0)) await each.stop();
    table.close();
    lines.length = 0;
  });

  it('has all keys, for its owner alone, and nobody reads anything in it without the token', async () => {
    await writtenCopy();
    const { names, staleMs } = await read();
    assert.deepEqual(Object.keys(names!).toSorted(), ['id-0', 'id-1', 'id-2', 'id-3', 'id-4']);
    assert.equal(staleMs, 0);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dirname(path)), ['keys']);
    const bytes = readFileSync(path).toString('latin1');
    for (const text of [token, 'id-0', digestOf('id-0'), digestOf('id-0').slice(0, 8), 'name of'])
      assert.ok(!bytes.includes(text), text);
  });

  it('has each change, in the order in which they came', async () => {
    const copy = await writtenCopy();
    take(copy, put(rowOf('id-0', 'changed')));
    take(copy, remove('id-1'));
    take(copy, Buffer.concat([remove('id-0'), put(rowOf('id-5')), put(rowOf('id-0', 'again'))]));
    await copy.stop();
    const { names } = await read();
    assert.deepEqual(Object.keys(names!).toSorted(), ['id-0', 'id-2', 'id-3', 'id-4', 'id-5']);
    assert.equal(names!['id-0'], 'again');
  });

  it('has what the table has, whatever changes while all keys are written', async () => {
    const random = new Random(11);
    const names = new Map<string, string>();
    for (let index = 0; index < 3000; index += 1) {
      const row = rowOf(`more-${index}`, 'x'.repeat(Math.floor(random.next() * 900)));
      table.put(lineOf(row));
      names.set(row.id, row.name);
    }
    for (let index = 0; index < 5; index += 1) names.set(`id-${index}`, `name of id-${index}`);
    const copy = newCopy();
    take(copy);
    let during = 0;
    for (let step = 0; written() === 0 || step < 200; step += 1) {
      const row = rowOf(`more-${Math.floor(random.next() * 4000)}`, 'y'.repeat(Math.floor(random.next() * 900)));
      if (random.chance(0.4)) {
        take(copy, remove(row.id));
        names.delete(row.id);
      } else {
        take(copy, put(row));
        names.set(row.id, row.name);
      }
      if (written() === 0) during += 1;
      await setImmediate();
    }
    assert.ok(during >= 10, `${during}`);
    await copy.stop();
    assert.deepEqual((await read()).names, Object.fromEntries(names));
  });

  it('is written anew once more was changed than it had', async () => {
    const copy = await writtenCopy();
    const { size } = statSync(path);
    const random = new Random(3);
    const noise = () => Array.from({ length: 3000 }, () => random.next().toString(36).slice(2)).join('');
    for (let step = 0; written() === 1; step += 1) {
      take(copy, put(rowOf('id-0', noise())));
      await setImmediate();
      assert.ok(step < 1000);
    }
    take(copy, put(rowOf('id-0', 'small')));
    await copy.stop();
    assert.ok(statSync(path).size < size + 2 ** 20);
    assert.equal((await read()).names!['id-0'], 'small');
  });

  it('is not used in part: not with another token, damaged, of another form, or with parts that are not its own', async () => {
    const copy = await writtenCopy();
    take(copy, put(rowOf('id-0', 'changed')));
    take(copy, remove('id-1'));
    await copy.stop();
    const whole = readFileSync(path);
    token = 'svc_another';
    assert.match((await read()).reason!, /another token/);
    await writtenCopy();
    const foreign = readFileSync(path);
    token = 'svc_token';
    const refused = async (bytes: Buffer, what: string) => {
      writeFileSync(path, bytes);
      assert.ok((await read()).reason, what);
    };
    const first = 'svc-api edge copy 1\n'.length + 32;
    const parts = [whole.subarray(0, first)];
    for (let at = first; at < whole.length;) {
      const end = at + 4 + whole.readUInt32LE(at);
      parts.push(whole.subarray(at, end));
      at = end;
    }
    assert.ok(parts.length >= 4);
    const [head, all, ...others] = parts as [Buffer, Buffer, ...Buffer[]];
    await refused(Buffer.concat([head, others[0]!, all, ...others.slice(1)]), 'swapped');
    await refused(Buffer.concat([head, ...others]), 'without the first');
    await refused(Buffer.concat([head, all, all]), 'twice');
    await refused(Buffer.concat([head, all, ...others.slice(1)]), 'without one between');
    await refused(Buffer.concat([foreign.subarray(0, first), all]), 'of another file');
    await refused(Buffer.from(whole.toString('latin1').replace('copy 1', 'copy 2'), 'latin1'), 'of another version');
    await refused(Buffer.alloc(0), 'empty');
    // Where the end alone is missing, it is an older copy; without its beginning, none.
    const expected: Record<number, string> = { 0: 'name of id-0', 1: 'changed', 2: 'changed' };
    for (let length = 0; length < whole.length; length += 5) {
      writeFileSync(path, whole.subarray(0, length));
      const { names, reason } = await read();
      let [complete, end] = [-1, first];
      for (const part of parts.slice(1)) if ((end += part.length) <= length) complete += 1;
      if (complete < 0) assert.match(reason!, length < first ? /no copy at all/ : /not whole/, `${length}`);
      else assert.equal(names?.['id-0'], expected[Math.min(complete, 2)], `${length}`);
    }
    for (let at = 0; at < whole.length; at += 5) {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 1 << (at % 8);
      writeFileSync(path, damaged);
      const { names } = await read();
      if (!names) continue;
      // A length that became larger: what follows is missing.
      assert.ok(at >= first + all.length, `${at}`);
      assert.ok(['name of id-0', 'changed'].includes(names['id-0']!));
    }
    writeFileSync(path, whole);
    assert.ok((await read()).names);
    const said = JSON.stringify(lines);
    for (const text of [token, 'svc_another', digestOf('id-0')]) assert.ok(!said.includes(text));
  });

  it('is as old as the last lease, by a clock of the machine that nobody sets', async () => {
    const copy = await writtenCopy();
    await copy.stop();
    const start = clocks;
    const staleAt = async (at: Clocks) => {
      clocks = at;
      const { staleMs, reason } = await read();
      return staleMs === undefined ? reason : Math.round(staleMs / 100) * 100;
    };
    clocks = start;
    assert.equal(await staleAt(later(LEASE_MS + 500)), 500);
    for (const wall of [0, start.wall - 3_600_000, start.wall + 3_600_000]) {
      clocks = start;
      assert.equal(await staleAt(later(11_000, { wall })), 10_000, `${wall}`);
    }
    clocks = start;
    assert.match(`${await staleAt(later(GRACE_MS + LEASE_MS + 100))}`, /beyond the grace/);
    // The machine has slept; a container has begun anew.
    const [awake, up] = start.sinceBoot;
    assert.equal(await staleAt({ ...start, sinceBoot: [awake, up + 31_000] }), 30_000);
    assert.equal(await staleAt({ ...start, sinceBoot: [awake + 31_000, 5] }), 30_000);
    assert.match(`${await staleAt({ ...start, sinceBoot: [5, 5] })}`, /later time/);
  });

  it('is as old as the time of day tells after another boot, or where none is known, unless that was set back', async () => {
    for (const [before, after] of [
      ['one', 'two'],
      ['', ''],
    ] as const) {
      const start = (clocks = { boot: before, sinceBoot: [500_000, 900_000], wall: NOW });
      const copy = await writtenCopy();
      await copy.stop();
      clocks = later(0, { boot: after, sinceBoot: [700_000, 990_000], wall: NOW + 11_000 });
      assert.equal(Math.round((await read()).staleMs! / 100), 100);
      clocks = { ...start, boot: after, wall: NOW - 60_000 };
      assert.match((await read()).reason!, /later time/);
      clocks = { ...start, boot: after, wall: NOW + GRACE_MS + LEASE_MS + 100 };
      assert.match((await read()).reason!, /beyond the grace/);
    }
  });

  it('has the last lease at a graceful end', async () => {
    const copy = await writtenCopy();
    clocks = later(4000);
    take(copy);
    await copy.stop();
    clocks = later(LEASE_MS + 100);
    assert.ok((await read()).staleMs! < 1000);
  });

  it('gets no newer by being written, without another lease', async () => {
    const askedAt = performance.now();
    const copy = await writtenCopy();
    clocks = later(30_000);
    take(copy, put(rowOf('id-0', 'changed')), askedAt - 30_000);
    await copy.stop();
    const { names, staleMs } = await read();
    assert.equal(names!['id-0'], 'changed');
    assert.ok(staleMs! >= 29_000, `${staleMs}`);
    // Nor by a process that has none.
    const { size } = statSync(path);
    await newCopy().stop();
    assert.equal(statSync(path).size, size);
  });

  it('is the one before while another is written, which a process that ended has left', async () => {
    const copy = await writtenCopy();
    const temporary = `${path}.new`;
    copyFileSync(path, temporary);
    assert.ok((await read()).names);
    await copy.stop();
    await writtenCopy();
    assert.deepEqual(readdirSync(dirname(path)), ['keys']);
  });

  it('is written with a new token soon after that has changed', async () => {
    const copy = await writtenCopy();
    token = 'svc_rotated';
    assert.match((await read()).reason!, /another token/);
    take(copy, put(rowOf('id-0', 'changed')));
    await until(() => written() === 2);
    assert.equal((await read()).names!['id-0'], 'changed');
  });

  it('may not be possible, which is told once', async () => {
    path = join(tempFolder(), 'missing', 'keys');
    const copy = newCopy();
    take(copy);
    await until(() => lines.length > 0);
    take(copy);
    await copy.stop();
    assert.deepEqual(
      lines.map(({ level, message }) => [level, message]),
      [['warn', 'the copy of the keys cannot be written']],
    );
  });
});
