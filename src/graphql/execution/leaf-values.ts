import { GraphQLBoolean, GraphQLID, GraphQLInt, type GraphQLLeafType, GraphQLString } from 'graphql';

/** The values that a scalar of GraphQL serializes as they are, as `typeof` names them. */
export type PlainType = 'string' | 'number' | 'boolean';

const PLAIN_TYPES: ReadonlyMap<GraphQLLeafType, PlainType> = new Map<GraphQLLeafType, PlainType>([
  [GraphQLString, 'string'],
  [GraphQLID, 'string'],
  [GraphQLInt, 'number'],
  [GraphQLBoolean, 'boolean'],
]);

/** The values that a type serializes as they are, which spares the call; undefined for none. */
export function plainTypeOf(type: GraphQLLeafType): PlainType | undefined {
  return PLAIN_TYPES.get(type);
}

/** Whether a value is one of those; of numbers, the integers of an Int are. */
export function serializedAsItIs(plain: PlainType | undefined, value: unknown): value is string | number | boolean {
  return typeof value === plain && (typeof value !== 'number' || (value | 0) === value);
}

/** Where a field is declared. */
interface Declared {
  readonly parentType: { readonly name: string };
  readonly name: string;
}

/** Serializes the value of a field. @throws what the type throws; Error if it makes nothing of the value */
export function serialize(type: GraphQLLeafType, { parentType, name }: Declared, value: unknown): unknown {
  const serialized: unknown = type.serialize(value);
  if (serialized === null || serialized === undefined)
    throw new Error(`${type.name} serializes a value of ${parentType.name}.${name} as nothing.`);
  return serialized;
}
