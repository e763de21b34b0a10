import { type DirectiveNode, type GraphQLField, Kind, type ValueNode } from 'graphql';

/** What the directives of a field say about its cost. */
export interface FieldCost {
  weight: number;
  /** The assumed size of a list. */
  size?: number;
  /** The largest page, and the arguments that set its size. */
  page?: { largest: number; arguments: readonly string[] };
  argumentWeights: ReadonlyMap<string, number>;
}

/** Fields of the schema about itself, which have no directives. Half of all types wrap another one. */
const INTROSPECTION_SIZES: Readonly<Record<string, number>> = {
  '__Schema.types': 72,
  '__Schema.directives': 8,
  '__Type.fields': 5,
  '__Type.interfaces': 0.2,
  '__Type.possibleTypes': 0.2,
  '__Type.enumValues': 2,
  '__Type.inputFields': 1,
  '__Type.ofType': 0.5,
  '__Field.args': 1,
  '__Directive.args': 2,
  '__Directive.locations': 2,
};

const costs = new WeakMap<object, FieldCost>();

/** The cost of a field by its directives `@cost` and `@listSize`. */
export function costOfField(typeName: string, field: GraphQLField<unknown, never>): FieldCost {
  const known = costs.get(field);
  if (known) return known;
  const cost = readCost(typeName, field);
  costs.set(field, cost);
  return cost;
}

function readCost(typeName: string, { name, args, astNode }: GraphQLField<unknown, never>): FieldCost {
  const assumed = INTROSPECTION_SIZES[`${typeName}.${name}`];
  const weight = numberIn(astNode?.directives, 'cost', 'weight') ?? 1;
  const size = numberIn(astNode?.directives, 'listSize', 'assumedSize') ?? assumed;
  const slicing = valueIn(astNode?.directives, 'listSize', 'slicingArguments');
  const slicingArguments =
    slicing?.kind === Kind.LIST ? slicing.values.flatMap((item) => (item.kind === Kind.STRING ? item.value : [])) : [];
  const argumentWeights = new Map(
    args.map((arg) => [arg.name, numberIn(arg.astNode?.directives, 'cost', 'weight') ?? 0]),
  );
  if (size === undefined) return { weight, argumentWeights };
  return slicingArguments.length > 0
    ? { weight, argumentWeights, page: { largest: size, arguments: slicingArguments } }
    : { weight, argumentWeights, size };
}

function numberIn(
  directives: readonly DirectiveNode[] | undefined,
  name: string,
  argument: string,
): number | undefined {
  const value = valueIn(directives, name, argument);
  return value?.kind === Kind.INT ? Number(value.value) : undefined;
}

function valueIn(
  directives: readonly DirectiveNode[] | undefined,
  name: string,
  argument: string,
): ValueNode | undefined {
  return directives
    ?.find((directive) => directive.name.value === name)
    ?.arguments?.find((given) => given.name.value === argument)?.value;
}
