import {
  type FieldNode,
  type FragmentDefinitionNode,
  getNullableType,
  type GraphQLAbstractType,
  GraphQLBoolean,
  type GraphQLField,
  GraphQLID,
  GraphQLInt,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  GraphQLString,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql';
import { collectSubfields } from 'graphql/execution/collectFields.js';

/** An output type, taken apart. */
export type OutputType = { readonly isNonNull: boolean } & (
  | { readonly kind: 'leaf'; readonly type: GraphQLLeafType }
  | { readonly kind: 'list'; readonly item: OutputType }
  | { readonly kind: 'object'; readonly type: GraphQLObjectType }
  | { readonly kind: 'abstract'; readonly type: GraphQLAbstractType }
);

/** A field of a selection, with all that does not depend on the request. */
export interface SelectedField {
  readonly key: string;
  readonly name: string;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  readonly type: OutputType;
  readonly hasArguments: boolean;
  /** Where it is a property of its object, the values that it has in the answer as they are; undefined for none. */
  readonly plain: PlainType | undefined;
  /** What `__typename` is; undefined for other fields. */
  readonly typename: string | undefined;
  readonly selection: Selection;
}

/** What the fields of a selection depend on. */
export interface SelectionScope {
  readonly schema: GraphQLSchema;
  readonly fragments: Record<string, FragmentDefinitionNode>;
  /** The values of the variables in `@include` and `@skip`. */
  readonly conditions: Record<string, unknown>;
}

/** The fields that are selected from an object, collected once for each of its possible types. */
export class Selection {
  readonly #scope: SelectionScope;
  readonly #nodes: readonly FieldNode[];
  readonly #fields = new Map<GraphQLObjectType, readonly SelectedField[]>();

  /** @param nodes the fields whose selections are merged */
  constructor(scope: SelectionScope, nodes: readonly FieldNode[]) {
    this.#scope = scope;
    this.#nodes = nodes;
  }

  /** The fields of a type for which they were collected before. */
  known(type: GraphQLObjectType): readonly SelectedField[] | undefined {
    return this.#fields.get(type);
  }

  /** In the order of GraphQL's "Field Collection". @throws GraphQLError if a condition is null */
  fieldsOf(type: GraphQLObjectType): readonly SelectedField[] {
    const known = this.#fields.get(type);
    if (known) return known;
    const { schema, fragments, conditions } = this.#scope;
    const fields: SelectedField[] = [];
    for (const [key, nodes] of collectSubfields(schema, fragments, conditions, type, this.#nodes)) {
      const name = nodes[0]!.name.value;
      const definition = definitionOf(schema, type, name);
      if (!definition) continue;
      fields.push({
        key,
        name,
        definition,
        parentType: type,
        nodes,
        type: outputTypeOf(definition.type),
        hasArguments: definition.args.length > 0,
        plain: plainTypeIn(definition, key),
        typename: definition === TypeNameMetaFieldDef ? type.name : undefined,
        selection: new Selection(this.#scope, nodes),
      });
    }
    this.#fields.set(type, fields);
    return fields;
  }
}

/** A key `__proto__` is not set like others. */
function plainTypeIn({ type, resolve, args }: GraphQLField<unknown, unknown>, key: string): PlainType | undefined {
  const outputType = outputTypeOf(type);
  const isKnown = resolve === undefined || resolve === TypeNameMetaFieldDef.resolve;
  const isProperty = isKnown && args.length === 0 && key !== '__proto__';
  return isProperty && outputType.kind === 'leaf' ? plainTypeOf(outputType.type) : undefined;
}

function definitionOf(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (type === schema.getQueryType()) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return type.getFields()[name];
}

const outputTypes = new WeakMap<GraphQLOutputType, OutputType>();

function outputTypeOf(type: GraphQLOutputType): OutputType {
  const known = outputTypes.get(type);
  if (known) return known;
  const outputType = takeApart(type);
  outputTypes.set(type, outputType);
  return outputType;
}

function takeApart(type: GraphQLOutputType): OutputType {
  const isNonNull = isNonNullType(type);
  const nullable = getNullableType(type);
  if (isLeafType(nullable)) return { isNonNull, kind: 'leaf', type: nullable };
  if (isListType(nullable))
    return { isNonNull, kind: 'list', item: outputTypeOf((nullable as GraphQLList<GraphQLOutputType>).ofType) };
  if (isAbstractType(nullable)) return { isNonNull, kind: 'abstract', type: nullable };
  return { isNonNull, kind: 'object', type: nullable as GraphQLObjectType };
}

/** The type that an abstract one was resolved to. @throws Error if it is not one of those that are possible */
export function possibleType(
  schema: GraphQLSchema,
  abstractType: GraphQLAbstractType,
  name: unknown,
): GraphQLObjectType {
  const type = typeof name === 'string' ? schema.getType(name) : undefined;
  if (isObjectType(type) && schema.isSubType(abstractType, type)) return type;
  throw new Error(`Abstract type "${abstractType.name}" was resolved to something that is not one of its types.`);
}

/** The values that a scalar of GraphQL serializes as they are, as `typeof` names them. */
export type PlainType = 'string' | 'number' | 'boolean';

const PLAIN_TYPES: ReadonlyMap<GraphQLLeafType, PlainType> = new Map<GraphQLLeafType, PlainType>([
  [GraphQLString, 'string'],
  [GraphQLID, 'string'],
  [GraphQLInt, 'number'],
  [GraphQLBoolean, 'boolean'],
]);

/** The values that a type serializes as they are, which spares the call; undefined for none. */
function plainTypeOf(type: GraphQLLeafType): PlainType | undefined {
  return PLAIN_TYPES.get(type);
}

/** Whether a value is one of those; of numbers, the integers of an Int are. */
export function serializedAsItIs(plain: PlainType | undefined, value: unknown): value is string | number | boolean {
  return typeof value === plain && (typeof value !== 'number' || (value | 0) === value);
}

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
