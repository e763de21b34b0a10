import {
  defaultFieldResolver,
  type DirectiveNode,
  type DocumentNode,
  getDirectiveValues,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  isObjectType,
  Kind,
} from 'graphql';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { requirePermission } from '../keys/authorization/principal.ts';
import type { GraphQLContext } from './context.ts';
import type { Requirements } from './requirements.ts';

/** A field of the query or mutation type. */
export interface RootField {
  /** Such as `Query.me`. */
  path: string;
  field: GraphQLField<unknown, GraphQLContext>;
}

/** The fields of the query and mutation types. */
export function rootFieldsOf(schema: GraphQLSchema): RootField[] {
  const types = [schema.getQueryType(), schema.getMutationType()].filter((type) => type != null);
  return types.flatMap((type) =>
    Object.values(type.getFields()).map((field) => ({ path: `${type.name}.${field.name}`, field })),
  );
}

/**
 * Makes every field check the permissions in its `@requires`, and in that of each interface which has the field, before
 * it resolves.
 * @throws Error if a root field has no `@requires`: any key could use it
 */
export function enforceRequires(schema: GraphQLSchema, requirements: Requirements): void {
  const guarded = new Set<unknown>();
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType))
    for (const field of Object.values(type.getFields()))
      if (guard(schema, field, directivesFor(type, field.name, requirements))) guarded.add(field);
  const unguarded = rootFieldsOf(schema).filter(({ field }) => !guarded.has(field));
  if (unguarded.length === 0) return;
  const paths = unguarded.map(({ path }) => path).join(', ');
  throw new Error(
    `The schema is invalid: ${paths} must carry @requires(resource:, action:), ` +
      'because every root field requires a permission.',
  );
}

function directivesFor(type: GraphQLObjectType, field: string, requirements: Requirements): DirectiveNode[] {
  return [type, ...type.getInterfaces()].flatMap(({ name }) => requirements.get(`${name}.${field}`) ?? []);
}

/**
 * Refuses parts that declare a root field twice: merging them would silently keep only one of its `@requires`.
 * @throws Error that names the fields
 */
export function refuseRepeatedRootFields(schema: GraphQLSchema, documents: readonly DocumentNode[]): void {
  const rootTypes = new Set([schema.getQueryType()?.name, schema.getMutationType()?.name]);
  const declared = documents
    .flatMap(({ definitions }) => definitions)
    .filter(
      (definition) => definition.kind === Kind.OBJECT_TYPE_DEFINITION || definition.kind === Kind.OBJECT_TYPE_EXTENSION,
    )
    .filter(({ name }) => rootTypes.has(name.value))
    .flatMap(({ name, fields = [] }) => fields.map((field) => `${name.value}.${field.name.value}`));
  const repeated = new Set(declared.filter((path, index) => declared.indexOf(path) !== index));
  if (repeated.size > 0)
    throw new Error(`The schema is invalid: ${[...repeated].join(', ')} must be declared only once.`);
}

function guard(
  schema: GraphQLSchema,
  field: GraphQLField<unknown, GraphQLContext>,
  directives: readonly DirectiveNode[],
): boolean {
  if (directives.length === 0) return false;
  const required = directives.map((directive) => permissionIn(schema, directive));
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (parent, args, context, info) => {
    for (const { resource, action, permission } of required)
      requirePermission(context.principal, resource, action, permission);
    return resolve(parent, args, context, info);
  };
  return true;
}

/** Its names as they are written: resolvers may give the values of an enum another form. */
function permissionIn(schema: GraphQLSchema, node: DirectiveNode) {
  getDirectiveValues(schema.getDirective('requires')!, { directives: [node] });
  const nameIn = (argument: string) => {
    const value = node.arguments?.find(({ name }) => name.value === argument)?.value;
    return value?.kind === Kind.ENUM ? value.value : '';
  };
  const [resource, action] = [nameIn('resource'), nameIn('action') as Action];
  const permission: Permission = `${resource}:${action}`;
  return { resource, action, permission };
}
