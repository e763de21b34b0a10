import {
  defaultFieldResolver,
  type FieldNode,
  getNullableType,
  type GraphQLField,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isEnumType,
  isListType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { BudgetedContext } from '../context.ts';
import { costOfField } from './field-cost.ts';

/**
 * Makes every field that can be expensive keep to the budget of the request: no resolver starts once the request is
 * abandoned, and the items of lists are counted.
 */
export function keepToBudget(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields()) as Field[]) {
      if (isExpensiveList(field)) wrapList(field);
      else if (field.resolve) wrap(field, field.resolve);
      if (type === schema.getQueryType() && costOfField(type.name, field).weight > 1) resolveInSequence(field);
    }
  }
}

type Field = GraphQLField<unknown, BudgetedContext>;

function wrap(field: Field, resolve: NonNullable<Field['resolve']>): void {
  field.resolve = (parent, args, context, info) => {
    context.budget.check();
    return resolve(parent, args, context, info);
  };
}

function wrapList(field: Field): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (parent, args, context, info) => {
    context.budget.check();
    const value: unknown = resolve(parent, args, context, info);
    return value instanceof Promise
      ? value.then((items: unknown) => budgeted(items, context, info))
      : budgeted(value, context, info);
  };
}

/** SQLite answers without leaving a turn to other requests: what many fields read is read one by one. */
function resolveInSequence(field: Field): void {
  const { resolve } = field;
  if (!resolve) return;
  field.resolve = (parent, args, context, info) =>
    context.budget.inSequence(() => resolve(parent, args, context, info));
}

/** A list of enum values that the parent object has already is short. */
function isExpensiveList({ type, resolve }: Field): boolean {
  const nullable = getNullableType(type);
  return isListType(nullable) && (resolve !== undefined || !isEnumType(getNullableType(nullable.ofType)));
}

function budgeted(value: unknown, { budget }: BudgetedContext, info: GraphQLResolveInfo): unknown {
  budget.check();
  if (Array.isArray(value)) budget.addNodes(value.length * (1 + fieldsBelow(info)));
  return value;
}

/** By the nodes of one place in one plan: with other conditions, other nodes are merged there. */
const counts = new WeakMap<readonly FieldNode[], number>();

/** How many fields a selection has, with fragments expanded. */
function fieldsBelow({ fieldNodes, fragments }: GraphQLResolveInfo): number {
  if (!fieldNodes[0]?.selectionSet) return 0;
  let count = counts.get(fieldNodes);
  if (count === undefined) {
    count = fieldNodes.reduce((sum, { selectionSet }) => sum + (selectionSet ? countFields(selectionSet) : 0), 0);
    counts.set(fieldNodes, count);
  }
  return count;

  function countFields({ selections }: SelectionSetNode): number {
    return selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD)
        return sum + countFields(fragments[selection.name.value]!.selectionSet);
      const inner = selection.selectionSet ? countFields(selection.selectionSet) : 0;
      return sum + inner + (selection.kind === Kind.FIELD ? 1 : 0);
    }, 0);
  }
}
