import {
  defaultTypeResolver,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  locatedError,
  OperationTypeNode,
  type ResponsePath,
  responsePathAsArray,
} from 'graphql';
import { checkErrors, lengthOf, MAX_ERRORS } from '../budget/answer.ts';
import { answerTooLarge } from '../budget/errors.ts';
import { GROUP_SIZE } from '../budget/turns.ts';
import type { BudgetedContext } from '../context.ts';
import { withoutStackTrace } from '../../keys/errors.ts';
import { FieldErrors } from './field-errors.ts';
import { serialize, serializedAsItIs } from './leaf-values.ts';
import { PlainFields, type Read, valueOf } from './plain-fields.ts';
import { type ExecutedOperation, pathOf, propertyOf, Resolution } from './resolution.ts';
import { type Eventual, expectRejections, isThenable, resolved, set } from './results.ts';
import { type OutputType, possibleType, type SelectedField } from './selection.ts';

/**
 * Executes an operation once (GraphQL, "Execution"), step by step as `execute` of graphql-js does, and with the same
 * result, but for the words of errors that are for the log alone. It ends when the answer gets too long.
 */
export class Execution {
  readonly #executed: ExecutedOperation;
  readonly #schema: GraphQLSchema;
  readonly #context: BudgetedContext;
  readonly #resolution: Resolution;
  readonly #plain = new PlainFields();
  readonly #errors = new FieldErrors();
  readonly #limit: number;
  #characters = 0;
  #items = 0;

  constructor(executed: ExecutedOperation, context: BudgetedContext, variables: Record<string, unknown>) {
    this.#executed = executed;
    this.#schema = executed.scope.schema;
    this.#context = context;
    this.#resolution = new Resolution(executed, context, variables);
    this.#limit = context.budget.limits.characters;
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
          : this.#executeFields(fields, null, undefined);
      return data instanceof Promise ? data.then(this.#result, this.#failed) : this.#result(data);
    } catch (error) {
      return this.#failed(error);
    }
  }

  readonly #failed = (error: unknown): ExecutionResult => {
    this.#errors.add(error as GraphQLError, undefined);
    return this.#result(null);
  };

  readonly #result = (data: Record<string, unknown> | null): ExecutionResult => {
    if (this.#characters > this.#limit) throw answerTooLarge('characters', this.#limit);
    const { errors } = this.#errors;
    checkErrors(errors);
    return errors.length > 0 ? { data, errors } : { data };
  };

  async #executeSerially(fields: readonly SelectedField[]): Promise<Record<string, unknown>> {
    const results = {};
    for (const field of fields) {
      const value = this.#executeField(field, null, undefined);
      set(results, field.key, isThenable(value) ? await value : value);
    }
    return results;
  }

  #executeFields(
    fields: readonly SelectedField[],
    source: unknown,
    path: ResponsePath | undefined,
  ): Eventual<Record<string, unknown>> {
    const results: Record<string, unknown> = {};
    this.#plain.takeOver(fields, source, results);
    let { count: index, read } = this.#plain;
    this.#count(this.#plain.characters);
    if (index === fields.length) return results;
    let hasPromise = false;
    try {
      for (; index < fields.length; index += 1) {
        const field = fields[index]!;
        const value = this.#executeField(field, source, path, read);
        read = undefined;
        set(results, field.key, value);
        if (typeof value === 'object' && isThenable(value)) hasPromise = true;
      }
    } catch (error) {
      if (!hasPromise) throw error;
      // The promises may reject, too.
      return resolved(results).finally(() => {
        throw error;
      });
    }
    return hasPromise ? resolved(results) : results;
  }

  #executeField(field: SelectedField, source: unknown, parent: ResponsePath | undefined, read?: Read): unknown {
    let path: ResponsePath | undefined;
    try {
      let value: unknown;
      const { type, definition, plain } = field;
      this.#count(field.key.length + 3);
      if (definition.resolve || field.hasArguments) {
        path = pathOf(field, parent);
        value = this.#resolution.resolve(field, source, path);
      } else {
        value = read ? valueOf(read) : propertyOf(source, field.name);
        if (serializedAsItIs(plain, value)) {
          this.#count(typeof value === 'string' ? value.length + 2 : 4);
          return value;
        }
        path = pathOf(field, parent);
        if (typeof value === 'function') value = this.#resolution.callMethod(field, source, {}, path);
      }
      const place = path;
      const completed = isThenable(value)
        ? value.then((result) => this.#complete(type, field, place, result))
        : this.#complete(type, field, place, value);
      if (!isThenable(completed)) return completed;
      return completed.then(undefined, (error: unknown) => this.#nullFor(error, field, type, place));
    } catch (error) {
      return this.#nullFor(error, field, field.type, path ?? pathOf(field, parent));
    }
  }

  /** @throws the error of a field that cannot be null */
  #nullFor(cause: unknown, { nodes }: SelectedField, { isNonNull }: OutputType, path: ResponsePath): null {
    const error = withoutStackTrace(() => locatedError(cause, nodes, responsePathAsArray(path)));
    if (isNonNull) throw error;
    this.#errors.add(error, path);
    if (this.#errors.errors.length > MAX_ERRORS) this.#context.budget.abandon(answerTooLarge('errors', MAX_ERRORS));
    return null;
  }

  #complete(type: OutputType, field: SelectedField, path: ResponsePath, value: unknown): unknown {
    if (value instanceof Error) throw value;
    if (value === null || value === undefined) {
      const { parentType, name } = field;
      if (type.isNonNull) throw new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
      this.#count(4);
      return null;
    }
    if (type.kind === 'leaf') {
      const serialized = serialize(type.type, field, value);
      this.#count(lengthOf(serialized, this.#limit));
      return serialized;
    }
    if (type.kind === 'list') return this.#completeList(type.item, field, path, value);
    if (type.kind === 'object') return this.#completeObject(type.type, field, path, value);
    const info = this.#resolution.infoOf(field, path);
    const name: unknown = (type.type.resolveType ?? defaultTypeResolver)(value, this.#context, info, type.type);
    return isThenable(name)
      ? name.then((result) => this.#completeObject(possibleType(this.#schema, type.type, result), field, path, value))
      : this.#completeObject(possibleType(this.#schema, type.type, name), field, path, value);
  }

  #completeList(item: OutputType, field: SelectedField, path: ResponsePath, value: unknown): Eventual<unknown[]> {
    if (typeof value !== 'object' || typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] !== 'function')
      throw new Error(`Expected Iterable, but did not find one for field "${field.parentType.name}.${field.name}".`);
    const items = Array.isArray(value) ? value : Array.from(value as Iterable<unknown>);
    return this.#completeItems(item, field, path, items, 0);
  }

  /** The items from an index on. */
  #completeItems(
    item: OutputType,
    field: SelectedField,
    path: ResponsePath,
    items: readonly unknown[],
    from: number,
  ): Eventual<unknown[]> {
    const { budget } = this.#context;
    const completed: unknown[] = [];
    let hasPromise = false;
    try {
      for (let index = from; index < items.length; index += 1) {
        this.#items += 1;
        if (this.#items % GROUP_SIZE === 0 && budget.turns.isTimeUp) {
          if (from === 0) expectRejections(items.slice(index));
          const rest = budget.nextTurn().then(() => this.#completeItems(item, field, path, items, index));
          return Promise.all([Promise.all(completed), rest]).then((parts) => parts.flat(1));
        }
        const value = this.#completeItem(item, field, { prev: path, key: index, typename: undefined }, items[index]);
        if (typeof value === 'object' && isThenable(value)) hasPromise = true;
        completed.push(value);
      }
    } catch (error) {
      expectRejections(completed);
      expectRejections(items.slice(from + completed.length));
      throw error;
    }
    return hasPromise ? Promise.all(completed) : completed;
  }

  #completeItem(item: OutputType, field: SelectedField, path: ResponsePath, value: unknown): unknown {
    try {
      const completed = isThenable(value)
        ? value.then((result) => this.#complete(item, field, path, result))
        : this.#complete(item, field, path, value);
      if (typeof completed !== 'object' || !isThenable(completed)) return completed;
      return completed.then(undefined, (error: unknown) => this.#nullFor(error, field, item, path));
    } catch (error) {
      return this.#nullFor(error, field, item, path);
    }
  }

  #completeObject(
    type: GraphQLObjectType,
    field: SelectedField,
    path: ResponsePath,
    value: unknown,
  ): Eventual<Record<string, unknown>> {
    const fields = field.selection.fieldsOf(type);
    if (!type.isTypeOf) return this.#executeFields(fields, value, path);
    const execute = (isTypeOf: unknown) => {
      const { parentType, name } = field;
      if (!isTypeOf) throw new Error(`Expected value of type "${type.name}" for ${parentType.name}.${name}.`);
      return this.#executeFields(fields, value, path);
    };
    const isTypeOf: unknown = type.isTypeOf(value, this.#context, this.#resolution.infoOf(field, path));
    return isThenable(isTypeOf) ? isTypeOf.then(execute) : execute(isTypeOf);
  }

  /** Counts characters of the answer. Once there are too many, no resolver starts any more. */
  #count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > this.#limit) this.#context.budget.abandon(answerTooLarge('characters', this.#limit));
  }
}
