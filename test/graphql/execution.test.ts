import assert from 'node:assert/strict';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { execute, type ExecutionResult, parse, validate } from 'graphql';
import { BUDGET, GROUP_SIZE, keepToBudget, RequestBudget, Turns } from '../../src/graphql/execution/budget.ts';
import type { BudgetedContext } from '../../src/graphql/context.ts';
import { PreparedOperation } from '../../src/graphql/execution/prepared.ts';
import { errorsInOrder, formatGraphQLError } from '../../src/http/graphql-errors.ts';
import { NO_LOG } from '../../src/log.ts';
import { passOverLeaks } from '../support/leaks.ts';
import { Random } from '../support/random.ts';
import { randomQuery } from '../support/random-query.ts';

const later = async <Value>(value: Value) => value;
const fail = (message: string): never => {
  throw new Error(message);
};
/** Promises of another class than `Promise`. */
const thenable = <Value>(value: Value) => {
  const promise = later(value);
  // oxlint-disable-next-line unicorn/no-thenable -- it is what resolvers may return
  return { then: promise.then.bind(promise) };
};

class Node {
  kind: string;
  depth: number;
  constructor(kind: string, depth: number) {
    this.kind = kind;
    this.depth = depth;
  }
  get plain() {
    return `text "${this.depth}" \u2028 😀 \ud800`;
  }
  method({ x }: { x?: number }, _context: unknown, { fieldName }: { fieldName: string }) {
    return `${fieldName} ${x} ${this.depth}`;
  }
  promised = later(7);
  thenable = thenable('eventually');
  get throwing(): string {
    return fail('a getter failed');
  }
  failure = new Error('a failure as a value');
  number = 1e21;
  notANumber = 'x';
  color = 'RED';
  wrongColor = 'BLUE';
  json = { a: [1, undefined, () => 1], b: undefined, toJSON: undefined };
  left = () => Symbol('left out');
  get next(): Node | null {
    return this.depth > 3 ? null : new Node(this.depth % 2 ? 'A' : 'B', this.depth + 1);
  }
  lost = () => later(new Node('Lost', 0));
  any = () => this.next;
  anyLater = () => later(this.next);
  list = [1, 2, null, 3];
  lists = [[1], null, [later(2), new Error('an item failed')]];
  iterable = new Set(['a', 'b']);
  generated = function* generated() {
    yield 'first';
    yield later('second');
  };
  notAList = 'text';
  nodes = () => (this.depth > 3 ? [] : [this.next, later(this.next), null, thenable(this.next)]);
  strictNodes = () => (this.depth > 3 ? [] : [this.next, later(null), this.next, fail]);
  strictest = () => later(null);
  echo = (args: object) => JSON.stringify(args);
  many = () => Array.from({ length: 50 }, (_, index) => (index === 33 ? null : { kind: 'A', number: index }));
}

const FIELDS = `
  plain: String method(x: Int = 3): String promised: Int! thenable: String throwing: String throwingStrictly: String!
  failure: String number: Float notANumber: Int notANumberStrictly: Int! color: Color wrongColor: Color json: Json
  left: Left missing: String missingStrictly: String! next: A strictNext: A! any: Any anyLater: Any lost: Any
  checked: Checked list: [Int] strictList: [Int!] lists: [[Int]] iterable: [String!] generated: [String] notAList: [String]
  nodes: [A] strictNodes: [A!] strictest: A! union: [Either!] many: [A!]
  echo(int: Int, color: Color, list: [Int!], input: Input, text: String = "none", required: Int! = 4): String
  resolved: String resolvedLater: String failing: String failingLater: String! slow: [A]`;
const schema = makeExecutableSchema({
  typeDefs: `
    enum Color { RED GREEN }
    scalar Json
    scalar Left
    input Input { a: Int! b: [Color!] = [GREEN] }
    interface Any { plain: String next: A strictNext: A! }
    type A implements Any { ${FIELDS} }
    type B implements Any { ${FIELDS} }
    type Checked { plain: String }
    union Either = A | B
    type Query { ${FIELDS} root: A strictRoot: A! }
    type Mutation { ${FIELDS} }`,
  resolvers: {
    ...Object.fromEntries(
      ['Query', 'Mutation', 'A', 'B'].map((type) => [
        type,
        {
          ...(type === 'Query' || type === 'Mutation' ? rootResolvers() : {}),
          throwingStrictly: () => fail('strictly'),
          notANumberStrictly: () => 'x',
          missingStrictly: () => undefined,
          strictNext: (node: Node | null) => node?.next,
          checked: (node: Node | null) => node,
          strictList: () => [1, later(null), 2],
          union: (node: Node | null) => (node ? [node.next, new Node('B', 4)].filter(Boolean) : []),
          resolved: (_: unknown, __: unknown, context: object, info: { path: object; fieldName: string }) =>
            `${Object.keys(info).toSorted().join()} ${JSON.stringify(pathOf(info.path))} ${'budget' in context}`,
          resolvedLater: () => later('later'),
          failing: () => fail('failing'),
          failingLater: async () => fail('failing later'),
          slow: async () => [new Node('A', 4), new Node('B', 3)],
        },
      ]),
    ),
    Any: { __resolveType: ({ kind }: Node) => (kind === 'A' ? 'A' : kind === 'B' ? later('B') : kind) },
    Either: { __resolveType: ({ kind }: Node) => kind },
    Checked: { __isTypeOf: ({ depth }: Node) => (depth > 2 ? later(true) : depth === 2) },
    Left: { __serialize: (value: unknown) => value },
  } as never,
});
keepToBudget(schema);

function rootResolvers(): object {
  const root = new Node('A', 0);
  const names = Object.keys(fieldNames());
  return Object.fromEntries(
    names.map((name) => [
      name,
      (_: unknown, args: object, context: unknown, info: { fieldName: string }) => {
        const value = (root as unknown as Record<string, unknown>)[name];
        return typeof value === 'function'
          ? (value as (...given: unknown[]) => unknown).call(root, args, context, info)
          : value;
      },
    ]),
  );
}

function fieldNames(): Record<string, true> {
  return Object.fromEntries([...FIELDS.matchAll(/(\w+)(?:\([^)]*\))?:(?= [A-Z[])/g)].map(([, name]) => [name!, true]));
}

function pathOf(path: object | undefined): unknown[] {
  const { prev, key, typename } = (path ?? {}) as { prev?: object; key?: unknown; typename?: unknown };
  return path ? [...pathOf(prev), key, typename] : [];
}

/** Turns never end, because waiting for one would change what fails first. */
const turns = new Turns(Infinity);
const contextOf = () => ({ budget: new RequestBudget(BUDGET, turns) }) as unknown as BudgetedContext;
turns.begin();
const written = (result: ExecutionResult) => {
  const errors = errorsInOrder(result).map((error) => formatGraphQLError(error, { log: NO_LOG, requestId: undefined }));
  // If a condition of the operation itself is null, execution does not start.
  return JSON.stringify({ data: result.data ?? null, errors }).replaceAll(/"requestId":"[^"]*"/g, '');
};

/** The result of graphql-js and `JSON.stringify`. */
async function byGraphqlJs(query: string, operationName: string | null, variableValues: object): Promise<string> {
  const result = await execute({
    schema,
    document: parse(query),
    contextValue: contextOf(),
    variableValues: variableValues as Record<string, unknown>,
    operationName,
  });
  return written(result);
}

/** Executes an operation whose turn is over at each check. @param onTurn called in each turn of others */
async function executeInterrupted(
  operation: PreparedOperation,
  onTurn: () => unknown = () => {},
): Promise<ExecutionResult> {
  const slices = new Turns(0);
  slices.begin();
  let next = setImmediate(function turn() {
    onTurn();
    next = setImmediate(turn);
  });
  try {
    const context = { budget: new RequestBudget(BUDGET, slices) } as unknown as BudgetedContext;
    return await operation.execute(context, null);
  } finally {
    clearImmediate(next);
  }
}

describe('a prepared operation', () => {
  // graphql-js leaves unhandled promises if one item of a list fails at once, and another one later.
  before(() =>
    passOverLeaks((reason) => reason instanceof Error && /graphql\/execution\/execute\.js/.test(reason.stack!)),
  );

  const prepare = (query: string) => new PreparedOperation(schema, parse(query), null, 1);

  it('lets others have their turns within short lists, too', async () => {
    const operation = prepare(`{ ${'nodes { '.repeat(4)} plain ${'} '.repeat(4)} }`);
    let turns = 0;
    const interrupted = await executeInterrupted(operation, () => (turns += 1));
    assert.ok(turns > 3, `${turns} turns`);
    assert.deepEqual(interrupted, await operation.execute(contextOf(), null));
  });

  it('interrupts a list that contains the list whose turn is over', async () => {
    let turns = 0;
    const readIn = new Map<number, number>();
    const item = {
      // Four with the item itself: groups of 20 always end within these.
      parts: [1, 2, 3],
      get read() {
        readIn.set(turns, (readIn.get(turns) ?? 0) + 1);
        return 0;
      },
    };
    const lists = makeExecutableSchema({
      typeDefs: 'type Item { read: Int parts: [Int] } type Query { items: [Item] }',
      resolvers: { Query: { items: () => Array.from({ length: 100 }, () => item) } },
    });
    const operation = new PreparedOperation(lists, parse('{ items { read parts } }'), null, 1);
    const interrupted = await executeInterrupted(operation, () => (turns += 1));
    assert.ok(Math.max(...readIn.values()) <= GROUP_SIZE, [...readIn.values()].join());
    assert.deepEqual(interrupted, await operation.execute(contextOf(), null));
  });

  it('survives what rejects within the items of lists that wait', async () => {
    const fails = () => later(null).then(() => fail('rejected meanwhile'));
    const values: Record<string, () => unknown> = {
      'lists: [[Item]]': () => [{ name: 'a' }, fails()],
      'promises: [[Item]]': () => later([{ name: 'a' }, fails()]),
      'properties: [Item]': () => ({ name: fails() }),
      'anything: [Any]': () => ({ __typename: 'Item', name: fails() }),
      'nested: [Item]': () => ({ other: { others: [{ name: 'a' }, { name: fails() }] } }),
    };
    for (const [field, make] of Object.entries(values)) {
      const lists = makeExecutableSchema({
        typeDefs: `
          interface Any { name: String }
          type Item implements Any { name: String other: Item others: [Item] }
          type Query { ${field} }`,
        resolvers: { Query: { [field.replace(/:.*/, '')]: () => Array.from({ length: 3 * GROUP_SIZE }, make) } },
      });
      keepToBudget(lists);
      const name = field.replace(/:.*/, '');
      const operation = new PreparedOperation(
        lists,
        parse(`{ ${name} { ... on Item { name other { others { name } } } } }`),
        null,
        1,
      );
      const { errors } = await executeInterrupted(operation);
      assert.equal(errors?.length, 3 * GROUP_SIZE, field);
    }
  });

  it('waits once for thenables that start when they are awaited', async () => {
    let begun = 0;
    const lazy = () => ({
      // oxlint-disable-next-line unicorn/no-thenable -- it is what query builders return
      then(...settle: Parameters<Promise<object>['then']>) {
        begun += 1;
        return later({ name: 'a' }).then(...settle);
      },
    });
    const lists = makeExecutableSchema({
      typeDefs: 'type Item { name: String } type Query { items: [Item] }',
      resolvers: { Query: { items: () => Array.from({ length: 3 * GROUP_SIZE }, lazy) } },
    });
    await executeInterrupted(new PreparedOperation(lists, parse('{ items { name } }'), null, 1));
    assert.equal(begun, 3 * GROUP_SIZE);
  });

  it('counts the fields of a list by the conditions of the request', async () => {
    const operation = prepare(
      'query ($all: Boolean!) { many { plain } many @include(if: $all) { a: plain b: plain c: plain } }',
    );
    const run = async (all: boolean) => {
      const budget = new RequestBudget({ ...BUDGET, nodes: 150 }, turns);
      const { errors } = await operation.execute({ budget }, { all });
      return errors?.some(({ extensions }) => extensions['code'] === 'COST_EXCEEDED') ?? false;
    };
    for (const all of [false, true, false, true]) assert.equal(await run(all), all);
  });

  it('reads each property of an object once, with any result', async () => {
    const read: string[] = [];
    const kinds: Record<string, () => unknown> = {
      plain: () => 'text',
      nothing: () => null,
      promised: () => later('later'),
      object: () => ({ toString: () => 'converted' }),
      method: () => () => 'called',
      throwing: () => fail('a getter failed'),
    };
    for (const kind of Object.keys(kinds)) {
      const item = Object.defineProperties(
        {},
        Object.fromEntries(
          ['a', 'b', 'c'].map((name) => [
            name,
            {
              get: () => {
                read.push(name);
                return name === 'b' ? kinds[kind]!() : name;
              },
            },
          ]),
        ),
      );
      const items = makeExecutableSchema({
        typeDefs: 'type Item { a: String b: String c: String } type Query { items: [Item] }',
        resolvers: { Query: { items: () => [item] } },
      });
      const operation = new PreparedOperation(items, parse('{ items { a b c } }'), null, 1);
      for (const time of ['first', 'second']) {
        read.length = 0;
        await operation.execute(contextOf(), null);
        // graphql-js' resolver reads a method once more to call it.
        assert.deepEqual(read, kind === 'method' ? ['a', 'b', 'b', 'c'] : ['a', 'b', 'c'], `${kind}, ${time} time`);
      }
    }
  });

  for (const type of ['[A]', '[A!]', '[A]!'])
    it(`has what graphql-js has of items of all kinds in a list ${type}, each time`, async () => {
      const items: Record<string, () => unknown> = {
        instance: () => new Node('A', 1),
        promise: () => later(new Node('A', 2)),
        thenable: () => thenable(new Node('A', 3)),
        nothing: () => null,
        error: () => new Error('an error as an item'),
        rejected: () => later(null).then(() => fail('a rejected item')),
        touchy: () => ({
          // oxlint-disable-next-line unicorn/no-thenable -- it is what resolvers may return
          get then() {
            return fail('not even asked whether it is a promise');
          },
        }),
        proxy: () => new Proxy({}, { get: () => fail('no property'), getPrototypeOf: () => fail('no prototype') }),
        text: () => 'text',
        method: () => () => 1,
        array: () => ['plain'],
        partial: () => ({ plain: 'first', number: 'not a number', failure: later('later') }),
      };
      for (const [kind, make] of Object.entries(items)) {
        const lists = makeExecutableSchema({
          typeDefs: `type A { plain: String number: Float failure: String } type Query { list: ${type} }`,
          resolvers: { Query: { list: () => [{ plain: 'before' }, make(), { plain: 'after' }] } },
        });
        const query = '{ list { plain failure number again: plain } }';
        const expected = written(await execute({ schema: lists, document: parse(query) }));
        const operation = new PreparedOperation(lists, parse(query), null, 1);
        for (const time of ['first', 'second'])
          assert.equal(written(await operation.execute(contextOf(), null)), expected, `${kind}, ${time} time`);
      }
    });

  it('asks of each item whether it has the type, and whether its fields are skipped', async () => {
    const lists = makeExecutableSchema({
      typeDefs: 'type A { plain: String } type B { plain: String } type Query { a: [A] b: [B] none: [B] }',
      resolvers: {
        Query: { a: () => [{ plain: 'is' }, { plain: 'is not' }], b: () => [{}, {}], none: () => [] },
        A: { __isTypeOf: ({ plain }: { plain: string }) => plain === 'is' },
      } as never,
    });
    const left = '{ plain @include(if: $if) }';
    const query = `query ($if: Boolean = true) { a { plain } b ${left} none ${left} }`;
    const operation = new PreparedOperation(lists, parse(query), null, 1);
    for (const variableValues of [{}, {}, { if: null }, { if: null }]) {
      const expected = await execute({ schema: lists, document: parse(query), variableValues });
      assert.equal(written(await operation.execute(contextOf(), variableValues)), written(expected));
    }
  });

  it('has at most 1,000 errors', async () => {
    const operation = prepare(
      `{ many { ${Array.from({ length: 60 }, (_, index) => `a${index}: failing`).join(' ')} } }`,
    );
    const run = async () => operation.execute(contextOf(), null);
    await assert.rejects(run, { extensions: { code: 'COST_EXCEEDED', cost: 1001, limit: 1000 } });
  });

  for (const seed of process.env['SVC_API_TEST_SEEDS']?.split(',').map(Number) ?? [1])
    for (const operation of ['query', 'mutation'] as const)
      it(`has the same data and errors as graphql-js, in the same bytes: 150 of kind ${operation}, seed ${seed}`, async () => {
        const random = new Random(seed);
        let [count, failed] = [0, 0];
        while (count < 150) {
          const made = randomQuery(schema, random, { directives: 0.2, operation });
          const { query, operationName = null, variables = {} } = made;
          let document;
          try {
            document = parse(query);
          } catch {
            continue;
          }
          if (validate(schema, document).length > 0 || operationName === 'Nope' || operationName === 'Other') continue;
          if (operationName === null && query.includes('query Other')) continue;
          count += 1;
          const prepared = new PreparedOperation(schema, document, operationName, 1);
          // Then with other values for the conditions, which reuse the operation.
          for (const values of [
            variables,
            { ...variables, one: true },
            { ...variables, one: false, other: true },
            variables,
          ]) {
            const expected = await byGraphqlJs(query, operationName, values);
            const result = await prepared.execute(contextOf(), values);
            assert.equal(written(result), expected, `${query} ${JSON.stringify(values)}`);
            if (result.errors) failed += 1;
          }
        }
        assert.ok(failed > 50 && failed < 550, `${failed} of 600 failed`);
      });
});
