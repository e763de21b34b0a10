import {
  type ASTNode,
  defaultFieldResolver,
  type DirectiveNode,
  type DocumentNode,
  type ParseOptions,
  type FieldDefinitionNode,
  getDirectiveValues,
  getNamedType,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  GraphQLScalarType,
  type GraphQLSchema,
  isObjectType,
  Kind,
  parse,
  print,
  visit,
} from 'graphql';
import type { AuditValues } from '../keys/audit/index.ts';
import { requirePermission } from '../keys/authorization/index.ts';
import { assertValid, type Issue, missingDay, readDate, clampTime, withoutUndefined } from '../keys/basics/index.ts';
import type { Issued } from '../keys/changes/index.ts';
import { type KeyChange, REMOVABLE_FIELDS } from '../keys/key/index.ts';
import {
  type Action,
  type Catalog,
  groupPermissions,
  type Permission,
  type ResourceActions,
  type Role,
  splitPermission,
} from '../keys/permissions/index.ts';
import type { GraphQLContext } from './context.ts';
import type { AuditChange, IssuedChange, PageInfo, PermissionInput, UpdateApiKeyInput } from './schema-types.ts';

export function connectionOf<Node>(
  nodes: readonly Node[],
  formatCursor: (node: Node) => string,
  hasNextPage: boolean,
): { edges: { node: Node; cursor: string }[]; pageInfo: PageInfo } {
  const edges = nodes.map((node) => ({ node, cursor: formatCursor(node) }));
  const pageInfo = {
    hasNextPage,
    hasPreviousPage: false,
    startCursor: edges.at(0)?.cursor ?? null,
    endCursor: edges.at(-1)?.cursor ?? null,
  };
  return { edges, pageInfo };
}

/** The cursor of an item of a list, by its number. */
export function cursorOf(list: 'log' | 'route', { number }: { readonly number: number }): string {
  return Buffer.from(`${list}:${number}`).toString('base64url');
}

/** The number in such a cursor. @throws GraphQLError INPUT_INVALID */
export function readCursor(list: 'log' | 'route', cursor: string): number {
  const [, of, number] = /^(\w+):(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (of !== list) throw badInput('"after" is not a cursor of this list. Use an endCursor that it returned.');
  return Number(number);
}

/** Permissions by resource. Leaves out those that are not in this schema: a store may be shared by several hosts. */
export function knownTo(catalog: Catalog, permissions: Iterable<Permission>): ResourceActions[] {
  return groupPermissions([...permissions].filter((permission) => catalog.knows(permission)));
}

export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'INPUT_INVALID' } });
}

export function auditChanges(before: AuditValues | null, after: AuditValues | null): AuditChange[] {
  return Object.keys(after ?? before ?? {}).map((field) => ({
    field,
    before: jsonOf(before?.[field]),
    after: jsonOf(after?.[field]),
  }));
}

/** What a key did to another one, as it is published. */
export function issuedAs({ name, apiKey, what, at }: Issued): IssuedChange {
  return { name, keyId: apiKey?.id, what, at, disabled: apiKey?.disabledAt != null };
}

/** Roles and permissions in the form in which the rules take them. */
export function grantsIn({ roles, permissions }: GrantsInput): { roles: readonly Role[]; permissions: Permission[] } {
  const grants = (permissions ?? []).flatMap(({ resource, actions }) =>
    actions.map((action): Permission => `${resource}:${action}`),
  );
  return { roles: roles ?? [], permissions: grants };
}

/** A change of a key as the rules take it. @throws ValidationError INPUT_INVALID */
export function readKeyChange(input: Omit<UpdateApiKeyInput, 'id'>): KeyChange {
  refuseNulls(input, REMOVABLE_FIELDS);
  const { roles, permissions, ...change } = input;
  const granted = grantsIn({ roles, permissions });
  const grants = { roles: roles && granted.roles, permissions: permissions && granted.permissions };
  return withoutUndefined({ ...change, ...grants });
}

interface GrantsInput {
  roles?: readonly Role[] | null | undefined;
  permissions?: readonly PermissionInput[] | null | undefined;
}

function jsonOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/**
 * Refuses null for the fields of an input, but for those where it means something: whoever writes it may expect that it
 * removes a value, and would not see that nothing happened.
 * @throws ValidationError INPUT_INVALID
 */
export function refuseNulls<Input extends object, Meaningful extends keyof Input & string = never>(
  input: Input,
  meaningful: readonly Meaningful[] = [],
): asserts input is Input & { [Field in Exclude<keyof Input, Meaningful>]: Exclude<Input[Field], null> } {
  const allowed: readonly string[] = meaningful;
  const nulls = Object.entries(input).filter(([field, value]) => value === null && !allowed.includes(field));
  assertValid(
    nulls.map(([field]): Issue => {
      const message = `"${field}" is null, which means nothing here. Leave it out, or give it a value.`;
      return { code: 'INPUT_INVALID', message, field };
    }),
  );
}

/**
 * The scalar of times: RFC 3339, section 5.6, and nothing else. Its values stay text on their way in, for the rules
 * that read them; on its way out, a time is milliseconds since 1970 or a `Date`.
 */
export const DateTime = new GraphQLScalarType({
  name: 'DateTime',
  description: 'An RFC 3339 date and time. Answers have it in UTC.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6',
  parseValue: (value) => {
    // The command line also takes a space between date and time, and around them.
    if (typeof value !== 'string' || /\s/.test(value) || readDate(value) === undefined)
      throw badInput(
        [
          'A DateTime must be an RFC 3339 date and time, such as "2030-12-31T23:59:59Z".',
          typeof value === 'string' ? missingDay(value) : undefined,
        ]
          .filter(Boolean)
          .join(' '),
      );
    return value;
  },
  serialize: (value) => {
    const text = new Date(value as number).toISOString();
    // RFC 3339 has no years beyond 9999.
    if (!/^\d/.test(text)) throw new RangeError('A DateTime is in no year from 0 to 9999.');
    return text;
  },
});

/**
 * Makes every time of the built-in part one that `DateTime` can tell: they come from rows, which may be damaged. What a
 * host's field answers is the host's, and an error if it is none.
 * @param own the built-in part
 */
export function clampBuiltInDates(schema: GraphQLSchema, own: readonly DocumentNode[]): void {
  for (const definition of own.flatMap(({ definitions }) => definitions)) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION) continue;
    const fields = (schema.getType(definition.name.value) as GraphQLObjectType).getFields();
    for (const { name } of definition.fields ?? []) {
      const field = fields[name.value]!;
      if (getNamedType(field.type).name === DateTime.name)
        mapAnswer(field, (value) => (typeof value === 'number' ? clampTime(value) : value));
    }
  }
}

/** Has a field answer what becomes of what it is resolved to. */
export function mapAnswer(field: GraphQLField<unknown, never>, made: (value: unknown) => unknown): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(made) : made(value);
  };
}

export interface RootField {
  /** Such as `Query.me`. */
  path: string;
  field: GraphQLField<unknown, GraphQLContext>;
}

export function rootFieldsOf(schema: GraphQLSchema): RootField[] {
  const types = [schema.getQueryType(), schema.getMutationType()].filter((type) => type != null);
  return types.flatMap((type) =>
    Object.values(type.getFields()).map((field) => ({ path: `${type.name}.${field.name}`, field })),
  );
}

/** What each field requires, by its path such as `Query.me`. */
export type RequiredPermissionsByField = ReadonlyMap<string, readonly Permission[]>;

/**
 * Makes every field check what it requires, and what each interface requires which has the field, before it resolves.
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
    `The schema is invalid: ${paths} must carry @requires(resource:, action:), or be in the option "requires", ` +
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

/** Its names as they are written: resolvers may give the values of an enum another form. */
function permissionIn(schema: GraphQLSchema, node: DirectiveNode): Permission {
  getDirectiveValues(schema.getDirective('requires')!, { directives: [node] });
  const nameIn = (argument: string) => {
    const value = node.arguments?.find(({ name }) => name.value === argument)?.value;
    return value?.kind === Kind.ENUM ? value.value : '';
  };
  return `${nameIn('resource')}:${nameIn('action') as Action}`;
}

/** The `@requires` of each field that has one, by its path such as `Query.me`. */
type Requirements = ReadonlyMap<string, DirectiveNode>;

/** The directives of this package, which no other part of a schema may declare anew. */
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
