import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  Kind,
  parse,
} from 'graphql';
import { withFilters } from '../src/graphql/filters.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Grants differ between installations, so they are text in the types. */
const GRANTABLE = 'scalar Resource scalar Role';

/** Types of the core with resolvers. All others are return types of these. */
const RESOLVED = ['Query', 'Mutation', 'ApiKey', 'AuditActor', 'AuditEntry'];

/** A resolver can return a function for values that are rarely requested. */
const COMMON = `export type Maybe<T> = T | null | undefined;
export type Lazy<T> = T | Promise<T> | (() => T | Promise<T>);
export type Resolver<Result, Parent, Args = object> = (parent: Parent, args: Args, context: BudgetedContext,
  info: GraphQLResolveInfo) => Result | Promise<Result>;
`;

/** The types of resolvers, by file: those of the core, and of each feature with a schema. */
export function resolverTypes(): Record<string, string> {
  const features = globSync('src/features/*/schema.graphql', { cwd: ROOT }).toSorted();
  const texts = features.map((path) => readFileSync(`${ROOT}${path}`, 'utf8'));
  const whole = schemaOfTypes(texts);
  return {
    'src/graphql/schema-types.ts': typesOfCore(),
    ...Object.fromEntries(
      features.map((path, index) => [
        path.replace('.graphql', '-types.ts'),
        typesOfFeature(whole, texts[index]!, `${ROOT}${dirname(path)}/schema-parents.ts`),
      ]),
    ),
  };
}

function typesOfCore(): string {
  const types = Object.values(schemaOfTypes().getTypeMap()).filter(({ name }) => !name.startsWith('__'));
  const members = [
    ...[...RESOLVED, 'Node'].map((name) => `${name}?: ${name}Resolvers;`),
    ...['DateTime', 'Resource', 'Role'].map((name) => `${name}?: GraphQLScalarType;`),
  ];
  const written = [
    ...types.flatMap((type) => declarationsOf(type, RESOLVED)),
    `export type Resolvers = { ${members.join(' ')} };`,
  ];
  return `${GENERATED}import type { GraphQLResolveInfo, GraphQLScalarType } from 'graphql';
import type { ApiKey } from '../keys/key/index.ts';
import type { AuditActor, AuditEntry } from '../keys/audit/index.ts';
import type { BudgetedContext } from './context.ts';
${COMMON}export type Node = ApiKey;
export type NodeResolvers = { __resolveType: (node: Node) => 'ApiKey'; };
${written.map(wrapped).join('\n')}
`;
}

/**
 * The types of a feature's resolvers, with all types that they name. Types with resolvers are those that its schema
 * extends, and those that a file beside it exports.
 */
function typesOfFeature(whole: GraphQLSchema, text: string, parents: string): string {
  const own = existsSync(parents) ? readFileSync(parents, 'utf8') : '';
  const resolved = Array.from(own.matchAll(/\b(\w+)(?= [,}])/g), ([name]) => name);
  const extended = parse(text).definitions.flatMap((definition) =>
    definition.kind === Kind.OBJECT_TYPE_EXTENSION
      ? { name: definition.name.value, fields: (definition.fields ?? []).map(({ name }) => name.value) }
      : [],
  );
  const written = extended.flatMap(({ name, fields }) =>
    declarationsOf(whole.getType(name)!, [name], (field) => fields.includes(field)),
  );
  const names = new Set<string>();
  for (let more = [written.join(' ')]; more.length > 0;) {
    const found = more.join(' ').match(/\b[A-Z]\w+/g) ?? [];
    const fresh = found.filter((name) => !names.has(name) && whole.getType(name) && name !== 'ApiKey');
    for (const name of fresh) names.add(name);
    more = [...new Set(fresh)].flatMap((name) => declarationsOf(whole.getType(name)!, resolved));
    written.push(...more);
  }
  const members = [...extended.map(({ name }) => name), ...resolved].map((name) => `${name}?: ${name}Resolvers;`);
  const body = [...new Set(written), `export type Resolvers = { ${members.join(' ')} };`].map(wrapped).join('\n');
  return `${GENERATED}import type { GraphQLResolveInfo } from 'graphql';
import type { BudgetedContext } from '../../graphql/index.ts';
${/\bApiKey\b/.test(body) ? "import type { ApiKey } from '../../keys/key/index.ts';\n" : ''}${
    resolved.length > 0 ? `import type { ${resolved.join(', ')} } from './schema-parents.ts';\n` : ''
  }${COMMON}${body}
`;
}

/** @param has the fields of a type with resolvers; default: all */
function declarationsOf(
  type: GraphQLNamedType,
  resolved: readonly string[],
  has: (field: string) => boolean = () => true,
): string[] {
  const { name } = type;
  if (isEnumType(type)) {
    const values = type.getValues().map((value) => `'${value.name}'`);
    return [`export type ${name} = ${values.join(' | ')};`];
  }
  if (isInputObjectType(type)) return [`export type ${name} = ${membersOf(Object.values(type.getFields()), '?')};`];
  if (!isObjectType(type)) return [];
  const fields = Object.values(type.getFields()).filter((field) => has(field.name));
  if (!resolved.includes(name)) {
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
    // An argument with a default is never missing, but can be null.
    ...withArguments.map((field) => `export type ${argumentsName(name, field)} = ${membersOf(field.args, '')};`),
    `export type ${name}Resolvers = { ${resolvers.join(' ')} };`,
  ];
}

function argumentsName(type: string, { name }: GraphQLField<unknown, unknown>): string {
  return `${type}${name[0]!.toUpperCase()}${name.slice(1)}Args`;
}

/** @param withDefault the mark of members with a default */
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

/** A type in TypeScript. A time is text as input, and a number as output. */
function typed(type: GraphQLType, way: 'input' | 'output'): string {
  return isNonNullType(type) ? present(type.ofType, way) : `Maybe<${present(type, way)}>`;
}

function present(type: GraphQLType, way: 'input' | 'output'): string {
  if (isListType(type)) return `ReadonlyArray<${typed(type.ofType as GraphQLType, way)}>`;
  const { name } = type as GraphQLNamedType;
  if (!isScalarType(type)) return name;
  return name === 'DateTime' && way === 'output' ? 'number' : (SCALARS[name] ?? 'string');
}

function schemaOfTypes(others: readonly string[] = []): GraphQLSchema {
  const parts = globSync('src/graphql/*.graphql', { cwd: ROOT })
    .toSorted()
    .map((path) => readFileSync(`${ROOT}${path}`, 'utf8'));
  return buildSchema([...[...parts, ...others].map(withFilters), GRANTABLE].join('\n'));
}

const GENERATED = '// Generated by `npm run docs` from the schema.\n';

/** Wraps lines at 120 columns. */
function wrapped(declaration: string): string {
  return declaration.replaceAll(/\s+/g, ' ').replaceAll(/(?=.{119})(.{1,117}) /g, '$1\n  ');
}
