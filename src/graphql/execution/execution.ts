import {
  defaultTypeResolver,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  getArgumentValues,
  getNullableType,
  type GraphQLAbstractType,
  GraphQLBoolean,
  type GraphQLError,
  type GraphQLField,
  GraphQLID,
  GraphQLInt,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLString,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  locatedError,
  type OperationDefinitionNode,
  OperationTypeNode,
  type ResponsePath,
  responsePathAsArray,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql';
import { collectSubfields } from 'graphql/execution/collectFields.js';
import { withoutStackTrace } from './document.ts';
import {
  AnswerLength,
  answerTooLarge,
  type BudgetedRequest,
  checkErrors,
  GROUP_SIZE,
  MAX_ERRORS,
  type RequestBudget,
} from './budget.ts';

/**
 * Executes an operation once (GraphQL, "Execution"), with the same steps and results as `execute` of graphql-js, except
 * for messages of errors that only the log gets. It ends when the answer gets too long.
 */
export class Execution {
  readonly #executed: ExecutedOperation;
  readonly #fields: FieldExecution;

  constructor(executed: ExecutedOperation, context: BudgetedRequest, variables: Record<string, unknown>) {
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
      // A condition is null, so nothing was executed.
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

/** Executes the fields of one operation, and completes their values (GraphQL, "Executing Selection Sets"). */
export class FieldExecution {
  readonly errors = new FieldErrors();
  readonly length: AnswerLength;
  readonly #schema: GraphQLSchema;
  readonly #context: BudgetedRequest;
  readonly #resolution: Resolution;
  readonly #plain: PlainFields;
  readonly #turns: ListTurns;

  constructor(executed: ExecutedOperation, context: BudgetedRequest, variables: Record<string, unknown>) {
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

  /** Executes the remaining fields, which were not taken over. */
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
      // These promises can reject, too.
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
        // Most items need nothing more, not even a path.
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

  /** @param begun the fields of the item, if the plain ones at its start were taken over already */
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

/** The outcome of reading a property. It is read only once. */
export type Read = { readonly value: unknown } | { readonly thrown: unknown };

/** The value that was read. @throws the error of its getter */
export function valueOf(read: Read): unknown {
  if ('thrown' in read) throw read.thrown;
  return read.value;
}

/**
 * Takes over the leading fields of a selection that are `__typename`, or properties that scalars of GraphQL serialize
 * unchanged. The items of most lists have no others, and one loop is faster than executing each field.
 */
export class PlainFields {
  readonly #length: AnswerLength;
  /** The results so far. */
  results: Record<string, unknown> = {};
  /** The number of fields taken over. */
  count = 0;
  /** The outcome of the next field, if it was read already. */
  read: Read | undefined = undefined;

  constructor(length: AnswerLength) {
    this.#length = length;
  }

  /** The results if these were all fields; otherwise undefined, and the others must be executed. */
  takeOver(fields: readonly SelectedField[], source: unknown): Record<string, unknown> | undefined {
    const results: Record<string, unknown> = {};
    this.results = results;
    this.read = undefined;
    this.count = 0;
    if (typeof source !== 'object' || source === null) return fields.length === 0 ? results : undefined;
    let characters = 0;
    let index = 0;
    try {
      for (; index < fields.length; index += 1) {
        const { key, name, plain, typename } = fields[index]!;
        if (plain === undefined) break;
        const value = typename ?? (source as Record<string, unknown>)[name];
        if (!serializedAsItIs(plain, value)) {
          this.read = { value };
          break;
        }
        characters += key.length + (typeof value === 'string' ? value.length + 5 : 7);
        results[key] = value;
      }
    } catch (thrown) {
      this.read = { thrown };
    }
    this.count = index;
    this.#length.add(characters);
    return index === fields.length ? results : undefined;
  }
}

export interface ExecutedOperation {
  readonly scope: SelectionScope;
  readonly operation: OperationDefinitionNode;
  readonly selection: Selection;
  readonly rootType: GraphQLObjectType;
}

/** Calls the resolvers of one execution, with their arguments. */
export class Resolution {
  readonly #executed: ExecutedOperation;
  readonly #context: BudgetedRequest;
  readonly #variables: Record<string, unknown>;

  constructor(executed: ExecutedOperation, context: BudgetedRequest, variables: Record<string, unknown>) {
    this.#executed = executed;
    this.#context = context;
    this.#variables = variables;
  }

  resolve(field: SelectedField, source: unknown, path: ResponsePath): unknown {
    const { definition, nodes, hasArguments, name } = field;
    const args = hasArguments ? getArgumentValues(definition, nodes[0]!, this.#variables) : {};
    if (definition.resolve) return definition.resolve(source, args, this.#context, this.infoOf(field, path));
    const property = propertyOf(source, name);
    return typeof property === 'function' ? this.callMethod(field, source, args, path) : property;
  }

  /** Calls a method of the source. Reads it once more, as graphql-js's default resolver does. */
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
function pathOf({ key, parentType }: SelectedField, prev: ResponsePath | undefined): ResponsePath {
  return { prev, key, typename: parentType.name };
}

/** The property of a source for a field without a resolver. */
function propertyOf(source: unknown, name: string): unknown {
  return (typeof source === 'object' && source !== null) || typeof source === 'function'
    ? (source as Record<string, unknown>)[name]
    : undefined;
}

/**
 * Interrupts all lists of a request when its turn is over, so that an outer list does not continue while inner ones
 * wait.
 */
export class ListTurns {
  readonly #budget: RequestBudget;
  #items = 0;
  #isOver = false;
  #last: Promise<void> = Promise.resolve();

  constructor(budget: RequestBudget) {
    this.#budget = budget;
  }

  /** Counts the next item. Returns true if it must wait. */
  mustWait(): boolean {
    this.#items += 1;
    if (this.#items % GROUP_SIZE === 0 && this.#budget.turns.isTimeUp) this.#isOver = true;
    return this.#isOver;
  }

  /** Continues in the request's turn, after lists that started to wait earlier. */
  wait<Result>(goOn: () => Result): Promise<Awaited<Result>> {
    this.#last = this.#last.then(() => (this.#isOver ? this.#next() : undefined));
    return this.#last.then(goOn) as Promise<Awaited<Result>>;
  }

  async #next(): Promise<void> {
    await this.#budget.yieldToEventLoop();
    this.#isOver = false;
  }
}

/**
 * The errors of one execution, by the place that each made null (GraphQL, "Handling Execution Errors"). Errors below a
 * place that is already null are dropped.
 */
class FieldErrors {
  readonly errors: GraphQLError[] = [];
  readonly #nulled = new Set<ResponsePath | undefined>();

  /** @param path undefined if the whole answer becomes null */
  add(error: GraphQLError, path: ResponsePath | undefined): void {
    for (let place = path; place; place = place.prev) if (this.#nulled.has(place)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.errors.push(error);
  }
}

/** Keeps promises that are awaited later, or never, from ending the process when they reject. */
function expectRejections(values: readonly unknown[]): void {
  for (const value of values)
    try {
      if (isThenable(value)) value.then(undefined, () => {});
    } catch {
      // An object that throws when it is examined is not a promise.
    }
}

/**
 * Like `expectRejections`, for values that are completed later, or never, with the selected promises inside them. Calls
 * no getters, resolvers or custom thenables, so that nothing starts that has not started yet.
 */
function expectRejectionsIn(values: readonly unknown[], type: OutputType, selection: Selection): void {
  for (const value of values)
    try {
      if (value instanceof Promise)
        value.then(
          (result) => expectRejectionsIn([result], type, selection),
          () => {},
        );
      else if (type.kind === 'list' && Array.isArray(value)) expectRejectionsIn(value, type.item, selection);
      else if (type.kind === 'object' && typeof value === 'object' && value !== null)
        for (const field of selection.fieldsOf(type.type)) {
          const property = Object.getOwnPropertyDescriptor(value, field.name);
          if (typeof property?.value === 'object') expectRejectionsIn([property.value], field.type, field.selection);
        }
      // Its type, and so its selected fields, are not known yet.
      else if (type.kind === 'abstract' && typeof value === 'object' && value !== null)
        for (const { value: property } of Object.values(Object.getOwnPropertyDescriptors(value)))
          if (property instanceof Promise) expectRejections([property]);
    } catch {
      // An object that throws when it is examined is not a promise.
    }
}

export type Eventual<Value> = Value | Promise<Value>;

/** Results are plain objects, which are serialized faster than those without a prototype. */
function set(results: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(results, key, { value, enumerable: true, configurable: true, writable: true });
  else results[key] = value;
}

function resolved(results: Record<string, unknown>): Promise<Record<string, unknown>> {
  return Promise.all(Object.values(results)).then((values) => {
    for (const [index, key] of Object.keys(results).entries()) set(results, key, values[index]);
    return results;
  });
}

/** True for a promise or another thenable. */
function isThenable(value: unknown): value is Promise<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as PromiseLike<unknown>).then === 'function'
  );
}

/** True for an object with fields: neither an error nor a thenable. */
function isObject(value: unknown): value is object {
  try {
    return typeof value === 'object' && value !== null && !(value instanceof Error) && !isThenable(value);
  } catch {
    return false;
  }
}

/** An output type with its wrappers separated. */
export type OutputType = { readonly isNonNull: boolean } & (
  | { readonly kind: 'leaf'; readonly type: GraphQLLeafType }
  | { readonly kind: 'list'; readonly item: OutputType }
  | { readonly kind: 'object'; readonly type: GraphQLObjectType }
  | { readonly kind: 'abstract'; readonly type: GraphQLAbstractType }
);

/** A field of a selection, with everything that does not depend on the request. */
export interface SelectedField {
  readonly key: string;
  readonly name: string;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  readonly type: OutputType;
  readonly hasArguments: boolean;
  /** The type of values that are answered unchanged, if the field is a plain property; otherwise undefined. */
  readonly plain: PlainType | undefined;
  /** The answer of `__typename`; undefined for other fields. */
  readonly typename: string | undefined;
  readonly selection: Selection;
}

/** The inputs that determine the fields of a selection. */
export interface SelectionScope {
  readonly schema: GraphQLSchema;
  readonly fragments: Record<string, FragmentDefinitionNode>;
  /** The values of the variables in `@include` and `@skip`. */
  readonly conditions: Record<string, unknown>;
}

/** The fields selected from an object, collected once for each of its possible types. */
export class Selection {
  readonly #scope: SelectionScope;
  readonly #nodes: readonly FieldNode[];
  readonly #fields = new Map<GraphQLObjectType, readonly SelectedField[]>();

  /** @param nodes the fields whose selections are merged */
  constructor(scope: SelectionScope, nodes: readonly FieldNode[]) {
    this.#scope = scope;
    this.#nodes = nodes;
  }

  /** The fields of a type, if they were collected before. */
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

/** Excludes the key `__proto__`, which needs a special assignment. */
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

/** The resolved type of an abstract one. @throws Error if it is not a possible type */
function possibleType(schema: GraphQLSchema, abstractType: GraphQLAbstractType, name: unknown): GraphQLObjectType {
  const type = typeof name === 'string' ? schema.getType(name) : undefined;
  if (isObjectType(type) && schema.isSubType(abstractType, type)) return type;
  throw new Error(`Abstract type "${abstractType.name}" was resolved to something that is not one of its types.`);
}

/** The types, as `typeof` names them, of values that a scalar of GraphQL serializes unchanged. */
export type PlainType = 'string' | 'number' | 'boolean';

const PLAIN_TYPES: ReadonlyMap<GraphQLLeafType, PlainType> = new Map<GraphQLLeafType, PlainType>([
  [GraphQLString, 'string'],
  [GraphQLID, 'string'],
  [GraphQLInt, 'number'],
  [GraphQLBoolean, 'boolean'],
]);

/** The type of values that need no serialization, which saves the call; undefined if there is none. */
function plainTypeOf(type: GraphQLLeafType): PlainType | undefined {
  return PLAIN_TYPES.get(type);
}

/** True if a value is serialized unchanged. For numbers, that means the integers of an Int. */
function serializedAsItIs(plain: PlainType | undefined, value: unknown): value is string | number | boolean {
  return typeof value === plain && (typeof value !== 'number' || (value | 0) === value);
}

interface Declared {
  readonly parentType: { readonly name: string };
  readonly name: string;
}

/** Serializes the value of a field. @throws errors of the type; Error if the type returns nothing */
function serialize(type: GraphQLLeafType, { parentType, name }: Declared, value: unknown): unknown {
  const serialized: unknown = type.serialize(value);
  if (serialized === null || serialized === undefined)
    throw new Error(`${type.name} serializes a value of ${parentType.name}.${name} as nothing.`);
  return serialized;
}
