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
 * Compiles and runs many queries of one shape, as a guest would who wants to fill the memory, and prints how much the
 * heap has grown, in relation to what the cache may take. Needs `--expose-gc`.
 */
const shape = SHAPES[process.argv[2]!]!;
const { keys, store } = await openTestKeys();
const { principal } = await createPrincipal(keys, { name: 'Guest', roles: ['GUEST'] });
const { executed } = await createSchema(keys, { name: 'x', version: '1', startedAt: 0 });
const turns = new Turns();
const operations = new CompiledOperations(executed);
await fill(20, 1_000_000);
globalThis.gc!();
const before = process.memoryUsage().heapUsed;
// Enough to fill the cache once and to go on.
const { bytes } = compiledSizeOf(executed, parse(shape(0)), null);
await fill(Math.max(100, Math.ceil((1.3 * MAX_BYTES) / bytes)), 0);
globalThis.gc!();
process.stdout.write(((process.memoryUsage().heapUsed - before) / MAX_BYTES).toFixed(2));
await store.close();

async function fill(count: number, from: number): Promise<void> {
  for (let index = from; index < from + count; index += 1) {
    const text = shape(index);
    for (let time = 0; time < 2; time += 1) operations.add(text, null, parse(text));
    const run = operations.find(text, null);
    const budget = new RequestBudget(BUDGET, turns);
    const context = { principal, budget, signal: budget.signal, isSpeculative: true } as unknown as BudgetedContext;
    for (let time = 0; time < 3; time += 1) await run?.(context, null);
  }
}
