import { type Actor, OPERATOR, readPermission } from '../authorization/index.ts';
import { noKeyWithId } from '../basics/index.ts';
import { namedIssues, presented } from '../changes/index.ts';
import { type ApiKey, NO_USE } from '../key/index.ts';
import { MAX_SELECTED } from '../lists/index.ts';
import { unknownGrantsOf } from '../permissions/index.ts';
import { type KeysService, type KeyState, type OpenService, type Rotated, type RotatedKey } from '../service/index.ts';
import type { Client } from './client.ts';
import { type Operations, operationsOn, type Performed } from './operation.ts';
import { OPERATIONS } from './operations.ts';

/** The client of a store, where commands act as the operator. */
export function storeClient(keys: OpenService): Client {
  const does = asOperator(keys, OPERATIONS);
  const issuedBy = async (ids: readonly string[]) => namedIssues(await keys.issuedBy(ids, OPERATOR));
  const namesOf = (changed: readonly { after: ApiKey }[]) => changed.map(({ after }) => after);
  const chainOf = async (id: string) => {
    const key = await does.apiKey({ id });
    if (!key) throw noKeyWithId(id);
    return (await keys.chainsOf([key]))[0]!;
  };
  return {
    ...does,
    location: keys.location,
    exists: keys.exists,
    revertsAll: true,
    mostAtOnce: MAX_SELECTED,
    pollMs: 250,
    of: ({ operations }) => asOperator(keys, operations) as never,

    permissions: async () => keys.catalog,
    async apiKey(which) {
      const key = await does.apiKey(which);
      return key && stateOf(keys, key);
    },
    async apiKeys(input) {
      const page = await does.apiKeys(input);
      return { keys: await statesOf(keys, page.keys), hasNextPage: page.hasNextPage };
    },
    async apiKeyList(input) {
      const { keys: selected, ...page } = await does.apiKeyList(input);
      return { keys: await statesOf(keys, selected), ...page };
    },
    async updateApiKey(input) {
      const changed = await does.updateApiKey(input);
      return { ...changed, after: await stateOf(keys, changed.after) };
    },
    async setApiKeyEnabled(input) {
      const { before, after } = await does.setApiKeyEnabled(input);
      return { before, after: await stateOf(keys, after), issued: input.enabled ? [] : await issuedBy([input.id]) };
    },
    rotateApiKey: async ({ delivery, ...input }) =>
      rotatedAs(await does.rotateApiKey({ ...input, delivery: delivery && presented(delivery, rotatedAs) })),
    finishApiKeyRotation: async (which) => stateOf(keys, (await does.finishApiKeyRotation(which)).after),
    rollBackApiKeyRotation: async (which) => stateOf(keys, (await does.rollBackApiKeyRotation(which)).after),
    deleteApiKeys: async (input) => ({ keys: await does.deleteApiKeys(input), issued: await issuedBy(input.ids) }),
    narrowApiKeys: async (input) => namesOf(await does.narrowApiKeys(input)),
    updateApiKeys: async (input) => namesOf(await does.updateApiKeys(input)),

    async show(name) {
      const key = await does.apiKey({ name });
      if (!key) return undefined;
      const [chain] = await keys.chainsOf([key]);
      const effectivePermissions = keys.accessOf(chain!).permissions();
      const [state, issued] = [await stateOf(keys, key), await issuedBy([key.id])];
      return { ...state, effectivePermissions, limitedBy: keys.limitsOf(chain!), issued };
    },
    findConfusableNames: (name) => keys.findConfusableNames(name),
    async decide({ id }, text) {
      const permission = readPermission(text, keys.catalog);
      return { ...keys.decide(await chainOf(id), permission), permission };
    },
    /** An expired or disabled key can work again; a replaced secret cannot. */
    async findNameOfWorking(secret) {
      const found = await keys.identify(secret, OPERATOR);
      return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.apiKey.name;
    },

    close: () => keys.close(),
  };
}

/** Operations as the operator. Undefined values are left out. */
function asOperator<Table extends Operations>(keys: KeysService, table: Table): Performed<Table, []> {
  const does = Object.entries(operationsOn(keys, table)) as [string, (input: unknown, actor: Actor) => unknown][];
  const bound = does.map(([name, run]) => [name, (input: object) => run(withoutUndefinedIn(input), OPERATOR)]);
  return Object.fromEntries(bound) as never;
}

function withoutUndefinedIn(input: object): object {
  const isPlain = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, isPlain(value) ? withoutUndefinedIn(value) : value]));
}

function rotatedAs({ key, after, created, disabled, issued }: RotatedKey): Rotated {
  const { rotation: running } = after;
  // Without a grace period, the rotation ended at once, although the delivery of the secret took longer.
  const hasEnded = running?.grace === 0 && running.previousEndsAt !== null;
  const rotation = hasEnded ? { ...running, previousEndsAt: running.startedAt } : running;
  return { key, apiKey: after, rotation, created, disabled, issued: namedIssues(issued) };
}

/** The state of a key by the present rules. @throws KeysError STORE_… */
export async function stateOf(keys: KeysService, key: ApiKey): Promise<KeyState> {
  return (await statesOf(keys, [key]))[0]!;
}

/** The states of keys, in their order. @throws KeysError STORE_… */
export async function statesOf(keys: KeysService, page: readonly ApiKey[]): Promise<KeyState[]> {
  const [chains, use, byPolicy, budgets] = await Promise.all([
    keys.chainsOf(page),
    keys.useOf(page.map(({ id }) => id)),
    keys.disabledByPolicy(page),
    keys.budgetsOf(page),
  ]);
  return chains.map((chain) => {
    const [key] = chain.keys;
    return {
      apiKey: key,
      status: keys.statusOf(chain),
      disabledByPolicy: byPolicy.has(key.id),
      unknownGrants: unknownGrantsOf(key, keys.catalog),
      rotation: keys.rotationOf(key),
      use: use.get(key.id) ?? NO_USE,
      budgets: budgets.get(key.id)!,
    };
  });
}
