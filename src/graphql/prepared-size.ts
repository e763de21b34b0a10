import {
  type DocumentNode,
  type FieldNode,
  getNamedType,
  getOperationAST,
  type GraphQLNamedType,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  type SelectionSetNode,
  type Token,
} from 'graphql';
import { fragmentsOf } from './fragments.ts';

/** What a prepared operation holds, in bytes: for each token and character of its document, and field of each plan. */
const TOKEN_BYTES = 500;
const CHARACTER_BYTES = 2;
const FIELD_BYTES = 1200;

/**
 * Estimates the memory that a prepared operation may take, in bytes.
 * @param plans how many plans it may have
 */
export function preparedSizeOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operationName, plans }: { operationName: string | null; plans: number },
): number {
  const operation = getOperationAST(document, operationName);
  const fragments = fragmentsOf(document);
  let fields = 2;
  if (operation) addSelection(operation.selectionSet, schema.getRootType(operation.operation), 1);
  return TOKEN_BYTES * tokensOf(document) + CHARACTER_BYTES * (document.loc?.end ?? 0) + FIELD_BYTES * fields * plans;

  /** @param copies the number of types that the fields are selected from, one after another */
  function addSelection(
    { selections }: SelectionSetNode,
    type: GraphQLNamedType | undefined | null,
    copies: number,
  ): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) addField(selection, type, copies);
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const condition = selection.typeCondition && schema.getType(selection.typeCondition.name.value);
        addSelection(selection.selectionSet, condition ?? type, copies);
      } else {
        const fragment = fragments.get(selection.name.value);
        const condition = fragment && schema.getType(fragment.typeCondition.name.value);
        if (fragment) addSelection(fragment.selectionSet, condition, copies);
      }
    }
  }

  function addField(
    { name, selectionSet }: FieldNode,
    type: GraphQLNamedType | undefined | null,
    copies: number,
  ): void {
    fields += copies;
    if (!selectionSet) return;
    const field = type && 'getFields' in type ? type.getFields()[name.value] : undefined;
    const inner = field && getNamedType(field.type);
    addSelection(
      selectionSet,
      inner,
      copies * (inner && isAbstractType(inner) ? schema.getPossibleTypes(inner).length : 1),
    );
  }
}

/** With comments, which are kept as well. */
function tokensOf({ loc }: DocumentNode): number {
  let count = 0;
  for (let token: Token | null | undefined = loc?.startToken; token; token = token.next) count += 1;
  return count;
}
