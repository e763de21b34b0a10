import { type DefinitionNode, type DocumentNode, Kind, specifiedDirectives, specifiedScalarTypes } from 'graphql';
import type { Permission, Vocabulary } from '../keys/permissions/index.ts';
import { type OwnSchema, partsOfSchema, type RequiredByField, type Resolvers } from './own-schema.ts';
import { documentsOf } from './requirements.ts';

/** A parsed part of a schema, from any version of graphql. */
export interface ParsedTypeDefs {
  readonly kind: string;
  readonly definitions: readonly object[];
}

/**
 * A host's own part of the schema, returned from the oclif hook `svc-api:schema`. Each of its root fields must carry
 * `@requires(resource:, action:)`. It can add to the built-in part, but not change it.
 */
export interface SchemaExtension extends Vocabulary {
  /** SDL, such as `extend type Query { disks: [Disk!]! @requires(resource: DISK_POOL, action: READ_ANY) }`. */
  typeDefs?: string | ParsedTypeDefs | readonly (string | ParsedTypeDefs)[];
  /** The resolvers, or a function that loads them: only `serve` calls it. */
  resolvers?: Resolvers | (() => Resolvers | Promise<Resolvers>);
  /** The owner of the part, for errors. For a hook, svc-api sets the name of its plugin. */
  name?: string;
}

/** A schema made by a program with a library of its own, and the permissions that its fields require. */
export interface RequiringSchema {
  schema: OwnSchema;
  requires: RequiredByField;
}

/** A host's part of the schema, read. */
export interface HostPart {
  /** The owner in error messages. */
  name: string;
  documents: DocumentNode[];
  resolvers: Resolvers;
  /** Required permissions by field path, such as `Query.pets`, in addition to `@requires`. */
  requires: ReadonlyMap<string, readonly Permission[]>;
}

/** Reads a host's part, and loads its resolvers. @throws Error that names the host and the problem */
export async function readHostPart({ typeDefs = [], resolvers = {}, name }: SchemaExtension): Promise<HostPart> {
  const owner = name ?? 'the host';
  return {
    name: owner,
    documents: readTypeDefs([typeDefs].flat() as (string | DocumentNode)[], owner),
    resolvers: readResolvers(typeof resolvers === 'function' ? await resolvers() : resolvers, owner),
    requires: new Map(),
  };
}

/** Reads a schema as a part. @throws Error that names the problem */
export function readOwnSchema({ schema, requires }: RequiringSchema): HostPart {
  return { name: 'the option "schema"', ...partsOfSchema(schema, requires) };
}

function readTypeDefs(typeDefs: (string | DocumentNode)[], owner: string): DocumentNode[] {
  try {
    return documentsOf(typeDefs);
  } catch (error) {
    throw new Error(`The typeDefs of ${owner} are invalid: ${(error as Error).message}`, { cause: error });
  }
}

function readResolvers(resolvers: unknown, owner: string): Resolvers {
  if (typeof resolvers === 'object' && resolvers !== null && !Array.isArray(resolvers)) return resolvers as Resolvers;
  throw new Error(`The resolvers of ${owner} must be one object, by type and field, or a function that returns it.`);
}

/** Types that every part of a schema can declare again; their fields are merged. */
const ROOT_TYPES: ReadonlySet<string> = new Set(['Query', 'Mutation']);

/** The declarations of the built-in part. */
interface BuiltIn {
  /** The fields of each type; only object types and interfaces have any here. */
  types: ReadonlyMap<string, ReadonlySet<string>>;
  directives: ReadonlySet<string>;
}

/**
 * Refuses hosts' parts that would replace something built-in. They can add types, root fields, and fields of built-in
 * object types.
 * @throws Error that names the host and what it replaces
 */
export function refuseReplacements(own: readonly DocumentNode[], parts: readonly HostPart[]): void {
  const builtIn = builtInOf(own);
  for (const { name, documents, resolvers } of parts) {
    for (const definition of definitionsOf(documents)) {
      if ('name' in definition && definition.name?.value === 'Subscription')
        throw new Error(`The schema is invalid: ${name} declares Subscription, and subscriptions are not supported.`);
      const replaced = replacedBy(definition, builtIn);
      if (replaced) throw refused(`${name} declares ${replaced}`);
    }
    const replaced = replacedByResolvers(resolvers, builtIn);
    if (replaced) throw refused(`${name} has a resolver of ${replaced}`);
  }
}

function builtInOf(documents: readonly DocumentNode[]): BuiltIn {
  const types = new Map(specifiedScalarTypes.map(({ name }) => [name, new Set<string>()]));
  const directives = new Set(specifiedDirectives.map(({ name }) => name));
  for (const definition of definitionsOf(documents)) {
    if (definition.kind === Kind.DIRECTIVE_DEFINITION) directives.add(definition.name.value);
    else if ('name' in definition && definition.name) {
      const { value } = definition.name;
      types.set(value, new Set([...(types.get(value) ?? []), ...fieldsOf(definition)]));
    }
  }
  return { types, directives };
}

/** The built-in element that a definition replaces, such as `ApiKey.name`; undefined if none. */
function replacedBy(definition: DefinitionNode, { types, directives }: BuiltIn): string | undefined {
  if (definition.kind === Kind.SCHEMA_DEFINITION || definition.kind === Kind.SCHEMA_EXTENSION)
    return 'the schema itself, whose root types are Query and Mutation, without subscriptions';
  const name = 'name' in definition ? (definition.name?.value ?? '') : '';
  if (definition.kind === Kind.DIRECTIVE_DEFINITION) return directives.has(name) ? `@${name}` : undefined;
  const fields = types.get(name);
  if (!fields) return undefined;
  const adds =
    definition.kind === Kind.OBJECT_TYPE_EXTENSION ||
    (definition.kind === Kind.OBJECT_TYPE_DEFINITION && ROOT_TYPES.has(name));
  if (!adds || definition.interfaces?.length || definition.directives?.length) return name;
  // Repeated root fields are refused by name, in any part.
  const field = ROOT_TYPES.has(name) ? undefined : fieldsOf(definition).find((added) => fields.has(added));
  return field && `${name}.${field}`;
}

/** The built-in element that resolvers replace, such as `ApiKey.name`; undefined if none. */
function replacedByResolvers(resolvers: object, { types }: BuiltIn): string | undefined {
  for (const [type, given] of Object.entries(resolvers)) {
    const fields = types.get(type);
    if (!fields) continue;
    // Hosts cannot add fields to scalars, enums and interfaces.
    if (fields.size === 0) return type;
    const field = Object.keys(given ?? {}).find((name) => fields.has(name) || name.startsWith('__'));
    if (field) return `${type}.${field}`;
  }
  return undefined;
}

function refused(what: string): Error {
  return new Error(
    `The schema is invalid: ${what}, which is built in. Declare types, fields and resolvers under names of your own.`,
  );
}

function definitionsOf(documents: readonly DocumentNode[]): DefinitionNode[] {
  return documents.flatMap(({ definitions }) => definitions);
}

function fieldsOf(definition: DefinitionNode): string[] {
  return 'fields' in definition ? (definition.fields ?? []).map(({ name }) => name.value) : [];
}
