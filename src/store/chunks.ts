/** Databases limit the number of parameters in a statement. */
const CHUNK_ROWS = 500;

/** Splits a list into chunks small enough for one statement. */
export function chunksOf<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / CHUNK_ROWS) }, (_, index) =>
    items.slice(index * CHUNK_ROWS, (index + 1) * CHUNK_ROWS),
  );
}
