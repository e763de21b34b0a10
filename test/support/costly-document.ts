import type { Random } from './random.ts';

/** Fields of the types that fragments are on, in order of the cost to compare them. `$` stands for a variable. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  Query: [
    'online',
    'me { id }',
    'apiKey(id: "a") { id }',
    'apiKey(id: $) { id name }',
    'apiKeys(first: 3, search: "x", roles: [ADMIN, VIEWER, GUEST]) { edges { cursor } }',
    'previewPermissions(permissions: [{ resource: ME, actions: [READ_OWN, READ_ANY] }]) { resource }',
  ],
  ApiKey: ['id', 'name', 'permissions { resource }', 'createdBy { id }', 'uses', 'usage(from: $, to: $) { requests }'],
};
/** The approximate maximum of tokens in a document. */
const MAX_TOKENS = 4800;

/**
 * Generates documents that are expensive to validate: many operations, fragments that spread one another, overlapping
 * fields, variables, and unknown names. Many are invalid, and some exceed the limits.
 */
export function costlyDocument(random: Random): string {
  let tokens = 0;
  const count = random.pick([0, 1, 2, 10, 30, 60, 99, 100]);
  const operations = random.pick([1, 1, 1, 2, 20, 150]);
  const variables = random.pick([0, 0, 1, 5, 40]);
  const repeats = random.pick([1, 2, 8, 30, 70, 150, 330]);
  const spreads = random.pick([0, 1, 1, 2, 3, 8]);
  const levels = random.pick([0, 0, 1, 3, 30, 90]);
  const aliases = random.chance(0.3);
  const wrong = random.pick([0, 0, 0, 0.01, 0.5]);
  const typeOf = (index: number) => (random.chance(0.9) ? (index < count / 2 ? 'Query' : 'ApiKey') : 'Query');
  const types = Array.from({ length: count }, (_, index) => typeOf(index));

  const parts = Array.from({ length: operations }, (_, index) => {
    if (tokens > MAX_TOKENS) return '';
    const declared = Array.from({ length: variables }, (_, of) => `$v${of}: ID`);
    tokens += 4 + 4 * variables;
    const head = operations > 1 || variables > 0 ? `query Q${index}${variables > 0 ? `(${declared.join()})` : ''}` : '';
    return `${head}${selection('Query', 0)}`;
  });
  for (const [index, type] of types.entries())
    if (tokens < MAX_TOKENS) parts.push(`fragment F${index} on ${type} ${selection(type, index + 1)}`);
  return parts.join(' ');

  /** @param from the first fragment that can be spread, so that few fragments form a cycle */
  function selection(type: string, from: number): string {
    const depth = random.chance(0.5) ? levels : 0;
    const fields = Array.from({ length: Math.ceil(random.next() * repeats) }, () => fieldOf(type));
    const names = Array.from({ length: spreads }, () => spreadFrom(from));
    tokens += 7 + 3 * depth;
    return `${'{ ... '.repeat(depth)}{ __typename ${[...fields, ...names].join(' ')} }${' }'.repeat(depth)}`;
  }

  function spreadFrom(from: number): string {
    const first = random.chance(0.02) ? 0 : from;
    if (first >= count || tokens > MAX_TOKENS) return '';
    tokens += 2;
    return `...F${Math.min(count - 1, first + Math.floor(random.next() * random.pick([1, 3, count])))}`;
  }

  function fieldOf(type: string): string {
    if (tokens > MAX_TOKENS) return '';
    const field = random.pick(FIELDS[type]!);
    tokens += field.match(/\w+|[^\s\w]/g)!.length;
    const written = field.replaceAll('$', () =>
      variables > 0 ? `$v${Math.floor(random.next() * variables)}` : JSON.stringify(String(random.next())),
    );
    const named = random.chance(wrong) ? `x${Math.floor(random.next() * 1000)}${written}` : written;
    return aliases ? `a${Math.floor(random.next() * 20)}: ${named}` : named;
  }
}

/** The operation to execute; undefined if there is only an unnamed one. */
export function operationNameIn(document: string): string | undefined {
  return document.startsWith('query Q0') ? 'Q0' : undefined;
}
