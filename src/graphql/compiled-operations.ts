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
import type { GraphQLContext } from './context.ts';

/** Runs an operation; its result may be a promise, and may hold errors. */
export type RunOperation = (
  context: GraphQLContext,
  variables: Record<string, unknown> | null,
) => ExecutionResult | Promise<ExecutionResult>;

/** How many documents are kept, and how many characters all of them together may have. */
const MAX_ENTRIES = 1000;
const MAX_CHARACTERS = 4_000_000;
/** Documents that are longer are never kept: they take longer to run than to validate. */
const MAX_DOCUMENT_LENGTH = 20_000;

/**
 * Queries that were found valid, compiled when they are seen again. What makes a document large or forbidden is found out
 * before it gets here; literals are part of a document, so that a client that puts values into it fills this in vain, and
 * pushes out what was not used for the longest time.
 */
export class CompiledOperations {
  readonly #schema: GraphQLSchema;
  readonly #operations = new LRUCache<string, RunOperation | 'seen' | 'never'>({
    max: MAX_ENTRIES,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_, key) => key.length + 1,
  });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The operation, if it was seen often enough to be compiled. */
  find(query: string, operationName: string | null): RunOperation | undefined {
    const operation = this.#operations.get(keyOf(query, operationName));
    return typeof operation === 'function' ? operation : undefined;
  }

  /** Takes a document that has just run, and so is valid: notes it the first time, compiles it the second. */
  add(query: string, operationName: string | null, document: DocumentNode): void {
    if (query.length > MAX_DOCUMENT_LENGTH) return;
    const key = keyOf(query, operationName);
    const known = this.#operations.get(key);
    if (known === undefined) this.#operations.set(key, isCompilable(document, operationName) ? 'seen' : 'never');
    if (known === 'seen') this.#operations.set(key, this.#compile(document, operationName) ?? 'never');
  }

  #compile(document: DocumentNode, operationName: string | null): RunOperation | undefined {
    try {
      const compiled: CompiledQuery | ExecutionResult = compileQuery(
        this.#schema,
        document,
        operationName ?? undefined,
        {
          disablingCapturingStackErrors: true,
        },
      );
      return isCompiledQuery(compiled) ? (context, variables) => compiled.query(null, context, variables) : undefined;
    } catch {
      return undefined; // What it does not know is left to the handler.
    }
  }
}

/** A NUL is in no valid document. */
function keyOf(query: string, operationName: string | null): string {
  return operationName === null ? query : `${query}\0${operationName}`;
}

/**
 * Queries only: what fails is run again by the handler. None that asks for the schema, which is published in another form, and
 * none with directives, with which a compiled query puts its fields in another order.
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
