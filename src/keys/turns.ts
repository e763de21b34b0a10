import { setImmediate } from 'node:timers/promises';

/** How long work goes on before others get a turn, in milliseconds. */
const MAX_TURN_MS = 10;

/** The items, one after another, with a turn of the event loop for others whenever 10 ms have passed. */
export async function* inTurns<Item>(items: Iterable<Item>): AsyncGenerator<Item> {
  let began = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - began < MAX_TURN_MS) continue;
    await setImmediate();
    began = performance.now();
  }
}
