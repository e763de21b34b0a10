import { type ExecutionResult, type GraphQLError, OperationTypeNode } from 'graphql';
import { checkErrors } from '../budget/answer.ts';
import type { BudgetedContext } from '../context.ts';
import { FieldExecution } from './field-execution.ts';
import type { ExecutedOperation } from './resolution.ts';
import { type Eventual, isThenable, set } from './results.ts';
import type { SelectedField } from './selection.ts';

/**
 * Executes an operation once (GraphQL, "Execution"), step by step as `execute` of graphql-js does, and with the same
 * result, but for the words of errors that are for the log alone. It ends when the answer gets too long.
 */
export class Execution {
  readonly #executed: ExecutedOperation;
  readonly #fields: FieldExecution;

  constructor(executed: ExecutedOperation, context: BudgetedContext, variables: Record<string, unknown>) {
    this.#executed = executed;
    this.#fields = new FieldExecution(executed, context, variables);
  }

  /** @throws GraphQLError COST_EXCEEDED if the answer gets too long */
  run(): Eventual<ExecutionResult> {
    const { operation, selection, rootType } = this.#executed;
    let fields;
    try {
      fields = selection.fieldsOf(rootType);
    } catch (error) {
      // A condition is null: nothing was executed.
      return { errors: [error as GraphQLError] };
    }
    try {
      const data =
        operation.operation === OperationTypeNode.MUTATION && fields.length > 1
          ? this.#executeSerially(fields)
          : this.#fields.executeFields(fields, null, undefined);
      return data instanceof Promise ? data.then(this.#result, this.#failed) : this.#result(data);
    } catch (error) {
      return this.#failed(error);
    }
  }

  readonly #failed = (error: unknown): ExecutionResult => {
    this.#fields.errors.add(error as GraphQLError, undefined);
    return this.#result(null);
  };

  readonly #result = (data: Record<string, unknown> | null): ExecutionResult => {
    this.#fields.length.check();
    const { errors } = this.#fields.errors;
    checkErrors(errors);
    return errors.length > 0 ? { data, errors } : { data };
  };

  async #executeSerially(fields: readonly SelectedField[]): Promise<Record<string, unknown>> {
    const results = {};
    for (const field of fields) {
      const value = this.#fields.executeField(field, null, undefined);
      set(results, field.key, isThenable(value) ? await value : value);
    }
    return results;
  }
}
