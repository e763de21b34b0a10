import { setImmediate } from 'node:timers/promises';

/**
 * Gives the event loop a turn. Requests that arrived are handled and answered within it; work that continued in the
 * same turn would delay the answers.
 */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate();
  await setImmediate();
  lastYield = performance.now();
}

/** The longest time that work runs between two turns, in milliseconds. */
const MAX_SLICE_MS = 5;
/** The time of the last known turn. It is shared, as work on several lists in a row counts as one. */
let lastYield = 0;

/** The items, one after another, with a turn of the event loop whenever 5 ms have passed. */
export async function* yielding<Item>(items: Iterable<Item>): AsyncGenerator<Item, undefined> {
  let isFirst = true;
  for (const item of items) {
    if (!isFirst && performance.now() - lastYield >= MAX_SLICE_MS) await yieldToEventLoop();
    isFirst = false;
    yield item;
  }
}

/** Maps each item, with the same turns. */
export async function mapYielding<Item, Result>(
  items: Iterable<Item>,
  make: (item: Item) => Result,
): Promise<Result[]> {
  const made: Result[] = [];
  for await (const item of yielding(items)) made.push(make(item));
  return made;
}

/** The number of items sorted at once, in about a millisecond. */
const MAX_SORTED = 1000;

/** Sorts a list, with turns of the event loop if it is long. */
export async function sortYielding<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Promise<Item[]> {
  if (items.length <= MAX_SORTED) return items.toSorted(compare);
  const middle = Math.ceil(items.length / 2);
  const low = await sortYielding(items.slice(0, middle), compare);
  const high = await sortYielding(items.slice(middle), compare);
  await yieldToEventLoop();
  // `toSorted` merges two sorted runs in one pass.
  return [...low, ...high].toSorted(compare);
}
