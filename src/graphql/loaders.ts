import DataLoader from 'dataloader';
import type { Chain } from '../keys/authorization/chain.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import { NO_USAGE, type UsageTotals, type UsedGrant } from '../keys/key/usage.ts';
import type { KeysService } from '../keys/service.ts';
import type { BudgetedContext } from './context.ts';

/** What is loaded for each key: for all keys of a page at once, and once per request. */
export interface Loaders {
  /** A key with its ancestors. */
  chain: DataLoader<ApiKey, Chain>;
  /** Whether the policy has disabled a key. */
  disabledByPolicy: DataLoader<ApiKey, boolean>;
  /** How often a key was used, by its id. */
  usage: DataLoader<string, UsageTotals>;
  /** The permissions that a key has used, and the roles that it has granted, by its id. */
  usedPermissions: DataLoader<string, readonly UsedGrant[]>;
}

/** How many keys are loaded at a time. */
const BATCH_SIZE = 50;

/** The loaders of each request. */
export function loadersOf(keys: KeysService): (context: BudgetedContext) => Loaders {
  const loaders = new WeakMap<BudgetedContext['budget'], Loaders>();
  return ({ budget }) => {
    let known = loaders.get(budget);
    if (!known) loaders.set(budget, (known = createLoaders(keys, budget)));
    return known;
  };
}

function createLoaders(keys: KeysService, budget: BudgetedContext['budget']): Loaders {
  const batch =
    <Key, Value>(load: (keys: readonly Key[]) => Promise<Value[]>) =>
    async (wanted: readonly Key[]): Promise<Value[]> => {
      budget.check();
      return load(wanted);
    };
  const options = { maxBatchSize: BATCH_SIZE, batchScheduleFn: (load: () => void) => void schedule(load) };
  // After all keys of a page have asked: DataLoader itself waits as long, but leaves no turn to other requests.
  const schedule = (load: () => void) =>
    Promise.resolve().then(() => process.nextTick(() => void budget.nextTurn().then(load, load)));
  return {
    chain: new DataLoader(
      batch((page: readonly ApiKey[]) => keys.chainsOf(page)),
      options,
    ),
    disabledByPolicy: new DataLoader(
      batch(async (page: readonly ApiKey[]) => {
        const found = await keys.disabledByPolicy(page);
        return page.map(({ id }) => found.has(id));
      }),
      options,
    ),
    usage: new DataLoader(
      batch(async (ids: readonly string[]) => {
        const found = await keys.usageOf(ids);
        return ids.map((id) => found.get(id) ?? NO_USAGE);
      }),
      options,
    ),
    usedPermissions: new DataLoader(
      batch(async (ids: readonly string[]) => {
        const found = await keys.usedPermissionsOfAll(ids);
        return ids.map((id) => [...found.get(id)!.keys()]);
      }),
      options,
    ),
  };
}
