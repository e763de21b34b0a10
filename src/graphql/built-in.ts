import { type DefinitionNode, type DocumentNode, Kind, specifiedDirectives, specifiedScalarTypes } from 'graphql';
import type { HostPart } from './host-part.ts';

/** Types that every part of a schema may declare anew: what they declare is merged. */
const ROOT_TYPES: ReadonlySet<string> = new Set(['Query', 'Mutation']);

/** What the built-in part of the schema declares. */
interface BuiltIn {
  /** The fields of each type, which only object types and interfaces have here. */
  types: ReadonlyMap<string, ReadonlySet<string>>;
  directives: ReadonlySet<string>;
}

/**
 * Refuses parts of hosts that would replace something of the built-in part. They may add types, root fields, and fields
 * of built-in object types.
 * @throws Error that names the host and what it replaces
 */
export function refuseReplacements(own: readonly DocumentNode[], parts: readonly HostPart[]): void {
  const builtIn = builtInOf(own);
  for (const { name, documents, resolvers } of parts) {
    for (const definition of definitionsOf(documents)) {
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

/** What a definition replaces, such as `ApiKey.name`; undefined if nothing. */
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
  // A root field that is declared twice is refused by name, whoever declares it.
  const field = ROOT_TYPES.has(name) ? undefined : fieldsOf(definition).find((added) => fields.has(added));
  return field && `${name}.${field}`;
}

/** What resolvers replace, such as `ApiKey.name`; undefined if nothing. */
function replacedByResolvers(resolvers: object, { types }: BuiltIn): string | undefined {
  for (const [type, given] of Object.entries(resolvers)) {
    const fields = types.get(type);
    if (!fields) continue;
    // Scalars, enums and interfaces have no fields that a host could add.
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
