import { parse } from 'graphql';
import { BUDGET, costOf, RequestBudget, Turns } from '../../src/graphql/execution/budget.ts';
import type { BudgetedContext } from '../../src/graphql/context.ts';
import { MAX_BYTES, PreparedOperations, preparedSizeOf } from '../../src/graphql/execution/prepared.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { createPrincipal, openTestKeys } from './keys.ts';

const times = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ');
const CONDITIONS = ['a', 'b', 'c', 'd'];
const SHAPES: Record<string, (index: number) => string> = {
  small: (index) => `{ x${index}: online }`,
  leaves: (index) => `{ x${index}: me { ${times(95, (i) => `a${i}: name`)} } }`,
  resolvers: (index) => `{ x${index}: me { ${times(95, (i) => `a${i}: uses`)} } }`,
  roots: (index) => `{ x${index}: me { id } ${times(45, (i) => `a${i}: me { id }`)} }`,
  rotations: (index) => `{ x${index}: online ${times(32, (i) => `a${i}: me { rotation { previousLastUsedAt } }`)} }`,
  lists: (index) => `{ x${index}: me { ${times(5, (i) => `a${i}: usedPermissions { resource actions }`)} } }`,
  names: (index) => `{ x${index}: online ${'a'.repeat(3000)}: me { ${times(90, (i) => `a${i}: uses`)} } }`,
  literals: (index) =>
    `{ x${index}: previewPermissions(permissions: [${times(180, () => '{resource: ME, actions: [READ_OWN]}')}]) { resource } }`,
  escapes: (index) => `{ x${index}: online apiKeys(search: "${'a\\n'.repeat(30_000)}") { __typename } }`,
  comments: (index) => `{ x${index}: online }${'\n#'.repeat(9000)}`,
  fragments: (index) =>
    `{ x${index}: me { ...A } ${times(9, (i) => `a${i}: me { ...A }`)} } fragment A on ApiKey { ${times(8, (i) => `a${i}: uses`)} }`,
  conditions: (index) =>
    `query (${CONDITIONS.map((name) => `$${name}: Boolean!`).join()}) { x${index}: me { id ${CONDITIONS.map((name) => `${name}: name @skip(if: $${name})`).join(' ')} } }`,
};

/**
 * Prepares and runs queries of one shape, as an attacker who wants to fill the memory, and prints the growth of the
 * heap relative to the size that the cache assumes. Needs `--expose-gc`.
 */
const shape = SHAPES[process.argv[2]!]!;
const { keys, store } = await openTestKeys();
const { principal } = await createPrincipal(keys, { name: 'Guest', roles: ['GUEST'] });
const schema = await createSchema(keys, { name: 'x', version: '1', startedAt: 0 });
const turns = new Turns();
const plans = process.argv[2] === 'conditions' ? 2 ** CONDITIONS.length : 1;
const text = shape(0);
const bytes = 2 * text.length + preparedSizeOf(schema, parse(text), { operationName: null, plans });
// Ignores what the first queries of a program leave in memory.
await fill(new PreparedOperations(schema), 5);
globalThis.gc!();
const before = process.memoryUsage().heapUsed;
const operations = new PreparedOperations(schema);
const count = Math.min(900, Math.ceil(MAX_BYTES / 3 / bytes));
await fill(operations, count);
globalThis.gc!();
const grown = process.memoryUsage().heapUsed - before;
if (!operations.find(shape(0), null)) throw new Error('It was evicted.');
process.stdout.write((grown / (count * bytes)).toFixed(2));
await store.close();

async function fill(cache: PreparedOperations, queries: number): Promise<void> {
  for (let index = 0; index < queries; index += 1) {
    const query = shape(index);
    const document = parse(query);
    for (let time = 0; time < 2; time += 1)
      cache.prepare(query, null, { document, cost: costOf(schema, document, null) });
    for (let combination = 0; combination < plans; combination += 1) {
      const budget = new RequestBudget(BUDGET, turns);
      const context = { principal, budget, signal: budget.signal } as unknown as BudgetedContext;
      const variables = Object.fromEntries(CONDITIONS.map((name, bit) => [name, Boolean(combination & (1 << bit))]));
      await cache.find(query, null)!.execute(context, variables);
    }
  }
}
