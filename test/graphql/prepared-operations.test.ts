import assert from 'node:assert/strict';
import { buildSchema, parse } from 'graphql';
import { MAX_BYTES, PreparedOperations, preparedSizeOf } from '../../src/graphql/execution/prepared.ts';

const schema = buildSchema('type Query { a(x: Int): Int b: Int } type Mutation { c: Int }');

describe('prepared operations', () => {
  let operations: PreparedOperations;
  beforeEach(() => {
    operations = new PreparedOperations(schema);
  });
  const prepare = (query: string, name: string | null = null) =>
    operations.prepare(query, name, { document: parse(query), cost: 1 });
  /** Twice, because an operation is kept when it is seen again. */
  const add = (query: string, name: string | null = null) => [prepare(query, name), prepare(query, name)];
  const found = (query: string, name: string | null = null) => operations.find(query, name) !== undefined;

  it('are distinguished by their operation name', () => {
    const query = 'query One { a } query Two { b }';
    add(query, 'One');
    assert.deepEqual([found(query, 'One'), found(query, 'Two'), found(query)], [true, false, false]);
  });

  it('are distinguished from a query that ends elsewhere', () => {
    add('#\0\n{ a }');
    assert.deepEqual([found('#\0\n{ a }'), found('#', '\n{ a }'), found('#\0', '\n{ a }')], [true, false, false]);
  });

  it('are kept from the second time on, up to 100,000 characters', () => {
    for (const [blanks, isKept] of [
      [10, true],
      [50_000, true],
      [100_000, false],
    ] as const) {
      const query = `{ a ${' '.repeat(blanks)} }`;
      assert.equal(operations.hasSeen(query, null), false);
      prepare(query);
      assert.deepEqual([operations.hasSeen(query, null), found(query)], [isKept, false]);
      prepare(query);
      assert.deepEqual([operations.hasSeen(query, null), found(query)], [false, isKept]);
    }
  });

  it('are bounded in number: the least recently used are evicted first', () => {
    const query = (index: number) => `{ a(x: ${index}) }`;
    add('{ b }');
    for (let index = 0; index < 3000; index += 1) {
      add(query(index));
      assert.ok(found('{ b }'));
    }
    assert.deepEqual([found(query(0)), found(query(2999))], [false, true]);
  });

  it('are bounded by the memory that is counted for them', () => {
    const query = (index: number) => `{ x${index}: a ${'b '.repeat(99)}}`;
    const text = query(0);
    const bytes = 2 * text.length + preparedSizeOf(schema, parse(text), { operationName: null, plans: 1 });
    const most = Math.floor(MAX_BYTES / bytes);
    for (let index = 0; index <= most; index += 1) add(query(index));
    assert.deepEqual([found(query(0)), found(query(3)), found(query(most))], [false, true, true]);
  });
});
