import {
  defaultTypeResolver,
  getArgumentValues,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isObjectType,
  locatedError,
  type OperationDefinitionNode,
  OperationTypeNode,
  responsePathAsArray,
} from 'graphql';
import { answerTooLarge } from '../budget/errors.ts';
import type { BudgetedContext } from '../context.ts';
import { FieldErrors } from './field-errors.ts';
import { writeAsIs, writeLeaf } from './json-text.ts';
import type { Path } from './path.ts';
import type { OutputType, SelectedField, Selection, SelectionScope } from './selection.ts';

/** A value, or the promise of one. */
export type Eventual<Value> = Value | Promise<Value>;

/** A value as JSON; undefined if `JSON.stringify` leaves it out. */
type Written = string | undefined;

/** The result of an operation, its data as JSON; without data if it was not executed. */
export interface WrittenResult {
  data?: string;
  errors?: readonly GraphQLError[];
}

/** What is executed. */
export interface ExecutedOperation {
  readonly scope: SelectionScope;
  readonly operation: OperationDefinitionNode;
  readonly selection: Selection;
  readonly rootType: GraphQLObjectType;
}

/** So many items of a list are completed before others may get a turn. */
const GROUP_SIZE = 20;

/**
 * Executes an operation once (GraphQL, "Execution"), and writes its data as JSON while it goes: the same data and
 * errors, in the same order, as `execute` of graphql-js with `JSON.stringify`.
 */
export class Execution {
  readonly #executed: ExecutedOperation;
  readonly #schema: GraphQLSchema;
  readonly #context: BudgetedContext;
  readonly #variables: Record<string, unknown>;
  readonly #errors = new FieldErrors();
  readonly #limit: number;
  #characters = 0;
  /** What ended the execution as a whole. */
  #failure: { error: unknown } | undefined;

  constructor(executed: ExecutedOperation, context: BudgetedContext, variables: Record<string, unknown>) {
    this.#executed = executed;
    this.#schema = executed.scope.schema;
    this.#context = context;
    this.#variables = variables;
    this.#limit = context.budget.limits.characters;
  }

  /** @throws what ended the execution as a whole, such as GraphQLError COST_EXCEEDED */
  run(): Eventual<WrittenResult> {
    const { operation, selection, rootType } = this.#executed;
    try {
      const fields = selection.fieldsOf(rootType);
      const data =
        operation.operation === OperationTypeNode.MUTATION
          ? this.#executeSerially(fields)
          : this.#executeFields(fields, null, undefined);
      return isWritten(data) ? this.#result(data) : data.then((text) => this.#result(text), this.#failed);
    } catch (error) {
      return this.#failed(error);
    }
  }

  readonly #failed = (error: unknown): WrittenResult => {
    this.#errors.add(error as GraphQLError, undefined);
    return this.#result('null');
  };

  #result(data: Written): WrittenResult {
    if (this.#failure) throw this.#failure.error;
    const errors = this.#errors.inOrder();
    return errors.length > 0 ? { errors, data: data! } : { data: data! };
  }

  async #executeSerially(fields: readonly SelectedField[]): Promise<Written> {
    const written: Written[] = [];
    for (const field of fields) {
      const text = this.#executeField(field, null, undefined);
      written.push(isWritten(text) ? text : await text);
    }
    return objectOf(fields, written);
  }

  #executeFields(fields: readonly SelectedField[], source: unknown, path: Path | undefined): Eventual<Written> {
    let text = '';
    let parts: Eventual<Written>[] | undefined;
    try {
      for (let index = 0; index < fields.length; index += 1) {
        const field = fields[index]!;
        const part = this.#executeField(field, source, path);
        if (parts) parts.push(part);
        else if (!isWritten(part)) parts = [part];
        else if (part !== undefined) text += (text === '' ? field.label : field.nextLabel) + part;
      }
    } catch (error) {
      if (!parts) throw error;
      // The promises may reject, too.
      return objectOfLater(fields, parts, text).finally(() => {
        throw error;
      });
    }
    if (!parts) return `{${text}}`;
    return objectOfLater(fields.slice(fields.length - parts.length), parts, text);
  }

  #executeField(field: SelectedField, source: unknown, parent: Path | undefined): Eventual<Written> {
    let path: Path | undefined;
    try {
      let value: unknown;
      const { type, definition } = field;
      if (definition.resolve || field.hasArguments) {
        path = pathOf(field, parent);
        value = this.#resolve(field, source, path);
      } else {
        value = propertyOf(source, field.name);
        const written = type.kind === 'leaf' ? writeAsIs(type.type, value) : undefined;
        if (written !== undefined) {
          this.#count(field.label.length + written.length);
          return written;
        }
        path = pathOf(field, parent);
        if (typeof value === 'function') value = this.#callMethod(field, source, {}, path);
      }
      this.#count(field.label.length);
      const place = path;
      const completed = isThenable(value)
        ? value.then((resolved) => this.#complete(type, field, place, resolved))
        : this.#complete(type, field, place, value);
      if (isWritten(completed)) return completed;
      return completed.then(undefined, (error: unknown) => this.#nullFor(error, field, type, place));
    } catch (error) {
      return this.#nullFor(error, field, field.type, path ?? pathOf(field, parent));
    }
  }

  #resolve(field: SelectedField, source: unknown, path: Path): unknown {
    const { definition, nodes, hasArguments, name } = field;
    const args = hasArguments ? getArgumentValues(definition, nodes[0]!, this.#variables) : {};
    if (definition.resolve) return definition.resolve(source, args, this.#context, this.#infoOf(field, path));
    const property = propertyOf(source, name);
    return typeof property === 'function' ? this.#callMethod(field, source, args, path) : property;
  }

  /** The method is read once more, as the default resolver of graphql-js does. */
  #callMethod(field: SelectedField, source: unknown, args: object, path: Path): unknown {
    const methods = source as Record<string, (...args: unknown[]) => unknown>;
    return methods[field.name]!(args, this.#context, this.#infoOf(field, path));
  }

  /** @throws the error of a field that cannot be null */
  #nullFor(cause: unknown, { nodes }: SelectedField, { isNonNull }: OutputType, path: Path): 'null' {
    const error = locatedError(cause, nodes, responsePathAsArray(path));
    if (isNonNull) throw error;
    this.#errors.add(error, path);
    return 'null';
  }

  #complete(type: OutputType, field: SelectedField, path: Path, value: unknown): Eventual<Written> {
    if (type.kind === 'leaf') return this.#completeLeaf(type, field, value);
    if (value instanceof Error) throw value;
    if (value === null || value === undefined) return this.#completeNull(type, field);
    if (type.kind === 'list') return this.#completeList(type.item, field, path, value);
    if (type.kind === 'object') return this.#completeObject(type.type, field, path, value);
    const info = this.#infoOf(field, path);
    const name = (type.type.resolveType ?? defaultTypeResolver)(value, this.#context, info, type.type) as unknown;
    return isThenable(name)
      ? name.then((resolved) => this.#completeObject(this.#possibleType(type.type, resolved), field, path, value))
      : this.#completeObject(this.#possibleType(type.type, name), field, path, value);
  }

  #completeNull({ isNonNull }: OutputType, { parentType, name }: SelectedField): 'null' {
    if (isNonNull) throw new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
    this.#count(4);
    return 'null';
  }

  #completeLeaf(output: OutputType & { kind: 'leaf' }, field: SelectedField, value: unknown): Written {
    if (value === null || value === undefined) return this.#completeNull(output, field);
    if (value instanceof Error) throw value;
    const serialized = output.type.serialize(value);
    if (serialized === null || serialized === undefined)
      throw new Error(`${output.type.name} serializes a value of ${field.parentType.name}.${field.name} as nothing.`);
    try {
      const written = writeLeaf(serialized);
      this.#count(written?.length ?? 0);
      return written;
    } catch (error) {
      this.#failure ??= { error };
      return 'null';
    }
  }

  #completeList(item: OutputType, field: SelectedField, path: Path, value: unknown): Eventual<Written> {
    if (typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] !== 'function' || typeof value !== 'object')
      throw new Error(`Expected Iterable, but did not find one for field "${field.parentType.name}.${field.name}".`);
    const items = Array.isArray(value) ? value : Array.from(value as Iterable<unknown>);
    return this.#completeItems(item, field, path, items, 0, (text) => `[${text}]`);
  }

  /** The items from an index on, separated by commas. */
  #completeItems(
    item: OutputType,
    field: SelectedField,
    path: Path,
    items: readonly unknown[],
    from: number,
    enclose: (text: string) => string,
  ): Eventual<string> {
    let text = '';
    let parts: Eventual<string>[] | undefined;
    try {
      for (let index = from; index < items.length; index += 1) {
        const isInterrupted = index > from && index % GROUP_SIZE === 0 && this.#context.budget.turns.isOver;
        const part = isInterrupted
          ? this.#context.budget
              .nextTurn()
              .then(() => this.#completeItems(item, field, path, items, index, (text) => text))
          : this.#completeItem(
              item,
              field,
              { prev: path, key: index, typename: undefined, position: index },
              items[index],
            );
        if (parts) parts.push(part);
        else if (typeof part === 'string') text += index === from ? part : `,${part}`;
        else parts = index === from ? [part] : [text, part];
        if (isInterrupted) break;
      }
    } catch (error) {
      for (const part of parts ?? []) if (typeof part !== 'string') part.catch(() => {});
      throw error;
    }
    return parts ? joined(parts, enclose) : enclose(text);
  }

  #completeItem(item: OutputType, field: SelectedField, path: Path, value: unknown): Eventual<string> {
    try {
      const completed = isThenable(value)
        ? value.then((resolved) => this.#complete(item, field, path, resolved))
        : this.#complete(item, field, path, value);
      if (isWritten(completed)) return completed ?? 'null';
      return completed.then(
        (written) => written ?? 'null',
        (error: unknown) => this.#nullFor(error, field, item, path),
      );
    } catch (error) {
      return this.#nullFor(error, field, item, path);
    }
  }

  #completeObject(type: GraphQLObjectType, field: SelectedField, path: Path, value: unknown): Eventual<Written> {
    const fields = field.selection.fieldsOf(type);
    if (!type.isTypeOf) return this.#executeFields(fields, value, path);
    const execute = (isTypeOf: unknown) => {
      if (!isTypeOf)
        throw new Error(`Expected value of type "${type.name}" for ${field.parentType.name}.${field.name}.`);
      return this.#executeFields(fields, value, path);
    };
    const isTypeOf = type.isTypeOf(value, this.#context, this.#infoOf(field, path)) as unknown;
    return isThenable(isTypeOf) ? isTypeOf.then(execute) : execute(isTypeOf);
  }

  #possibleType(abstractType: Parameters<GraphQLSchema['isSubType']>[0], name: unknown): GraphQLObjectType {
    const type = typeof name === 'string' ? this.#schema.getType(name) : undefined;
    if (isObjectType(type) && this.#schema.isSubType(abstractType, type)) return type;
    throw new Error(`Abstract type "${abstractType.name}" was resolved to something that is not one of its types.`);
  }

  #infoOf({ name, nodes, definition, parentType }: SelectedField, path: Path): GraphQLResolveInfo {
    const { scope, operation } = this.#executed;
    return {
      fieldName: name,
      fieldNodes: nodes,
      returnType: definition.type,
      parentType,
      path: path,
      schema: scope.schema,
      fragments: scope.fragments,
      rootValue: null,
      operation,
      variableValues: this.#variables,
    };
  }

  /** Counts characters of the answer. Once there are too many, no resolver starts any more. */
  #count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > this.#limit) this.#stop();
  }

  #stop(): void {
    if (this.#failure) return;
    const error = answerTooLarge('characters', this.#limit);
    this.#failure = { error };
    this.#context.budget.abandon(error);
  }
}

function pathOf({ key, position, parentType }: SelectedField, prev: Path | undefined): Path {
  return { prev, key, typename: parentType.name, position };
}

function propertyOf(source: unknown, name: string): unknown {
  return (typeof source === 'object' && source !== null) || typeof source === 'function'
    ? (source as Record<string, unknown>)[name]
    : undefined;
}

/** The fields of an object as JSON, after the text of those before them. */
function objectOf(fields: readonly SelectedField[], written: readonly Written[], before = ''): string {
  let text = before;
  for (const [index, part] of written.entries())
    if (part !== undefined) text += `${text === '' ? '' : ','}${fields[index]!.label}${part}`;
  return `{${text}}`;
}

function objectOfLater(
  fields: readonly SelectedField[],
  parts: readonly Eventual<Written>[],
  before: string,
): Promise<Written> {
  return Promise.all(parts as Promise<Written>[]).then((written) => objectOf(fields, written, before));
}

/**
 * The texts, separated by commas. As soon as `Promise.all` has them: of what fails beneath a place that becomes null,
 * graphql-js says what fails before that.
 */
function joined(parts: readonly Eventual<string>[], enclose: (text: string) => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const texts: string[] = [];
    let missing = parts.length;
    const add = (text: string, index: number): void => {
      texts[index] = text;
      missing -= 1;
      if (missing === 0) resolve(enclose(texts.join(',')));
    };
    for (const [index, part] of parts.entries()) Promise.resolve(part).then((text) => add(text, index), reject);
  });
}

function isWritten(value: Eventual<Written>): value is Written {
  return typeof value !== 'object';
}

function isThenable(value: unknown): value is Promise<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as PromiseLike<unknown>).then === 'function'
  );
}
