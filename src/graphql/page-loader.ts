import DataLoader from 'dataloader';
import type { Chain } from '../keys/authorization/index.ts';
import { madeOnce } from '../keys/basics/index.ts';
import type { ApiKey } from '../keys/key/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { BudgetedContext } from './context.ts';

/** How many keys are loaded at a time. */
const BATCH_SIZE = 50;

/** A loader for one request. It loads data for all keys of a page at once. */
export function pageLoader<Key, Value>(
  budget: BudgetedContext['budget'],
  load: (wanted: readonly Key[]) => Promise<Value[]>,
): DataLoader<Key, Value> {
  // Waits until all keys of a page have asked, like DataLoader itself, but gives other requests a turn.
  const schedule = (start: () => void) =>
    Promise.resolve().then(() => process.nextTick(() => void budget.yieldToEventLoop().then(start, start)));
  return new DataLoader<Key, Value>(
    async (wanted) => {
      budget.check();
      return load(wanted);
    },
    { maxBatchSize: BATCH_SIZE, batchScheduleFn: (start) => void schedule(start) },
  );
}

/** Uses a key with its parents, without waiting if possible: a promise for each key of a page is expensive. */
export type WithChain = <Result>(
  key: ApiKey,
  context: BudgetedContext,
  use: (chain: Chain) => Result,
) => Result | Promise<Awaited<Result>>;

/** Loads the parents of keys, once per request. */
export const chainsFor = madeOnce((keys: KeysService): WithChain => {
  const loaderOf = madeOnce((budget: BudgetedContext['budget']) =>
    pageLoader(budget, (page: readonly ApiKey[]) => keys.chainsOf(page)),
  );
  return (key, { principal, budget }, use) => {
    if (key === principal.apiKey) return use(principal.chain);
    if (key.createdBy === null) return use({ keys: [key], isComplete: true });
    return loaderOf(budget)
      .load(key)
      .then((chain) => budget.runYielding(() => use(chain))) as Promise<Awaited<ReturnType<typeof use>>>;
  };
});
