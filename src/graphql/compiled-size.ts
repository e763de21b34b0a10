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
} from 'graphql';
import { fragmentsOf } from './fragments.ts';

/** What a compiled query holds, in bytes: for itself, for each field, and for each character of a field's path. */
const QUERY_BYTES = 12_000;
const FIELD_BYTES = 8000;
const CHARACTER_BYTES = 100;

/** What compiling an operation makes. */
export interface CompiledSize {
  /** The fields, with fragments expanded, and once for each type that an interface or union stands for. */
  fields: number;
  /** An estimate of the memory that the compiled query takes. */
  bytes: number;
}

/** Estimates what compiling a valid operation makes, from its fields. */
export function compiledSizeOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null,
): CompiledSize {
  const operation = getOperationAST(document, operationName);
  const fragments = fragmentsOf(document);
  const size = { fields: 0, bytes: QUERY_BYTES };
  if (operation)
    addSelection(operation.selectionSet, schema.getRootType(operation.operation), { length: 0, copies: 1 });
  return size;

  function addSelection(
    { selections }: SelectionSetNode,
    type: GraphQLNamedType | undefined | null,
    path: { length: number; copies: number },
  ): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) addField(selection, type, path);
      else if (selection.kind === Kind.INLINE_FRAGMENT) addSelection(selection.selectionSet, type, path);
      else {
        const fragment = fragments.get(selection.name.value);
        const condition = fragment && schema.getType(fragment.typeCondition.name.value);
        if (fragment) addSelection(fragment.selectionSet, condition, path);
      }
    }
  }

  function addField(
    { name, alias, selectionSet }: FieldNode,
    type: GraphQLNamedType | undefined | null,
    path: { length: number; copies: number },
  ): void {
    const length = path.length + (alias ?? name).value.length;
    size.fields += path.copies;
    size.bytes += path.copies * (FIELD_BYTES + CHARACTER_BYTES * length);
    if (!selectionSet) return;
    const field = type && 'getFields' in type ? type.getFields()[name.value] : undefined;
    const inner = field && getNamedType(field.type);
    const copies = path.copies * (inner && isAbstractType(inner) ? schema.getPossibleTypes(inner).length : 1);
    addSelection(selectionSet, inner, { length, copies });
  }
}
