import { parse } from 'graphql';
import { RequestBudget, BUDGET } from '../../src/graphql/budget/request-budget.ts';
import { Turns } from '../../src/graphql/budget/turns.ts';
import { CompiledOperations, MAX_BYTES } from '../../src/graphql/compiled-operations.ts';
import { compiledSizeOf } from '../../src/graphql/compiled-size.ts';
import type { BudgetedContext } from '../../src/graphql/context.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { createPrincipal, openTestKeys } from './keys.ts';

const times = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ');
const SHAPES: Record<string, (index: number) => string> = {
  small: (index) => `{ x${index}: online }`,
  leaves: (index) => `{ x${index}: me { ${times(95, (i) => `a${i}: name`)} } }`,
  resolvers: (index) => `{ x${index}: me { ${times(95, (i) => `a${i}: uses`)} } }`,
  roots: (index) => `{ x${index}: me { id } ${times(45, (i) => `a${i}: me { id }`)} }`,
  rotations: (index) => `{ x${index}: online ${times(32, (i) => `a${i}: me { rotation { previousLastUsedAt } }`)} }`,
  lists: (index) => `{ x${index}: me { ${times(5, (i) => `a${i}: usedPermissions { resource actions }`)} } }`,
  names: (index) => `{ x${index}: online ${'a'.repeat(3000)}: me { ${times(90, (i) => `a${i}: uses`)} } }`,
  fragments: (index) =>
    `{ x${index}: me { ...A } ${times(9, (i) => `a${i}: me { ...A }`)} } fragment A on ApiKey { ${times(8, (i) => `a${i}: uses`)} }`,
};

/**
 * Compiles and runs queries of one shape, as a guest would who wants to fill the memory, and prints how much the heap
 * has grown, in relation to what the cache counts for them. Needs `--expose-gc`.
 */
const shape = SHAPES[process.argv[2]!]!;
const { keys, store } = await openTestKeys();
const { principal } = await createPrincipal(keys, { name: 'Guest', roles: ['GUEST'] });
const { executed } = await createSchema(keys, { name: 'x', version: '1', startedAt: 0 });
const turns = new Turns();
const operations = new CompiledOperations(executed);
const { bytes } = compiledSizeOf(executed, parse(shape(0)), null);
// What the first queries of a program leave behind is not theirs.
await fill(new CompiledOperations(executed), 5);
globalThis.gc!();
const before = process.memoryUsage().heapUsed;
const count = Math.ceil(MAX_BYTES / 3 / bytes);
await fill(operations, count);
globalThis.gc!();
const grown = process.memoryUsage().heapUsed - before;
if (!operations.find(shape(0), null)) throw new Error('It was evicted.');
process.stdout.write((grown / (count * bytes)).toFixed(2));
await store.close();

async function fill(cache: CompiledOperations, queries: number): Promise<void> {
  for (let index = 0; index < queries; index += 1) {
    const text = shape(index);
    for (let time = 0; time < 2; time += 1) cache.add(text, null, parse(text));
    const run = cache.find(text, null);
    const budget = new RequestBudget(BUDGET, turns);
    const context = { principal, budget, signal: budget.signal, isSpeculative: true } as unknown as BudgetedContext;
    for (let time = 0; time < 3; time += 1) await run?.(context, null);
  }
}
