import {
  type ConstDirectiveNode,
  type DocumentNode,
  type EnumValueNode,
  type FieldDefinitionNode,
  Kind,
  type NameNode,
  type StringValueNode,
} from 'graphql';
import type { Operations } from '../keys/operations/index.ts';
import { splitPermission } from '../keys/permissions/index.ts';

/**
 * A part of the schema, with the descriptions and `@requires` of operations on its root fields.
 * @throws Error if a root field has no operation, or a `@requires` of its own
 */
export function withOperations(document: DocumentNode, operations: Operations): DocumentNode {
  const definitions = document.definitions.map((definition) => {
    const isObject = definition.kind === Kind.OBJECT_TYPE_DEFINITION || definition.kind === Kind.OBJECT_TYPE_EXTENSION;
    if (!isObject || !['Query', 'Mutation'].includes(definition.name.value)) return definition;
    return {
      ...definition,
      fields: definition.fields?.map((field) => withOperation(field, definition.name.value, operations)),
    };
  });
  return { ...document, definitions };
}

function withOperation(field: FieldDefinitionNode, root: string, operations: Operations): FieldDefinitionNode {
  const { [field.name.value]: operation } = operations;
  if (operation?.root !== root) throw new Error(`There is no operation for ${root}.${field.name.value}.`);
  if (field.directives?.some(({ name }) => name.value === 'requires'))
    throw new Error(`${root}.${field.name.value} has a @requires: its operation says what it needs.`);
  const [resource, action] = splitPermission(operation.needs);
  const requires: ConstDirectiveNode = {
    kind: Kind.DIRECTIVE,
    name: nameOf('requires'),
    arguments: Object.entries({ resource, action }).map(([name, value]) => ({
      kind: Kind.ARGUMENT,
      name: nameOf(name),
      value: { kind: Kind.ENUM, value } satisfies EnumValueNode,
    })),
  };
  return { ...field, description: textOf(operation.does), directives: [requires, ...(field.directives ?? [])] };
}

function nameOf(value: string): NameNode {
  return { kind: Kind.NAME, value };
}

/** Text in lines of at most 118 characters: with indentation, 120. */
function textOf(text: string): StringValueNode {
  const value = text.replaceAll(/(.{1,118})(?: |$)/g, '$1\n').trimEnd();
  return { kind: Kind.STRING, value, block: text.length > 116 };
}
