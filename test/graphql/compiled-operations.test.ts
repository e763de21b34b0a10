import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildSchema, parse } from 'graphql';
import { finished, ROOT } from '../support/process.ts';
import { CompiledOperations, MAX_BYTES } from '../../src/graphql/compiled-operations.ts';
import { compiledSizeOf } from '../../src/graphql/compiled-size.ts';

const schema = buildSchema('type Query { a(x: Int): Int b: Int } type Mutation { c: Int }');

describe('compiled queries', () => {
  let operations: CompiledOperations;
  beforeEach(() => {
    operations = new CompiledOperations(schema);
  });
  const add = (query: string, name: string | null = null) => operations.add(query, name, parse(query));
  const found = (query: string, name: string | null = null) => operations.find(query, name) !== undefined;

  it('are compiled when they are seen for the second time, not for the first', () => {
    assert.equal(found('{ a }'), false);
    add('{ a }');
    assert.equal(found('{ a }'), false);
    add('{ a }');
    assert.equal(found('{ a }'), true);
  });

  it('are told apart by their operation name', () => {
    const query = 'query One { a } query Two { b }';
    for (let time = 0; time < 2; time += 1) add(query, 'One');
    assert.deepEqual([found(query, 'One'), found(query, 'Two'), found(query)], [true, false, false]);
  });

  it('are shared by requests with other variables', async () => {
    const query = 'query ($x: Int) { a(x: $x) }';
    schema.getQueryType()!.getFields()['a']!.resolve = (_, { x }: { x: number }) => x;
    for (let time = 0; time < 2; time += 1) add(query);
    const run = operations.find(query, null)!;
    const context = {} as never;
    assert.deepEqual(await run(context, { x: 1 }), { data: { a: 1 } });
    assert.deepEqual(await run(context, { x: 2 }), { data: { a: 2 } });
    assert.equal((await run(context, { x: 'no' }))?.errors?.length, 1);
  });

  for (const [what, query] of [
    ['a mutation', 'mutation { c }'],
    ['the schema', '{ __schema { queryType { name } } a }'],
    ['a type of the schema', '{ __type(name: "Query") { name } }'],
    ['a directive', '{ a @include(if: true) b }'],
    ['a document of more than 20,000 characters', `{ a ${' '.repeat(20_000)} }`],
  ] as const) {
    it(`are none for ${what}`, () => {
      for (let time = 0; time < 4; time += 1) add(query);
      assert.equal(found(query), false);
    });
  }

  it('are bounded in number: the least recently used are evicted first', () => {
    const query = (index: number) => `{ a(x: ${index}) }`;
    for (let time = 0; time < 2; time += 1) add('{ b }');
    for (let index = 0; index < 1500; index += 1) {
      add(query(index));
      assert.ok(found('{ b }'));
    }
    add(query(0));
    assert.equal(found(query(0)), false, 'it had been forgotten');
    add(query(1499));
    assert.equal(found(query(1499)), true);
  });

  for (const shape of ['resolvers', 'lists', 'names', 'fragments'])
    it(`take no more memory than is counted for them: ${shape}`, async () => {
      const child = join(ROOT, 'test/support/compiled-child.ts');
      const { stdout, stderr } = await finished(spawn(process.execPath, ['--expose-gc', child, shape]));
      assert.ok(Number(stdout) < 1, `${stdout} times as much\n${stderr}`);
      assert.notEqual(stdout, '', stderr);
    });

  it('are bounded by the memory that is counted for them', () => {
    const query = (index: number) => `{ x${index}: a ${'b '.repeat(99)}}`;
    const { bytes } = compiledSizeOf(schema, parse(query(0)), null);
    const most = Math.floor(MAX_BYTES / bytes);
    for (let index = 0; index <= most; index += 1) for (let time = 0; time < 2; time += 1) add(query(index));
    assert.deepEqual([found(query(0)), found(query(2)), found(query(most))], [false, true, true]);
  });

  it('are none where compiling would take long', () => {
    const wide = (fields: number) => `{ ${'a '.repeat(fields)}}`;
    for (let time = 0; time < 3; time += 1) for (const fields of [100, 101]) add(wide(fields));
    assert.deepEqual([found(wide(100)), found(wide(101))], [true, false]);
  });

  it('are bounded in size', () => {
    const query = (index: number) => `{ a(x: ${index}) ${' '.repeat(19_000)} }`;
    for (let index = 0; index < 1000; index += 1) add(query(index));
    add(query(0));
    assert.equal(found(query(0)), false, 'it had been forgotten');
  });
});
