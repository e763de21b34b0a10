import {
  type ArgumentNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  getNamedType,
  getNullableType,
  getOperationAST,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  isListType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from 'graphql';
import { fragmentsOf } from './document.ts';

/** The size of a list about which nothing is known. */
const DEFAULT_SIZE = 10;

/** The cost of a selection: of all but its lists without a size of their own, and of one item of each of these. */
interface SelectionCost {
  fixed: Amount;
  perItem: Amount;
}

const NOTHING: SelectionCost = { fixed: 0, perItem: 0 };

/**
 * The cost of an operation before it runs: its fields, times the sizes of the lists that they are in. A function of the
 * variables if the cost depends on them. The document need not be valid. Each fragment is measured once.
 */
export function costOf(schema: GraphQLSchema, document: DocumentNode, operationName: string | null): Amount {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!root) return 0;
  const fragments = fragmentsOf(document);
  const measured = new Map<string, SelectionCost>();
  const defaults = new Map<string, ValueNode | undefined>(
    operation.variableDefinitions?.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  );
  return total(costOfSelection(operation.selectionSet, root), DEFAULT_SIZE);

  function costOfSelection({ selections }: SelectionSetNode, type: GraphQLNamedType | undefined): SelectionCost {
    return selections.reduce<SelectionCost>((sum, selection) => {
      const cost =
        selection.kind === Kind.FIELD
          ? costOfNode(selection, type)
          : selection.kind === Kind.FRAGMENT_SPREAD
            ? costOfFragment(selection.name.value)
            : costOfSelection(selection.selectionSet, typeNamed(selection.typeCondition?.name.value) ?? type);
      return { fixed: plus(sum.fixed, cost.fixed), perItem: plus(sum.perItem, cost.perItem) };
    }, NOTHING);
  }

  function costOfFragment(name: string): SelectionCost {
    const known = measured.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    const cost = fragment
      ? costOfSelection(fragment.selectionSet, typeNamed(fragment.typeCondition.name.value))
      : NOTHING;
    measured.set(name, cost);
    return cost;
  }

  function costOfNode(node: FieldNode, type: GraphQLNamedType | undefined): SelectionCost {
    const field = fieldOf(type, node.name.value);
    if (!field) return { fixed: 1, perItem: 0 };
    const inner = node.selectionSet ? costOfSelection(node.selectionSet, getNamedType(field.type)) : NOTHING;
    const { weight, size, page, argumentWeights } = costOfField(type!.name, field);
    const args = costOfArguments(field, argumentWeights, node.arguments ?? []);
    const isList = isListType(getNullableType(field.type));
    if (page) {
      const items = pageSize(page, field, node.arguments ?? []);
      const each = isList ? plus(1, total(inner, DEFAULT_SIZE)) : inner.perItem;
      const once = isList ? 0 : inner.fixed;
      return { fixed: plus(args, plus(once, times(items, plus(weight, each)))), perItem: 0 };
    }
    const once = plus(weight, args);
    const each = total(inner, DEFAULT_SIZE);
    if (size !== undefined) return { fixed: plus(once, times(size, plus(1, each))), perItem: 0 };
    return isList ? { fixed: once, perItem: plus(1, each) } : { fixed: plus(once, each), perItem: 0 };
  }

  /** The size of a page: what the first slicing argument says, but no more than the largest page. */
  function pageSize(
    page: NonNullable<FieldCost['page']>,
    field: GraphQLField<unknown, unknown>,
    given: readonly ArgumentNode[],
  ): Amount {
    for (const name of page.arguments) {
      const definition = field.args.find((arg) => arg.name === name);
      const fallback = typeof definition?.defaultValue === 'number' ? definition.defaultValue : page.largest;
      const node = given.find((argument) => argument.name.value === name)?.value;
      const sizeOf = (value: unknown) =>
        Math.min(Math.max(typeof value === 'number' ? value : fallback, 0), page.largest);
      if (node?.kind === Kind.VARIABLE) return (variables) => sizeOf(variableOf(node.name.value, variables));
      if (node || definition?.defaultValue !== undefined) return sizeOf(node && plainValue(node));
    }
    return page.largest;
  }

  /** Of several arguments that make a field search, the costliest counts; the items of lists count all. */
  function costOfArguments(
    field: GraphQLField<unknown, unknown>,
    argumentWeights: FieldCost['argumentWeights'],
    given: readonly ArgumentNode[],
  ): Amount {
    const weights: number[] = [0];
    let items: Amount = 0;
    for (const { name, value } of given) {
      const weight = argumentWeights.get(name.value) ?? 0;
      const isList = isListType(getNullableType(field.args.find((arg) => arg.name === name.value)?.type));
      if (!isList && value.kind !== Kind.NULL) weights.push(weight);
      items = plus(items, times(Math.max(1, isList ? weight : 1), itemsIn(value)));
    }
    return plus(Math.max(...weights), items);
  }

  function itemsIn(value: ValueNode): Amount {
    if (value.kind === Kind.VARIABLE) return (variables) => countItems(variableOf(value.name.value, variables));
    if (value.kind === Kind.LIST)
      return value.values.reduce<Amount>((sum, item) => plus(sum, itemsIn(item)), value.values.length);
    if (value.kind === Kind.STRING) return textCost(value.value);
    if (value.kind === Kind.OBJECT)
      return value.fields.reduce<Amount>((sum, field) => plus(sum, itemsIn(field.value)), 0);
    return 0;
  }

  function variableOf(name: string, variables: Readonly<Record<string, unknown>> | null): unknown {
    const value = variables && Object.hasOwn(variables, name) ? variables[name] : undefined;
    const fallback = defaults.get(name);
    return value === undefined && fallback ? plainValue(fallback) : value;
  }

  function typeNamed(name: string | undefined): GraphQLNamedType | undefined {
    return name === undefined ? undefined : schema.getType(name);
  }

  function fieldOf(type: GraphQLNamedType | undefined, name: string): GraphQLField<unknown, unknown> | undefined {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    return type && 'getFields' in type
      ? (type.getFields()[name] as GraphQLField<unknown, unknown> | undefined)
      : undefined;
  }
}

function total({ fixed, perItem }: SelectionCost, size: number): Amount {
  return plus(fixed, times(size, perItem));
}

/** A literal number; other literals have no size. */
function plainValue(node: ValueNode): unknown {
  return node.kind === Kind.INT ? Number(node.value) : undefined;
}

/** Long texts cost, too: the same variable may be passed to many fields. */
function textCost(text: string): number {
  return Math.floor(text.length / 1000);
}

/** The items of all lists in a JSON value. */
function countItems(value: unknown): number {
  if (typeof value === 'string') return textCost(value);
  if (typeof value !== 'object' || value === null) return 0;
  let count = Array.isArray(value) ? value.length : 0;
  for (const inner of Object.values(value)) count += countItems(inner);
  return count;
}

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

/** A number, or one that depends on the variables of a request. */
export type Amount = number | ((variables: Readonly<Record<string, unknown>> | null) => number);

/** The amount for these variables. */
export function amountFor(amount: Amount, variables: Readonly<Record<string, unknown>> | null): number {
  return typeof amount === 'number' ? amount : amount(variables);
}

/** The sum of two amounts. */
function plus(one: Amount, other: Amount): Amount {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  return (variables) => amountFor(one, variables) + amountFor(other, variables);
}

/** The product of two amounts. */
function times(one: Amount, other: Amount): Amount {
  if (one === 0 || other === 0) return 0;
  if (typeof one === 'number' && typeof other === 'number') return one * other;
  return (variables) => amountFor(one, variables) * amountFor(other, variables);
}
