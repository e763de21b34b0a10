import {
  type ASTNode,
  defaultFieldResolver,
  type DirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  getDirectiveValues,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  isObjectType,
  Kind,
  parse,
  print,
  visit,
} from 'graphql';
import { requirePermission } from '../keys/authorization/principal.ts';
import type { Action, Permission } from '../keys/permissions/catalog.ts';
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

/** The `@requires` of each field that has one, by its path such as `Query.me`. */
export type Requirements = ReadonlyMap<string, DirectiveNode>;

/** The directives of this package, which no other part of a schema may declare anew. */
const OWN_DIRECTIVES: ReadonlySet<string> = new Set(['requires', 'cost', 'listSize']);
const FIELD_OWNERS: ReadonlySet<string> = new Set<string>([
  Kind.OBJECT_TYPE_DEFINITION,
  Kind.OBJECT_TYPE_EXTENSION,
  Kind.INTERFACE_TYPE_DEFINITION,
  Kind.INTERFACE_TYPE_EXTENSION,
]);

/** The parts of a schema, parsed; empty ones are left out. */
export function documentsOf(parts: readonly (string | DocumentNode)[]): DocumentNode[] {
  return parts.filter((part) => part !== '').map((part) => (typeof part === 'string' ? parse(part) : part));
}

/**
 * Reads every `@requires` in the parts of a schema. The parts are read, not the schema that is made of them: merging
 * them and attaching resolvers may lose directives.
 * @throws Error that names the place where a `@requires` could not be enforced
 */
export function readRequirements(documents: readonly DocumentNode[]): Requirements {
  refuseRedeclaredDirectives(documents);
  const found = new Map<string, DirectiveNode>();
  const declared = new Map<string, string>();
  const contradicted = new Set<string>();
  for (const document of documents) {
    visit(document, {
      Directive: (directive, _key, _parent, _path, ancestors) => {
        if (directive.name.value === 'requires') refuseElsewhere(ancestors.filter(isNode));
      },
      FieldDefinition: (field, _key, _parent, _path, ancestors) => {
        const path = `${nameOf(ancestors.findLast(isNode)!)}.${field.name.value}`;
        const text = requiresOf(field).map(print).join(' ');
        if ((declared.get(path) ?? text) !== text) contradicted.add(path);
        declared.set(path, text);
        for (const directive of requiresOf(field)) found.set(path, directive);
      },
    });
  }
  if (contradicted.size === 0) return found;
  throw new Error(`The schema is invalid: ${[...contradicted].join(', ')} must be declared only once.`);
}

function requiresOf({ directives = [] }: FieldDefinitionNode): DirectiveNode[] {
  return directives.filter(({ name }) => name.value === 'requires');
}

function refuseRedeclaredDirectives(documents: readonly DocumentNode[]): void {
  const names = documents
    .flatMap(({ definitions }) => definitions)
    .flatMap((definition) => (definition.kind === Kind.DIRECTIVE_DEFINITION ? definition.name.value : []))
    .filter((name) => OWN_DIRECTIVES.has(name));
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw new Error(`The schema is invalid: @${repeated} must not be declared again.`);
}

/** Only the fields of object types and interfaces are resolved. */
function refuseElsewhere(ancestors: readonly ASTNode[]): void {
  const [place, owner] = [ancestors.at(-1), ancestors.at(-2)];
  if (place?.kind === Kind.FIELD_DEFINITION && owner && FIELD_OWNERS.has(owner.kind)) return;
  const path = ancestors.map(nameOf).filter(Boolean).join('.') || 'the schema';
  throw new Error(`The schema is invalid: @requires on ${path} cannot be enforced; it belongs on a field.`);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'kind' in value;
}

function nameOf(node: ASTNode): string {
  return 'name' in node && node.name && 'value' in node.name ? node.name.value : '';
}
