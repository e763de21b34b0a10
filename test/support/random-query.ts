import {
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  type OperationTypeNode,
} from 'graphql';
import type { Random } from './random.ts';

/** A request, valid or not, like those of clients and attackers. */
export interface RandomQuery {
  query: string;
  operationName?: string | null;
  variables?: Record<string, unknown>;
}

const WRONG_LITERALS = [
  '1',
  '2.5',
  '"text"',
  'true',
  'null',
  'NOPE',
  '[1, 2]',
  '[[1]]',
  '{ a: "x" }',
  '{ z: 1 }',
  '$nowhere',
];
const WRONG_VALUES = [0, 2.5, 1e20, 'text', '', 'NOPE', true, null, [], [null], ['a'], { a: 'x' }, { z: 1 }, undefined];
const LITERALS: Record<string, string[]> = {
  Int: ['0', '1', '-3'],
  String: ['""', '"text"', '"\\u00fc"'],
  Boolean: ['true', 'false'],
  ID: ['"a"', '7'],
  Odd: ['1', '2', '"odd"'],
  Input: ['{ a: 1 }', '{ a: 1, b: [RED] }', '{}'],
};
const VALUES: Record<string, unknown[]> = {
  Int: [0, 1, -3],
  String: ['', 'text', 'ü 😀'],
  Boolean: [true, false],
  ID: ['a', 7],
  Odd: [1, 2, 'odd', null],
  Input: [{ a: 1 }, { a: 1, b: ['RED'] }, { b: 'GREEN' }, {}],
};

/** Settings of the generator. */
export interface RandomQueryOptions {
  /** Fields that are rarely selected. */
  rare?: ReadonlySet<string>;
  /** How often directives are added. */
  directives?: number;
  /** Default: a query. */
  operation?: 'query' | 'mutation';
}

/** Generates an operation that is mostly valid. */
export function randomQuery(
  schema: GraphQLSchema,
  random: Random,
  { rare = new Set(), directives = 0.02, operation = 'query' }: RandomQueryOptions = {},
): RandomQuery {
  const fragments: string[] = [];
  const declared = new Map<string, string>();
  const variables: Record<string, unknown> = {};
  const body = selectionOf(schema.getRootType(operation as OperationTypeNode)!, 3);
  const head = [...declared].map(([name, type]) => `$${name}: ${type}`).join(', ');
  const query = [
    `${operation} Q${head && `(${head})`} ${body}`,
    ...fragments,
    ...(random.chance(0.1) ? ['query Other { online }'] : []),
  ].join(' ');
  return {
    query: random.chance(0.02) ? query.slice(0, -1) : query,
    ...(random.chance(0.3) && { operationName: random.pick(['Q', 'Q', 'Other', 'Nope', null]) }),
    variables,
  };

  function selectionOf(type: GraphQLOutputType, depth: number): string {
    const named = getNamedType(type);
    if (!isCompositeType(named)) return '';
    const all = 'getFields' in named ? Object.values(named.getFields()) : [];
    const fields = all.filter(({ name }) => !rare.has(name) || random.chance(0.05));
    const parts = fields.length === 0 ? ['__typename'] : random.some(fields, 4).map((field) => fieldOf(field, depth));
    if (random.chance(0.15)) parts.push('__typename');
    if (isAbstractType(named)) {
      for (const possible of schema.getPossibleTypes(named))
        if (random.chance(0.7)) parts.push(`... on ${possible.name} ${selectionOf(possible, depth - 1)}`);
    }
    if (random.chance(0.15)) {
      const index = fragments.push('') - 1;
      fragments[index] =
        `fragment F${index} on ${named.name} ${depth > 0 ? selectionOf(named, depth - 2) : '{ __typename }'}`;
      parts.push(`...F${index}${directive()}`);
    }
    return `{ ${parts.join(' ')} }`;
  }

  function fieldOf(
    { name, args, type }: { name: string; args: readonly GraphQLArgument[]; type: GraphQLOutputType },
    depth: number,
  ): string {
    const composite = isCompositeType(getNamedType(type));
    if (composite && depth <= 0) return '__typename';
    // Fields of one name with different arguments cannot merge, so most get an alias.
    const alias =
      args.length > 0 || random.chance(0.1)
        ? `${random.chance(0.02) ? '__proto__' : `${name}${Math.floor(random.next() * 1000)}`}: `
        : '';
    const given = args.filter(() => random.chance(0.5)).map((arg) => `${arg.name}: ${literalOf(arg.type)}`);
    const call = `${alias}${name}${given.length > 0 ? `(${given.join(', ')})` : ''}${directive()}`;
    return `${call} ${composite ? selectionOf(type, depth - 1) : ''}`;
  }

  function literalOf(type: GraphQLInputType): string {
    if (random.chance(0.02)) return random.pick(WRONG_LITERALS);
    if (random.chance(0.3)) return variableOf(type);
    if (isNonNullType(type)) return literalOf(type.ofType);
    if (isListType(type))
      return `[${random
        .some([1, 2, 3], 3)
        .map(() => literalOf(type.ofType))
        .join(', ')}]`;
    const named = getNamedType(type);
    return isEnumType(named) ? random.pick(named.getValues()).name : random.pick(LITERALS[named.name] ?? ['null']);
  }

  function variableOf(type: GraphQLInputType): string {
    const name = `v${declared.size}`;
    declared.set(name, random.chance(0.02) ? 'Int!' : `${String(type)}${random.chance(0.05) ? ' = null' : ''}`);
    if (!random.chance(0.1)) variables[name] = random.chance(0.04) ? random.pick(WRONG_VALUES) : valueOf(type);
    return `$${name}`;
  }

  function valueOf(type: GraphQLInputType): unknown {
    if (isNonNullType(type)) return valueOf(type.ofType);
    if (isListType(type))
      return random.chance(0.1) ? valueOf(type.ofType) : random.some([1, 2], 3).map(() => valueOf(type.ofType));
    const named = getNamedType(type);
    return isEnumType(named) ? random.pick(named.getValues()).name : random.pick(VALUES[named.name] ?? [null]);
  }

  function directive(): string {
    return random.chance(directives) ? ` @${random.pick(['skip', 'include'])}(if: ${condition()})` : '';
  }

  function condition(): string {
    if (random.chance(0.3)) return random.pick(['true', 'false']);
    const name = random.pick(['one', 'other', 'third']);
    if (!declared.has(name)) {
      const type = random.pick(['Boolean!', 'Boolean = true', 'Boolean! = false']);
      declared.set(name, type);
      if (random.chance(0.8) || type === 'Boolean!') variables[name] = random.chance(0.03) ? null : random.chance(0.5);
    }
    return `$${name}`;
  }
}
