import {
  type DirectiveNode,
  type DocumentNode,
  GraphQLEnumType,
  type GraphQLFieldConfigMap,
  type GraphQLInputFieldConfigMap,
  GraphQLInputObjectType,
  GraphQLInterfaceType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLUnionType,
  isEnumType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  isUnionType,
  parse,
  printSchema,
  specifiedScalarTypes,
} from 'graphql';
import { formatList, suggestion } from '../keys/basics/index.ts';
import type { Permission } from '../keys/permissions/index.ts';
import { rootFieldsOf } from './requirements.ts';

/** A schema that a program made with any library, using graphql's own classes, from any copy of version 16. */
export interface OwnSchema {
  getTypeMap(): Readonly<Record<string, unknown>>;
  getQueryType(): unknown;
  getMutationType(): unknown;
  getSubscriptionType(): unknown;
}

/** The permissions, all of them needed, for each root field of a schema, and for other fields that require any. */
export type RequiredByField = Readonly<Record<string, Permission | readonly Permission[]>>;

/** Resolvers by type and field, as graphql-tools takes them. */
export type Resolvers = Record<string, unknown>;

/** A schema as parts that can be merged. */
interface SchemaParts {
  documents: DocumentNode[];
  resolvers: Resolvers;
  requires: ReadonlyMap<string, readonly Permission[]>;
}

/** Splits a schema into parts. @throws Error that names a field of `requires` that the schema does not have */
export function partsOfSchema(schema: OwnSchema, requires: RequiredByField): SchemaParts {
  const { copy, nameOf } = copyOf(schema);
  const paths = new Map<string, readonly Permission[]>();
  for (const [path, required] of Object.entries(requires)) {
    const [type = '', field = '', ...rest] = path.split('.');
    const found = copy.getType(nameOf(type));
    const fields = isObjectType(found) || isInterfaceType(found) ? found.getFields() : {};
    if (rest.length > 0 || !Object.hasOwn(fields, field)) throw unknownField(path, copy);
    paths.set(`${nameOf(type)}.${field}`, [required].flat());
  }
  const unguarded = rootFieldsOf(copy).flatMap(({ path }) => (paths.has(path) ? [] : path));
  if (unguarded.length > 0)
    throw new Error(
      `The schema is invalid: ${formatList(unguarded)} must be in the option "requires", ` +
        'because every root field requires a permission.',
    );
  refuseIgnoredRequires(schema, (type, field) => paths.has(`${nameOf(type)}.${field}`));
  return { documents: [parse(printSchema(copy))], resolvers: resolversOf(copy), requires: paths };
}

/** An element of a schema with the places in which libraries keep its directives. */
interface WithDirectives {
  name: string;
  astNode?: { directives?: readonly DirectiveNode[] } | null;
  extensionASTNodes?: readonly { directives?: readonly DirectiveNode[] }[];
  extensions?: { directives?: unknown };
}

/** A type as any copy of graphql makes it. */
interface TypeWithFields extends WithDirectives {
  getFields?(): Readonly<Record<string, WithDirectives & { args?: readonly WithDirectives[] }>>;
}

/**
 * Refuses a `@requires` that would have no effect.
 * @param isRequired whether the option "requires" has a field
 * @throws Error that names the places
 */
function refuseIgnoredRequires(schema: OwnSchema, isRequired: (type: string, field: string) => boolean): void {
  const ignored = (Object.values(schema.getTypeMap()) as TypeWithFields[]).flatMap((type) => [
    ...(hasRequires(type) ? [type.name] : []),
    ...Object.values(type.getFields?.() ?? {}).flatMap((field) => [
      ...(hasRequires(field) && !isRequired(type.name, field.name) ? [`${type.name}.${field.name}`] : []),
      ...(field.args ?? []).filter(hasRequires).map((arg) => `${type.name}.${field.name}.${arg.name}`),
    ]),
  ]);
  if (ignored.length === 0) return;
  throw new Error(
    `The schema is invalid: ${formatList(ignored)} has @requires, which has no effect in the option "schema". ` +
      'Name the fields that require a permission in the option "requires" instead.',
  );
}

function hasRequires({ astNode, extensionASTNodes = [], extensions }: WithDirectives): boolean {
  const written = [astNode, ...extensionASTNodes].flatMap((node) => node?.directives ?? []);
  const added = extensions?.directives ?? [];
  return (
    // Apollo Federation has a directive of the same name, with fields.
    written.some(
      (node) => node.name.value === 'requires' && !node.arguments?.some(({ name }) => name.value === 'fields'),
    ) || (Array.isArray(added) ? added.some(({ name }) => name === 'requires') : Object.hasOwn(added, 'requires'))
  );
}

function unknownField(path: string, schema: GraphQLSchema): Error {
  const types = Object.values(schema.getTypeMap()).filter((type) => isObjectType(type) && !type.name.startsWith('__'));
  const known = types.flatMap((type) =>
    Object.keys((type as GraphQLObjectType).getFields()).map((field) => `${type.name}.${field}`),
  );
  return new Error(
    `"requires" names "${path}", which the schema does not have. ${suggestion(path, known)}` +
      `Its fields are ${formatList(known)}.`,
  );
}

/**
 * The schema rebuilt with this copy of graphql, whose classes accept only their own kind, with root types renamed to
 * ours.
 * @throws Error for a kind of type that version 16 does not have
 */
function copyOf(schema: OwnSchema): { copy: GraphQLSchema; nameOf: (name: string) => string } {
  const rootNames = new Map<unknown, string>([
    [schema.getQueryType(), 'Query'],
    [schema.getMutationType(), 'Mutation'],
    [schema.getSubscriptionType(), 'Subscription'],
  ]);
  const types = new Map<string, GraphQLNamedType>(specifiedScalarTypes.map((type) => [type.name, type]));
  const renamed = new Map<string, string>();
  const nameOf = (name: string) => renamed.get(name) ?? name;
  const find: Find = (type) => {
    const { name, ofType } = type as { name: string; ofType: unknown };
    if (kindOf(type) === 'GraphQLNonNull') return new GraphQLNonNull(find(ofType));
    if (kindOf(type) === 'GraphQLList') return new GraphQLList(find(ofType));
    return types.get(nameOf(name))!;
  };
  for (const [name, type] of Object.entries(schema.getTypeMap())) {
    if (name.startsWith('__') || types.has(name)) continue;
    renamed.set(name, rootNames.get(type) ?? name);
    types.set(nameOf(name), copyOfType(type, nameOf(name), find));
  }
  const root = (name: string) => types.get(name) as GraphQLObjectType | undefined;
  const copy = new GraphQLSchema({
    query: root('Query'),
    mutation: root('Mutation'),
    subscription: root('Subscription'),
    types: [...types.values()],
  });
  return { copy, nameOf };
}

/** Classes of another copy fail `instanceof`, but have the same tags. */
function kindOf(type: unknown): string {
  return Object.prototype.toString.call(type).slice('[object '.length, -1);
}

// oxlint-disable-next-line typescript/no-explicit-any -- of which kind it is, the other schema has checked
type Find = (type: unknown) => any;

function copyOfType(type: unknown, name: string, find: Find): GraphQLNamedType {
  // Rebuilt from its configuration, in which all other types still belong to the other copy.
  const made = (type as { toConfig: () => never }).toConfig();
  const common = { ...(made as object), name, astNode: undefined, extensionASTNodes: [] };
  switch (kindOf(type)) {
    case 'GraphQLObjectType':
    case 'GraphQLInterfaceType': {
      const { interfaces, fields } = made as { interfaces: unknown[]; fields: GraphQLFieldConfigMap<unknown, unknown> };
      const config = {
        ...common,
        interfaces: () => interfaces.map((each) => find(each) as GraphQLInterfaceType),
        fields: () => withTypes(fields, find),
      };
      return kindOf(type) === 'GraphQLObjectType' ? new GraphQLObjectType(config) : new GraphQLInterfaceType(config);
    }
    case 'GraphQLInputObjectType': {
      const { fields } = made as { fields: GraphQLInputFieldConfigMap };
      return new GraphQLInputObjectType({ ...common, fields: () => withTypes(fields, find) });
    }
    case 'GraphQLUnionType': {
      const { types } = made as { types: unknown[] };
      return new GraphQLUnionType({ ...common, types: () => types.map((each) => find(each) as GraphQLObjectType) });
    }
    case 'GraphQLEnumType':
      return new GraphQLEnumType(common as never);
    case 'GraphQLScalarType':
      return new GraphQLScalarType(common);
    default:
      throw new Error(`The type ${name} of the schema is of a kind that graphql 16 does not have.`);
  }
}

/** Fields or arguments, by name. */
type Typed = Record<string, { type: unknown; args?: Typed }>;

function withTypes<Fields extends object>(fields: Fields, find: Find): Fields {
  const entries = Object.entries(fields as Typed).map(([name, { args, ...field }]) => [
    name,
    { ...field, astNode: undefined, type: find(field.type), ...(args && { args: withTypes(args, find) }) },
  ]);
  return Object.fromEntries(entries) as Fields;
}

/** The behaviour of a schema beyond its SDL, as graphql-tools takes it. */
function resolversOf(schema: GraphQLSchema): Resolvers {
  const resolvers: Resolvers = {};
  const specified: ReadonlySet<unknown> = new Set(specifiedScalarTypes);
  for (const [name, type] of Object.entries(schema.getTypeMap())) {
    if (name.startsWith('__') || specified.has(type)) continue;
    if (isObjectType(type)) {
      const fields = Object.entries(type.getFields()).map(([field, { resolve, extensions }]) => [
        field,
        { ...(resolve && { resolve }), extensions },
      ]);
      // Other parts add fields to Query and Mutation, so the program cannot define the types themselves.
      const own = !(type === schema.getQueryType() || type === schema.getMutationType());
      resolvers[name] = {
        ...Object.fromEntries(fields),
        ...(own && { ...(type.isTypeOf && { __isTypeOf: type.isTypeOf }), __extensions: type.extensions }),
      };
    } else if (isInterfaceType(type) || isUnionType(type)) {
      if (type.resolveType) resolvers[name] = { __resolveType: type.resolveType };
    } else if (isEnumType(type)) {
      resolvers[name] = Object.fromEntries(type.getValues().map(({ name: value, value: meant }) => [value, meant]));
    } else if (isScalarType(type)) resolvers[name] = type;
  }
  return resolvers;
}
