/** How many rows one statement names: databases limit their number of parameters. */
const CHUNK_ROWS = 500;

/** Cuts a list into parts that one statement can name. */
export function chunksOf<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / CHUNK_ROWS) }, (_, index) =>
    items.slice(index * CHUNK_ROWS, (index + 1) * CHUNK_ROWS),
  );
}
