import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
} from 'graphql';
import { withFilters } from '../src/graphql/filters.ts';

const PARTS = ['keys', 'changes', 'lists', 'audit', 'consent', 'service'];

/** What may be granted differs from one installation to the next: to the types, it is text. */
const GRANTABLE = 'scalar Resource scalar Role';

/** Only these types have resolvers: all others are what these return. */
const RESOLVED = ['Query', 'Mutation', 'ApiKey', 'AuditActor', 'AuditEntry', 'ConsentRequest', 'Route'];

/** What their fields are resolved from, and by. A resolver may leave to a function what is seldom asked for. */
const COMMON = `import type { GraphQLResolveInfo, GraphQLScalarType } from 'graphql';
import type { ApiKey } from '../keys/key/index.ts';
import type { AuditActor, AuditEntry } from '../keys/audit/index.ts';
import type { ConsentRequest } from '../keys/repository/index.ts';
import type { BudgetedContext, ExplainedRoute as Route } from './context.ts';
export type Maybe<T> = T | null | undefined;
export type Lazy<T> = T | Promise<T> | (() => T | Promise<T>);
export type Resolver<Result, Parent, Args = object> = (parent: Parent, args: Args, context: BudgetedContext,
  info: GraphQLResolveInfo) => Result | Promise<Result>;
export type Node = ApiKey;
export type NodeResolvers = { __resolveType: (node: Node) => 'ApiKey'; };
`;

/** The types of the built-in resolvers, by the schema. */
export function resolverTypes(): string {
  const types = Object.values(schemaOfTypes().getTypeMap()).filter(({ name }) => !name.startsWith('__'));
  const members = [
    ...[...RESOLVED, 'Node'].map((name) => `${name}?: ${name}Resolvers;`),
    ...['DateTime', 'Resource', 'Role'].map((name) => `${name}?: GraphQLScalarType;`),
  ];
  const written = [...types.flatMap(declarationsOf), `export type Resolvers = { ${members.join(' ')} };`];
  return `${GENERATED}${COMMON}${written.map(wrapped).join('\n')}\n`;
}

function declarationsOf(type: GraphQLNamedType): string[] {
  const { name } = type;
  if (isEnumType(type)) {
    const values = type.getValues().map((value) => `'${value.name}'`);
    return [`export type ${name} = ${values.join(' | ')};`];
  }
  if (isInputObjectType(type)) return [`export type ${name} = ${membersOf(Object.values(type.getFields()), '?')};`];
  if (!isObjectType(type)) return [];
  const fields = Object.values(type.getFields());
  if (!RESOLVED.includes(name)) {
    const members = fields.map((field) => `${field.name}${markOf(field.type)}: Lazy<${typed(field.type, 'output')}>;`);
    return [`export type ${name} = { ${members.join(' ')} };`];
  }
  const withArguments = fields.filter(({ args }) => args.length > 0);
  const parent = name === 'Query' || name === 'Mutation' ? 'object' : name;
  const resolvers = fields.map((field) => {
    const args = field.args.length > 0 ? `, ${argumentsName(name, field)}` : '';
    return `${field.name}?: Resolver<${typed(field.type, 'output')}, ${parent}${args}>;`;
  });
  return [
    // One with a default is not left out, and may be null all the same.
    ...withArguments.map((field) => `export type ${argumentsName(name, field)} = ${membersOf(field.args, '')};`),
    `export type ${name}Resolvers = { ${resolvers.join(' ')} };`,
  ];
}

function argumentsName(type: string, { name }: GraphQLField<unknown, unknown>): string {
  return `${type}${name[0]!.toUpperCase()}${name.slice(1)}Args`;
}

/** @param withDefault what marks those that have a default */
function membersOf(values: readonly (GraphQLArgument | GraphQLInputField)[], withDefault: '' | '?'): string {
  const members = values.map(({ name, type, defaultValue }) => {
    const mark = defaultValue === undefined ? markOf(type) : withDefault;
    return `${name}${mark}: ${typed(type, 'input')};`;
  });
  return `{ ${members.join(' ')} }`;
}

function markOf(type: GraphQLType): string {
  return isNonNullType(type) ? '' : '?';
}

const SCALARS: Readonly<Record<string, string>> = {
  Boolean: 'boolean',
  Int: 'number',
  Float: 'number',
  JsonObject: 'Record<string, unknown>',
};

/** A type as it is written. A time is text on its way in, and a number on its way out. */
function typed(type: GraphQLType, way: 'input' | 'output'): string {
  return isNonNullType(type) ? present(type.ofType, way) : `Maybe<${present(type, way)}>`;
}

function present(type: GraphQLType, way: 'input' | 'output'): string {
  if (isListType(type)) return `ReadonlyArray<${typed(type.ofType as GraphQLType, way)}>`;
  const { name } = type as GraphQLNamedType;
  if (!isScalarType(type)) return name;
  return name === 'DateTime' && way === 'output' ? 'number' : (SCALARS[name] ?? 'string');
}

function schemaOfTypes() {
  return buildSchema([...PARTS.map((part) => withFilters(textOf(`graphql/${part}.graphql`))), GRANTABLE].join('\n'));
}

const GENERATED = '// Generated by `npm run docs` from the schema.\n';

/** In lines of at most 120 columns. */
function wrapped(declaration: string): string {
  return declaration.replaceAll(/\s+/g, ' ').replaceAll(/(?=.{119})(.{1,117}) /g, '$1\n  ');
}

function textOf(file: string): string {
  return readFileSync(new URL(`../src/${file}`, import.meta.url), 'utf8');
}
