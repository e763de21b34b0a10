import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RecordFile } from '../../src/edge/record-file.ts';
import { KeyTable } from '../../src/edge/key-table.ts';
import { digestOf, type FeedRow, lineOf } from '../support/feed-rows.ts';
import { Random } from '../support/random.ts';

/** The ids of stores that other programs write as well. */
const IDS = ['plain', 'with "quotes"', 'back\\slash', 'line\nbreak', 'é 🔑', '', '\u0000', '[1]', 'null', '7'];

function valuesOf(row: ReturnType<KeyTable['findById']>): FeedRow | undefined {
  return row && { id: row.id, digest: row.digest, previous: row.previous_digest, name: row.name };
}

describe('the table of an edge', () => {
  for (const folder of [undefined, '/nowhere'])
    it(`has what a map has after any changes, ${folder ? 'in memory, where no file can be made' : 'in a file'}`, () => {
      const table = new KeyTable(new RecordFile(folder));
      const random = new Random(42);
      const ids = [...IDS, ...Array.from({ length: 400 }, (_, index) => `id-${index}`)];
      const expected = new Map<string, FeedRow>();
      let digests = 0;
      const newDigest = () => digestOf(`secret ${(digests += 1)}`);
      const gone = new Set<string>();
      for (let step = 0; step < 5000; step += 1) {
        const id = random.pick(ids);
        const before = expected.get(id);
        for (const digest of [before?.digest, before?.previous]) if (digest) gone.add(digest);
        if (random.chance(0.3)) {
          table.remove(id);
          expected.delete(id);
        } else {
          const previous = random.chance(0.3) ? (before?.digest ?? newDigest()) : null;
          const row = { id, digest: newDigest(), previous, name: 'x'.repeat(Math.floor(random.next() * 1500)) };
          table.put(lineOf(row, random.chance(0.5) ? ' ' : ''));
          expected.set(id, row);
        }
        const now = expected.get(id);
        for (const digest of [now?.digest, now?.previous]) if (digest) gone.delete(digest);
        assert.deepEqual(valuesOf(table.findById(id)), now);
      }
      assert.equal(table.size, expected.size);
      for (const row of expected.values()) {
        assert.deepEqual(valuesOf(table.findById(row.id)), row);
        for (const digest of [row.digest, row.previous])
          if (digest) assert.deepEqual(valuesOf(table.findByDigest(digest)), row);
      }
      for (const digest of gone) assert.equal(table.findByDigest(digest), undefined);
      assert.equal(table.problem !== undefined, folder !== undefined);
      table.close();
    });

  it('finds each of many keys while it grows, and not what is like one', () => {
    const table = new KeyTable();
    for (let index = 0; index < 30_000; index += 1)
      table.put(lineOf({ id: `${index}`, digest: digestOf(`${index}`), previous: null, name: `${index}` }));
    for (let index = 0; index < 30_000; index += 997) {
      assert.equal(table.findById(`${index}`)?.name, `${index}`);
      assert.equal(table.findByDigest(digestOf(`${index}`))?.name, `${index}`);
      assert.equal(table.findByDigest(digestOf(`no ${index}`)), undefined);
    }
    assert.equal(table.size, 30_000);
    table.close();
  });

  it('uses the room of keys that are gone again', () => {
    const table = new KeyTable(new RecordFile('/nowhere'));
    const rows = Array.from({ length: 4000 }, (_, index) => `${index}`);
    const put = (version: string) => {
      for (const id of rows)
        table.put(lineOf({ id, digest: digestOf(id + version), previous: null, name: version.padEnd(1000) }));
    };
    put('first');
    const { memoryBytes } = table;
    for (let version = 0; version < 5; version += 1) put(`${version}`);
    assert.ok(table.memoryBytes < 1.2 * memoryBytes, `${memoryBytes} bytes became ${table.memoryBytes}`);
    assert.equal(table.findById('77')!.name.trim(), '4');
    table.close();
  });

  it('refuses what is not the row of a key', () => {
    const table = new KeyTable();
    for (const text of ['', '[]', '{}', '["a"]', 'null', '["a","b",null'])
      assert.throws(() => table.put(Buffer.from(text)), SyntaxError, text);
    table.close();
  });

  it('keeps nothing of a key in a file that anybody can read', () => {
    const folder = mkdtempSync(join(tmpdir(), 'edge-'));
    const table = new KeyTable(new RecordFile(folder));
    const name = 'a name that is not to be read';
    for (let index = 0; index < 10_000; index += 1)
      table.put(lineOf({ id: `${index}`, digest: digestOf(`${index}`), previous: null, name }));
    assert.deepEqual(readdirSync(folder), []);
    const unnamed = readdirSync('/proc/self/fd').filter((fd) => {
      const stat = statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false });
      return stat?.isFile() && stat.nlink === 0;
    });
    const contents = unnamed.map((fd) => readFileSync(`/proc/self/fd/${fd}`));
    assert.ok(contents.some((bytes) => bytes.length > 1_000_000));
    assert.ok(contents.every((bytes) => !bytes.includes(name)));
    table.close();
  });
});
