import assert from 'node:assert/strict';
import { KeyTable } from '../../../src/features/edge/key-table.ts';
import { digestOf, type FeedRow, lineOf } from '../../support/feed-rows.ts';
import { Random } from '../../support/random.ts';

/** Unusual ids, as written by other programs. */
const IDS = ['plain', 'with "quotes"', 'back\\slash', 'line\nbreak', 'é 🔑', '', '\u0000', '[1]', 'null', '7'];

function valuesOf(row: ReturnType<KeyTable['findById']>): FeedRow | undefined {
  return row && { id: row.id, digest: row.digest, previous: row.previous_digest, name: row.name };
}

describe('the table of an edge', () => {
  it('has the content of a map after any changes', () => {
    const table = new KeyTable();
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
  });

  it('finds each of many keys while it grows, and no similar one', () => {
    const table = new KeyTable();
    for (let index = 0; index < 30_000; index += 1)
      table.put(lineOf({ id: `${index}`, digest: digestOf(`${index}`), previous: null, name: `${index}` }));
    for (let index = 0; index < 30_000; index += 997) {
      assert.equal(table.findById(`${index}`)?.name, `${index}`);
      assert.equal(table.findByDigest(digestOf(`${index}`))?.name, `${index}`);
      assert.equal(table.findByDigest(digestOf(`no ${index}`)), undefined);
    }
    assert.equal(table.size, 30_000);
  });

  it('forgets the rows of keys that were changed or are gone', () => {
    const table = new KeyTable();
    const rows = Array.from({ length: 4000 }, (_, index) => `${index}`);
    const put = (version: string) => {
      for (const id of rows)
        table.put(lineOf({ id, digest: digestOf(id + version), previous: null, name: version.padEnd(1000) }));
    };
    put('first');
    const { rowBytes } = table;
    for (let version = 0; version < 5; version += 1) put(`${version}`);
    assert.equal(table.rowBytes, rowBytes);
    assert.equal(table.findById('77')!.name.trim(), '4');
    for (const id of rows) table.remove(id);
    assert.deepEqual([table.size, table.rowBytes], [0, 0]);
  });

  it('finds the key that has a digest now, though the one that had it before goes later', () => {
    const table = new KeyTable();
    const digest = digestOf('one');
    for (const id of ['old', 'new']) table.put(lineOf({ id, digest, previous: null, name: id }));
    table.remove('old');
    assert.equal(table.findByDigest(digest)?.id, 'new');
  });

  it('refuses invalid rows', () => {
    const table = new KeyTable();
    for (const text of ['', '[]', '{}', '["a"]', 'null', '["a","b",null'])
      assert.throws(() => table.put(Buffer.from(text)), SyntaxError, text);
  });
});
