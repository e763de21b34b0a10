import {
  defaultFieldResolver,
  type DocumentNode,
  getDirectiveValues,
  type GraphQLField,
  type GraphQLSchema,
  Kind,
  parse,
} from 'graphql';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
import { requirePermission } from '../keys/authorization/principal.ts';
import type { GraphQLContext } from './context.ts';

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
 * Makes every root field check the permission in its `@requires` before it resolves.
 * @throws Error if a root field has no `@requires`: any key could use it
 */
export function enforceRequires(schema: GraphQLSchema): void {
  const unguarded = rootFieldsOf(schema).filter(({ field }) => !guard(schema, field));
  if (unguarded.length === 0) return;
  const paths = unguarded.map(({ path }) => path).join(', ');
  throw new Error(
    `The schema is invalid: ${paths} must carry @requires(resource:, action:), ` +
      'because every root field requires a permission.',
  );
}

/**
 * Refuses parts that declare a root field twice: merging them would silently keep only one of its `@requires`.
 * @throws Error that names the fields
 */
export function refuseRepeatedRootFields(schema: GraphQLSchema, parts: readonly (string | DocumentNode)[]): void {
  const rootTypes = new Set([schema.getQueryType()?.name, schema.getMutationType()?.name]);
  const documents = parts.filter((part) => part !== '').map((part) => (typeof part === 'string' ? parse(part) : part));
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

/** Discards a speculative run; never reaches a client. */
const SPECULATION_FAILED = new Error('the speculative run was refused');

function guard(schema: GraphQLSchema, field: RootField['field']): boolean {
  const directive = schema.getDirective('requires');
  const required = directive && field.astNode && getDirectiveValues(directive, field.astNode);
  if (!required) return false;
  const { resource, action } = required as { resource: string; action: Action };
  const permission: Permission = `${resource}:${action}`;
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (parent, args, context, info) => {
    if (context.isSpeculative && !context.principal.access.has(resource, action)) throw SPECULATION_FAILED;
    requirePermission(context.principal, resource, action, permission);
    return resolve(parent, args, context, info);
  };
  return true;
}
