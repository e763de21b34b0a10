import { GraphQLBoolean, GraphQLID, GraphQLInt, type GraphQLLeafType, GraphQLString } from 'graphql';
import type { SelectedField } from './selection.ts';

/** Whether a scalar of GraphQL itself serializes a value as it is, which spares the call. */
export function isSerialized(scalar: GraphQLLeafType, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return scalar === GraphQLString || scalar === GraphQLID;
    case 'number':
      return scalar === GraphQLInt && (value | 0) === value;
    case 'boolean':
      return scalar === GraphQLBoolean;
    default:
      return false;
  }
}

/** Serializes the value of a field. @throws what the type throws; Error if it makes nothing of the value */
export function serialize(type: GraphQLLeafType, { parentType, name }: SelectedField, value: unknown): unknown {
  const serialized: unknown = type.serialize(value);
  if (serialized === null || serialized === undefined)
    throw new Error(`${type.name} serializes a value of ${parentType.name}.${name} as nothing.`);
  return serialized;
}
