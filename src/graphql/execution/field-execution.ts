import {
  defaultTypeResolver,
  type GraphQLObjectType,
  type GraphQLSchema,
  locatedError,
  type ResponsePath,
  responsePathAsArray,
} from 'graphql';
import { AnswerLength, MAX_ERRORS } from '../budget/answer.ts';
import { answerTooLarge } from '../budget/errors.ts';
import type { BudgetedContext } from '../context.ts';
import { withoutStackTrace } from '../../keys/errors.ts';
import { FieldErrors } from './field-errors.ts';
import { serialize, serializedAsItIs } from './leaf-values.ts';
import { ListTurns } from './list-turns.ts';
import { PlainFields, type Read, valueOf } from './plain-fields.ts';
import { type ExecutedOperation, pathOf, propertyOf, Resolution } from './resolution.ts';
import { expectRejections, expectRejectionsIn } from './rejections.ts';
import { type Eventual, isObject, isThenable, resolved, set } from './results.ts';
import { type OutputType, possibleType, type SelectedField } from './selection.ts';

/** Executes the fields of one operation, and completes their values (GraphQL, "Executing Selection Sets"). */
export class FieldExecution {
  readonly errors = new FieldErrors();
  readonly length: AnswerLength;
  readonly #schema: GraphQLSchema;
  readonly #context: BudgetedContext;
  readonly #resolution: Resolution;
  readonly #plain: PlainFields;
  readonly #turns: ListTurns;

  constructor(executed: ExecutedOperation, context: BudgetedContext, variables: Record<string, unknown>) {
    this.length = new AnswerLength(context.budget);
    this.#schema = executed.scope.schema;
    this.#context = context;
    this.#resolution = new Resolution(executed, context, variables);
    this.#plain = new PlainFields(this.length);
    this.#turns = new ListTurns(context.budget);
  }

  /** The results of an object's fields. @throws the error of a field that cannot be null */
  executeFields(
    fields: readonly SelectedField[],
    source: unknown,
    path: ResponsePath | undefined,
  ): Eventual<Record<string, unknown>> {
    return this.#plain.takeOver(fields, source) ?? this.#executeOthers(fields, source, path);
  }

  /** Goes on with the fields that were not taken over. */
  #executeOthers(
    fields: readonly SelectedField[],
    source: unknown,
    path: ResponsePath | undefined,
  ): Eventual<Record<string, unknown>> {
    const { results } = this.#plain;
    let { count: index, read } = this.#plain;
    let hasPromise = false;
    try {
      for (; index < fields.length; index += 1) {
        const field = fields[index]!;
        const value = this.executeField(field, source, path, read);
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

  /** The result of a field. @throws its error if it cannot be null */
  executeField(field: SelectedField, source: unknown, parent: ResponsePath | undefined, read?: Read): unknown {
    let path: ResponsePath | undefined;
    try {
      let value: unknown;
      const { type, definition, plain } = field;
      this.length.add(field.key.length + 3);
      if (definition.resolve || field.hasArguments) {
        path = pathOf(field, parent);
        value = this.#resolution.resolve(field, source, path);
      } else {
        value = read ? valueOf(read) : propertyOf(source, field.name);
        if (serializedAsItIs(plain, value)) {
          this.length.add(typeof value === 'string' ? value.length + 2 : 4);
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
    this.errors.add(error, path);
    if (this.errors.errors.length > MAX_ERRORS) this.#context.budget.abandon(answerTooLarge('errors', MAX_ERRORS));
    return null;
  }

  #complete(type: OutputType, field: SelectedField, path: ResponsePath, value: unknown): unknown {
    if (value instanceof Error) throw value;
    if (value === null || value === undefined) {
      const { parentType, name } = field;
      if (type.isNonNull) throw new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
      this.length.add(4);
      return null;
    }
    if (type.kind === 'leaf') {
      const serialized = serialize(type.type, field, value);
      this.length.addValue(serialized);
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
    const known = item.kind === 'object' && !item.type.isTypeOf ? field.selection.known(item.type) : undefined;
    const completed: unknown[] = [];
    let hasPromise = false;
    try {
      for (let index = from; index < items.length; index += 1) {
        if (this.#turns.mustWait()) {
          if (from === 0) expectRejectionsIn(items.slice(index), item, field.selection);
          const rest = this.#turns.wait(() => this.#completeItems(item, field, path, items, index));
          const done = hasPromise ? Promise.all(completed) : completed;
          return Promise.all([done, rest]).then(([some, others]) => some.concat(others));
        }
        const value = items[index];
        const fields = known && isObject(value) ? known : undefined;
        // Most items need nothing else, not even a path.
        const result =
          (fields && this.#plain.takeOver(fields, value)) ??
          this.#completeItem(item, field, { prev: path, key: index, typename: undefined }, value, fields);
        if (typeof result === 'object' && isThenable(result)) hasPromise = true;
        completed.push(result);
      }
    } catch (error) {
      expectRejections(completed);
      expectRejectionsIn(items.slice(from + completed.length), item, field.selection);
      throw error;
    }
    return hasPromise ? Promise.all(completed) : completed;
  }

  /** @param begun the fields of the item, if the plain ones at their start were taken over already */
  #completeItem(
    item: OutputType,
    field: SelectedField,
    path: ResponsePath,
    value: unknown,
    begun: readonly SelectedField[] | undefined,
  ): unknown {
    try {
      const completed = begun
        ? this.#executeOthers(begun, value, path)
        : isThenable(value)
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
    if (!type.isTypeOf) return this.executeFields(fields, value, path);
    const execute = (isTypeOf: unknown) => {
      const { parentType, name } = field;
      if (!isTypeOf) throw new Error(`Expected value of type "${type.name}" for ${parentType.name}.${name}.`);
      return this.executeFields(fields, value, path);
    };
    const isTypeOf: unknown = type.isTypeOf(value, this.#context, this.#resolution.infoOf(field, path));
    return isThenable(isTypeOf) ? isTypeOf.then(execute) : execute(isTypeOf);
  }
}
