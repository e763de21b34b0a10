import type { DocumentNode, GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Amount } from './budget/amount.ts';
import { PreparedOperation } from './prepared-operation.ts';
import { preparedSizeOf } from './prepared-size.ts';

/** The number of operations in the cache, and the memory that they may take, in bytes. */
const MAX_ENTRIES = 1000;
export const MAX_BYTES = 32_000_000;
const MAX_SEEN_BYTES = 4_000_000;
/** Longer documents are not kept. Those with all tokens that they may have are half as long, well indented. */
const MAX_DOCUMENT_LENGTH = 100_000;

/**
 * A cache of operations that were found to be valid. Literals are part of a document, so a client that embeds changing
 * values only evicts the least recently used entries.
 */
export class PreparedOperations {
  readonly #schema: GraphQLSchema;
  readonly #operations = new LRUCache<string, PreparedOperation>({ max: MAX_ENTRIES, maxSize: MAX_BYTES });
  /** What was valid once: most documents that differ each time never come again. */
  readonly #seen = new LRUCache<string, true>({
    max: MAX_ENTRIES,
    maxSize: MAX_SEEN_BYTES,
    sizeCalculation: (_, key) => 2 * key.length + 1,
  });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The prepared operation, if there is one. */
  find(query: string, operationName: string | null): PreparedOperation | undefined {
    return this.#operations.get(keyOf(query, operationName));
  }

  /** Whether an operation was found to be valid before. */
  hasSeen(query: string, operationName: string | null): boolean {
    return this.#seen.has(keyOf(query, operationName));
  }

  /** Prepares an operation that is valid, and keeps it if it was seen before, which is when that is worth it. */
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
      this.#operations.set(key, operation, { size });
    } else this.#seen.set(key, true);
    return operation;
  }
}

/** Tells where the query ends. No valid document begins with a digit. */
function keyOf(query: string, operationName: string | null): string {
  return operationName === null ? query : `${query.length} ${query}${operationName}`;
}
