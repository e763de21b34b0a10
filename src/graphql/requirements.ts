import {
  type ASTNode,
  defaultFieldResolver,
  type DirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  getDirectiveValues,
  type GraphQLField,
  type GraphQLSchema,
  isObjectType,
  Kind,
  parse,
  type ParseOptions,
  print,
  visit,
} from 'graphql';
import { requirePermission } from '../keys/authorization/index.ts';
import { type Action, type Permission, splitPermission } from '../keys/permissions/index.ts';
import type { GraphQLContext } from './context.ts';

export interface RootField {
  /** The path, such as `Query.me`. */
  path: string;
  field: GraphQLField<unknown, GraphQLContext>;
}

export function rootFieldsOf(schema: GraphQLSchema): RootField[] {
  const types = [schema.getQueryType(), schema.getMutationType()].filter((type) => type != null);
  return types.flatMap((type) =>
    Object.values(type.getFields()).map((field) => ({ path: `${type.name}.${field.name}`, field })),
  );
}

/** Required permissions of fields, by path such as `Query.me`. */
export type RequiredPermissionsByField = ReadonlyMap<string, readonly Permission[]>;

/**
 * Makes every field check its own required permissions, and those of its interfaces' fields, before it resolves.
 * @param required by fields without a `@requires`
 * @throws Error if a root field requires nothing: any key could use it
 */
export function enforceRequires(
  schema: GraphQLSchema,
  requirements: Requirements,
  required: readonly RequiredPermissionsByField[] = [],
): void {
  const requiredBy = (path: string): Permission[] => {
    const directive = requirements.get(path);
    return [
      ...(directive ? [permissionIn(schema, directive)] : []),
      ...required.flatMap((permissions) => permissions.get(path) ?? []),
    ];
  };
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType))
    for (const field of Object.values(type.getFields())) {
      const permissions = [type, ...type.getInterfaces()].flatMap(({ name }) => requiredBy(`${name}.${field.name}`));
      if (permissions.length > 0) guard(field, permissions);
    }
  const unguarded = rootFieldsOf(schema).filter(({ path }) => requiredBy(path).length === 0);
  if (unguarded.length === 0) return;
  const paths = unguarded.map(({ path }) => path).join(', ');
  throw new Error(
    `The schema is invalid: ${paths} must carry @requires(resource:, action:), ` +
      'because every root field requires a permission.',
  );
}

function guard(field: GraphQLField<unknown, GraphQLContext>, permissions: readonly Permission[]): void {
  const required = permissions.map((permission) => [...splitPermission(permission), permission] as const);
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (parent, args, context, info) => {
    for (const [resource, action, permission] of required)
      requirePermission(context.principal, resource, action, permission);
    return resolve(parent, args, context, info);
  };
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

/** Reads the names as written, since resolvers can give enum values another form. */
function permissionIn(schema: GraphQLSchema, node: DirectiveNode): Permission {
  getDirectiveValues(schema.getDirective('requires')!, { directives: [node] });
  const nameIn = (argument: string) => {
    const value = node.arguments?.find(({ name }) => name.value === argument)?.value;
    return value?.kind === Kind.ENUM ? value.value : '';
  };
  return `${nameIn('resource')}:${nameIn('action') as Action}`;
}

/** The `@requires` of each field that has one, by path such as `Query.me`. */
type Requirements = ReadonlyMap<string, DirectiveNode>;

/** The directives of this package, which no other part of a schema can declare again. */
const OWN_DIRECTIVES: ReadonlySet<string> = new Set(['requires', 'cost', 'listSize']);
const FIELD_OWNERS: ReadonlySet<string> = new Set<string>([
  Kind.OBJECT_TYPE_DEFINITION,
  Kind.OBJECT_TYPE_EXTENSION,
  Kind.INTERFACE_TYPE_DEFINITION,
  Kind.INTERFACE_TYPE_EXTENSION,
]);

/** The parts of a schema, parsed; empty ones are left out. */
export function documentsOf(parts: readonly (string | DocumentNode)[], options: ParseOptions = {}): DocumentNode[] {
  return parts.filter((part) => part !== '').map((part) => (typeof part === 'string' ? parse(part, options) : part));
}

/**
 * Reads every `@requires` in the parts of a schema. Reads the parts, not the merged schema: merging and attaching
 * resolvers can lose directives.
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
