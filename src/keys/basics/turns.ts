import { setImmediate } from 'node:timers/promises';

/**
 * Lets others have a turn of the event loop. What arrived meanwhile is handled in one turn, and sent by its end: work
 * that went on in that very turn would delay it.
 */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate();
  await setImmediate();
  lastYield = performance.now();
}

/** How long work goes on before others get a turn, in milliseconds. */
const MAX_SLICE_MS = 5;
/** When others had a turn, as far as is known: one list after another is the same work. */
let lastYield = 0;

/** The items, one after another, with a turn of the event loop for others between two whenever 5 ms have passed. */
export async function* yielding<Item>(items: Iterable<Item>): AsyncGenerator<Item, undefined> {
  let isFirst = true;
  for (const item of items) {
    if (!isFirst && performance.now() - lastYield >= MAX_SLICE_MS) await yieldToEventLoop();
    isFirst = false;
    yield item;
  }
}

/** Maps each item, in the same turns. */
export async function mapYielding<Item, Result>(
  items: Iterable<Item>,
  make: (item: Item) => Result,
): Promise<Result[]> {
  const made: Result[] = [];
  for await (const item of yielding(items)) made.push(make(item));
  return made;
}

/** How many items are sorted at once: in about a millisecond. */
const MAX_SORTED = 1000;

/** Sorts a list, with turns of the event loop for others where it is long. */
export async function sortYielding<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Promise<Item[]> {
  if (items.length <= MAX_SORTED) return items.toSorted(compare);
  const middle = Math.ceil(items.length / 2);
  const low = await sortYielding(items.slice(0, middle), compare);
  const high = await sortYielding(items.slice(middle), compare);
  await yieldToEventLoop();
  // Two runs that are sorted are merged in one pass.
  return [...low, ...high].toSorted(compare);
}
