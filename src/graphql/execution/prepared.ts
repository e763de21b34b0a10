import type { Amount, BudgetedRequest } from './budget.ts';
import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  getNamedType,
  getOperationAST,
  getVariableValues,
  GraphQLIncludeDirective,
  type GraphQLNamedType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  isAbstractType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type Token,
  visit,
} from 'graphql';
import { fragmentsOf, isMutation, introspects } from './document.ts';
import { type Eventual, type ExecutedOperation, Execution, Selection } from './execution.ts';

/** The most operations in the cache, and the most memory for them, in bytes. */
const MAX_ENTRIES = 1000;
export const MAX_BYTES = 32_000_000;
const MAX_SEEN_BYTES = 4_000_000;
/** Longer documents are not kept. A well-indented document with the most tokens is half as long. */
const MAX_DOCUMENT_LENGTH = 100_000;

/**
 * A cache of valid operations. Literals are part of a document, so a client that embeds changing values only evicts the
 * least recently used entries.
 */
export class PreparedOperations {
  readonly #schema: GraphQLSchema;
  readonly #operations = new RecentlyUsed<PreparedOperation>(MAX_ENTRIES, MAX_BYTES);
  /** Documents that were valid once. Most documents that differ each time are never sent again. */
  readonly #seen = new RecentlyUsed<true>(MAX_ENTRIES, MAX_SEEN_BYTES);

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  find(query: string, operationName: string | null): PreparedOperation | undefined {
    return this.#operations.get(keyOf(query, operationName));
  }

  /** True if an operation was valid before. */
  hasSeen(query: string, operationName: string | null): boolean {
    return this.#seen.has(keyOf(query, operationName));
  }

  /** Prepares a valid operation, and keeps it if it was seen before. */
  prepare(
    query: string,
    operationName: string | null,
    { document, cost }: { document: DocumentNode; cost: Amount },
  ): PreparedOperation {
    const operation = new PreparedOperation(this.#schema, document, operationName, cost);
    if (query.length > MAX_DOCUMENT_LENGTH) return operation;
    const key = keyOf(query, operationName);
    if (this.#seen.delete(key)) {
      const { maxPlans: plans } = operation;
      const size = 2 * key.length + preparedSizeOf(this.#schema, document, { operationName, plans });
      this.#operations.set(key, operation, size);
    } else this.#seen.set(key, true, 2 * key.length + 1);
    return operation;
  }
}

/** Includes the length of the query as a separator. No valid document begins with a digit. */
function keyOf(query: string, operationName: string | null): string {
  return operationName === null ? query : `${query.length} ${query}${operationName}`;
}

/** The most combinations of conditions whose selected fields are kept. */
const MAX_PLANS = 16;

/** Each contains the whole value. */
const MAX_VARIABLE_ERRORS = 10;

/** A valid operation, ready to be executed with any variables, without analyzing its document again. */
export class PreparedOperation {
  /** See `costOf`. */
  readonly cost: Amount;
  /** Undefined if it has none. */
  readonly name: string | undefined;
  readonly isMutation: boolean;
  /** See `introspects`. */
  readonly introspects: boolean;
  readonly #schema: GraphQLSchema;
  readonly #document: DocumentNode;
  readonly #operation: OperationDefinitionNode;
  /** The variables in `@include` and `@skip`, which determine the selected fields. */
  readonly #conditions: readonly string[];
  /** By the values of the conditions. */
  readonly #plans = new Map<string, ExecutedOperation>();

  constructor(schema: GraphQLSchema, document: DocumentNode, operationName: string | null, cost: Amount) {
    this.#schema = schema;
    this.#document = document;
    this.#operation = getOperationAST(document, operationName)!;
    this.#conditions = conditionsIn(document);
    this.cost = cost;
    this.name = this.#operation.name?.value;
    this.isMutation = isMutation(document, operationName);
    this.introspects = introspects(document);
  }

  /** The most combinations of conditions whose selected fields it can keep. */
  get maxPlans(): number {
    return Math.min(MAX_PLANS, 2 ** this.#conditions.length);
  }

  /** Executes the operation. @throws GraphQLError COST_EXCEEDED if the answer gets too long */
  execute(context: BudgetedRequest, variables: Record<string, unknown> | null): Eventual<ExecutionResult> {
    const { variableDefinitions = [] } = this.#operation;
    if (variableDefinitions.length === 0) return new Execution(this.#planFor({}), context, {}).run();
    const { errors, coerced } = getVariableValues(this.#schema, variableDefinitions, variables ?? {}, {
      maxErrors: MAX_VARIABLE_ERRORS,
    });
    if (errors) return { errors };
    return new Execution(this.#planFor(coerced), context, coerced).run();
  }

  #planFor(variables: Record<string, unknown>): ExecutedOperation {
    const key = this.#conditions.map((name) => String(variables[name])).join();
    const known = this.#plans.get(key);
    if (known) return known;
    const plan = this.#plan(variables);
    if (this.#plans.size >= this.maxPlans) this.#plans.clear();
    this.#plans.set(key, plan);
    return plan;
  }

  #plan(variables: Record<string, unknown>): ExecutedOperation {
    const operation = this.#operation;
    const scope = {
      schema: this.#schema,
      fragments: Object.fromEntries(fragmentsOf(this.#document)),
      conditions: Object.fromEntries(
        this.#conditions.flatMap((name) => (Object.hasOwn(variables, name) ? [[name, variables[name]]] : [])),
      ),
    };
    const root = { kind: Kind.FIELD, selectionSet: operation.selectionSet } as FieldNode;
    return {
      scope,
      operation,
      selection: new Selection(scope, [root]),
      rootType: this.#schema.getRootType(operation.operation)!,
    };
  }
}

function conditionsIn(document: DocumentNode): string[] {
  // Analyzing the whole document takes longer than preparing the rest.
  if (!document.loc?.source.body.includes('@')) return [];
  const names = new Set<string>();
  visit(document, {
    Directive: ({ name, arguments: given = [] }) => {
      if (name.value !== GraphQLIncludeDirective.name && name.value !== GraphQLSkipDirective.name) return;
      for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}

/**
 * The memory of a prepared operation, in bytes: per token and character of its document, and per field of each plan.
 * The lexer builds a string with escapes from many pieces, which takes ten times as much as its characters.
 */
const TOKEN_BYTES = 500;
const CHARACTER_BYTES = 24;
const FIELD_BYTES = 1200;

/**
 * Estimates the memory that a prepared operation can take, in bytes.
 * @param plans how many plans it can have
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
  return (
    TOKEN_BYTES * countTokens(document) + CHARACTER_BYTES * (document.loc?.end ?? 0) + FIELD_BYTES * fields * plans
  );

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

/** Includes comments, which are kept as well. */
function countTokens({ loc }: DocumentNode): number {
  let count = 0;
  for (let token: Token | null | undefined = loc?.startToken; token; token = token.next) count += 1;
  return count;
}

/** Keeps the most recently used values, up to a number and a total size. */
export class RecentlyUsed<Value> {
  /** Least recently used first. */
  readonly #entries = new Map<string, { readonly value: Value; readonly size: number }>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  #size = 0;

  constructor(maxEntries: number, maxSize = Number.POSITIVE_INFINITY) {
    this.#maxEntries = maxEntries;
    this.#maxSize = maxSize;
  }

  /** The value of a key, which counts as a use. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** True if there is a value. Does not count as a use. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Sets the value of a key, and drops the least recently used values. A value that is too large is not kept. */
  set(key: string, value: Value, size = 0): void {
    this.delete(key);
    if (size > this.#maxSize) return;
    this.#entries.set(key, { value, size });
    this.#size += size;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#size <= this.#maxSize) return;
      this.delete(oldest);
    }
  }

  /** @returns true if there was a value */
  delete(key: string): boolean {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    return this.#entries.delete(key);
  }
}
