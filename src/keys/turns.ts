import { setImmediate } from 'node:timers/promises';

/**
 * Lets others have a turn of the event loop. What arrived meanwhile is handled in one turn, and sent by its end: work
 * that went on in that very turn would delay it.
 */
export async function nextTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** How long work goes on before others get a turn, in milliseconds. */
const MAX_TURN_MS = 10;

/** The items, one after another, with a turn of the event loop for others whenever 10 ms have passed. */
export async function* inTurns<Item>(items: Iterable<Item>): AsyncGenerator<Item> {
  let began = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - began < MAX_TURN_MS) continue;
    await nextTurn();
    began = performance.now();
  }
}

/** How many items are sorted at once: in about a millisecond. */
const MAX_SORTED = 1000;

/** Sorts a list, with turns of the event loop for others where it is long. */
export async function sortInTurns<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Promise<Item[]> {
  if (items.length <= MAX_SORTED) return items.toSorted(compare);
  const middle = Math.ceil(items.length / 2);
  const low = await sortInTurns(items.slice(0, middle), compare);
  const high = await sortInTurns(items.slice(middle), compare);
  await nextTurn();
  // Two runs that are sorted are merged in one pass.
  return [...low, ...high].toSorted(compare);
}
