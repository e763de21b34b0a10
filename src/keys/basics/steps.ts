import { channel } from 'node:diagnostics_channel';
import { setImmediate } from 'node:timers/promises';

/** What the log has of a step at level debug, or of a statement at level trace. It never holds a secret or a digest. */
export interface Step {
  readonly message: string;
  readonly fields: object;
}

/**
 * Where the program publishes what it does, for a log at level debug or trace. Channels belong to the process: no part
 * of the program has to be handed a log for this, and where nobody subscribes, it costs one comparison.
 */
export const STEPS = { debug: channel('svc-api:debug'), trace: channel('svc-api:trace') } as const;

/** Whether steps are logged. */
export const isDebugged = (): boolean => STEPS.debug.hasSubscribers;

/** Whether statements are logged. */
export const isTraced = (): boolean => STEPS.trace.hasSubscribers;

/** Logs a step at level debug. @param fields is called only where it is logged */
export function debug(message: string, fields: () => object): void {
  if (STEPS.debug.hasSubscribers) STEPS.debug.publish({ message, fields: fields() } satisfies Step);
}

/** Logs a statement at level trace, without its values. */
export function trace(sql: string, fields: object): void {
  if (STEPS.trace.hasSubscribers) STEPS.trace.publish({ message: 'statement', fields: { sql, ...fields } });
}

/** Logs a step when it has ended, with how long it took, and its error if it failed. @throws what `work` throws */
export async function debugTimed<Result>(
  message: string,
  work: () => Promise<Result>,
  fields: (result: Result | undefined) => object,
): Promise<Result> {
  if (!isDebugged()) return work();
  const began = performance.now();
  let outcome: { result?: Result; failed?: unknown } = {};
  try {
    outcome.result = await work();
    return outcome.result;
  } catch (error) {
    const { code, name } = error as { code?: unknown; name?: unknown };
    outcome = { failed: code ?? name };
    throw error;
  } finally {
    const { result, ...failed } = outcome;
    debug(message, () => ({ ...fields(result), ...failed, durationMs: millisecondsSince(began) }));
  }
}

/** How long ago something began, in milliseconds with three digits behind the point. */
export function millisecondsSince(began: number): number {
  return Math.round((performance.now() - began) * 1000) / 1000;
}

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

/** What is made of each item, in the same turns. */
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

/** Is told how much was done, again and again, and of how much, where that is known. It is waited for. */
export type ProgressReport = (done: number, total?: number) => Promise<void>;
