import {
  type DocumentNode,
  type ExecutionResult,
  getOperationAST,
  type GraphQLSchema,
  OperationTypeNode,
  visit,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import { amountFor } from './budget/amount.ts';
import { costOf } from './budget/cost.ts';
import { compiledSizeOf } from './compiled-size.ts';
import type { BudgetedContext } from './context.ts';
import { withoutCodeCache } from './without-code-cache.ts';

/** Runs an operation; its result may be a promise, and may hold errors. Undefined if these variables make it costly. */
export type RunOperation = (
  context: BudgetedContext,
  variables: Record<string, unknown> | null,
) => ExecutionResult | Promise<ExecutionResult> | undefined;

/** The number of documents in the cache, and the memory that they and the compiled queries may take, in bytes. */
const MAX_ENTRIES = 500;
export const MAX_BYTES = 32_000_000;
/** Compiling more fields would take longer than the event loop may be held up. */
const MAX_FIELDS = 100;
/** A compiled query runs without interruption. */
const MAX_COST = 1000;
/** Longer documents are not cached: they take longer to run than to validate. */
const MAX_DOCUMENT_LENGTH = 20_000;

/**
 * A cache of valid queries, compiled when they are seen for the second time. Limits and validation come first. Literals
 * are part of a document, so a client that embeds changing values only evicts the least recently used entries.
 */
export class CompiledOperations {
  readonly #schema: GraphQLSchema;
  readonly #operations = new LRUCache<string, RunOperation | 'seen' | 'never'>({
    max: MAX_ENTRIES,
    maxSize: MAX_BYTES,
    sizeCalculation: (_, key) => 2 * key.length + 1,
  });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The compiled operation, if there is one. */
  find(query: string, operationName: string | null): RunOperation | undefined {
    const operation = this.#operations.get(keyOf(query, operationName));
    return typeof operation === 'function' ? operation : undefined;
  }

  /** Records a document that has just run, and so is valid: it is compiled the second time. */
  add(query: string, operationName: string | null, document: DocumentNode): void {
    if (query.length > MAX_DOCUMENT_LENGTH) return;
    const key = keyOf(query, operationName);
    const known = this.#operations.get(key);
    if (known === undefined) this.#operations.set(key, isCompilable(document, operationName) ? 'seen' : 'never');
    if (known !== 'seen') return;
    const { fields, bytes } = compiledSizeOf(this.#schema, document, operationName);
    const compiled = fields <= MAX_FIELDS ? this.#compile(document, operationName) : undefined;
    if (compiled) this.#operations.set(key, compiled, { size: 2 * key.length + bytes });
    else this.#operations.set(key, 'never');
  }

  #compile(document: DocumentNode, operationName: string | null): RunOperation | undefined {
    const cost = costOf(this.#schema, document, operationName);
    if (typeof cost === 'number' && cost > MAX_COST) return undefined;
    try {
      const compiled: CompiledQuery | ExecutionResult = withoutCodeCache(() =>
        compileQuery(this.#schema, document, operationName ?? undefined, { disablingCapturingStackErrors: true }),
      );
      if (!isCompiledQuery(compiled)) return undefined;
      return (context, variables) =>
        amountFor(cost, variables) > MAX_COST ? undefined : compiled.query(null, context, variables);
    } catch {
      return undefined; // The handler runs what cannot be compiled.
    }
  }
}

/** NUL separates: no valid document contains it. */
function keyOf(query: string, operationName: string | null): string {
  return operationName === null ? query : `${query}\0${operationName}`;
}

/**
 * Queries only, because the handler repeats those that fail. No introspection, which answers from the published schema,
 * and no directives, with which compiled queries order their fields differently.
 */
function isCompilable(document: DocumentNode, operationName: string | null): boolean {
  if (getOperationAST(document, operationName)?.operation !== OperationTypeNode.QUERY) return false;
  let isPlain = true;
  visit(document, {
    Field: ({ name }) => {
      if (name.value === '__schema' || name.value === '__type') isPlain = false;
    },
    Directive: () => {
      isPlain = false;
    },
  });
  return isPlain;
}
