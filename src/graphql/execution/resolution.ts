import {
  getArgumentValues,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type OperationDefinitionNode,
  type ResponsePath,
} from 'graphql';
import type { BudgetedContext } from '../context.ts';
import type { SelectedField, Selection, SelectionScope } from './selection.ts';

/** What is executed. */
export interface ExecutedOperation {
  readonly scope: SelectionScope;
  readonly operation: OperationDefinitionNode;
  readonly selection: Selection;
  readonly rootType: GraphQLObjectType;
}

/** Calls the resolvers of one execution, with what they are told. */
export class Resolution {
  readonly #executed: ExecutedOperation;
  readonly #context: BudgetedContext;
  readonly #variables: Record<string, unknown>;

  constructor(executed: ExecutedOperation, context: BudgetedContext, variables: Record<string, unknown>) {
    this.#executed = executed;
    this.#context = context;
    this.#variables = variables;
  }

  /** The value of a field that has a resolver or arguments. */
  resolve(field: SelectedField, source: unknown, path: ResponsePath): unknown {
    const { definition, nodes, hasArguments, name } = field;
    const args = hasArguments ? getArgumentValues(definition, nodes[0]!, this.#variables) : {};
    if (definition.resolve) return definition.resolve(source, args, this.#context, this.infoOf(field, path));
    const property = propertyOf(source, name);
    return typeof property === 'function' ? this.callMethod(field, source, args, path) : property;
  }

  /** Calls a method of the source. It is read once more, as the default resolver of graphql-js does. */
  callMethod(field: SelectedField, source: unknown, args: object, path: ResponsePath): unknown {
    const methods = source as Record<string, (...args: unknown[]) => unknown>;
    return methods[field.name]!(args, this.#context, this.infoOf(field, path));
  }

  infoOf({ name, nodes, definition, parentType }: SelectedField, path: ResponsePath): GraphQLResolveInfo {
    const { scope, operation } = this.#executed;
    return {
      fieldName: name,
      fieldNodes: nodes,
      returnType: definition.type,
      parentType,
      path,
      schema: scope.schema,
      fragments: scope.fragments,
      rootValue: null,
      operation,
      variableValues: this.#variables,
    };
  }
}

/** The place of a field in the answer. */
export function pathOf({ key, parentType }: SelectedField, prev: ResponsePath | undefined): ResponsePath {
  return { prev, key, typename: parentType.name };
}

/** The property of a source that a field without a resolver stands for. */
export function propertyOf(source: unknown, name: string): unknown {
  return (typeof source === 'object' && source !== null) || typeof source === 'function'
    ? (source as Record<string, unknown>)[name]
    : undefined;
}
