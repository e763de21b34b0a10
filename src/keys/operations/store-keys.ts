import { findAnswering, OPERATOR, readPermission, suggestGrants } from '../authorization/index.ts';
import { KeysError, MAX_PAGE_SIZE, mapYielding, withoutUndefined } from '../basics/index.ts';
import { containedAs, type ManyChangeRequest, namedIssues, presented } from '../changes/index.ts';
import { type ApiKey, NO_USAGE } from '../key/index.ts';
import { MAX_SELECTED } from '../lists/index.ts';
import { unknownGrantsOf } from '../permissions/index.ts';
import {
  formatCursor,
  type KeyAdministration,
  type KeysService,
  type KeyState,
  type OpenService,
  type Rotated,
  type RotatedKey,
} from '../service/index.ts';
import {
  type Applied,
  type AppliedKeys,
  type ApplyOperations,
  ENDS_AT_ONCE,
  plannedChanges,
} from '../transfer/index.ts';
import { operationsOn } from './operations.ts';

/** The operations as commands use them on a store, where they act as its operator. */
export function storeKeys(keys: OpenService): KeyAdministration {
  const does = operationsOn(keys);
  const issuedBy = async (ids: readonly string[]) => namedIssues(await keys.containments.issuedBy(ids, OPERATOR));
  const named = (name: string) => does.apiKey({ name }, OPERATOR);
  const chainOf = async (id: string) => {
    const key = await does.apiKey({ id }, OPERATOR);
    if (!key) throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
    return (await keys.chainsOf([key]))[0]!;
  };
  return {
    location: keys.location,
    exists: keys.exists,
    revertsAll: true,
    mostAtOnce: MAX_SELECTED,
    pollMs: 250,

    consents: {
      list: (first) => does.consentRequests({ first }, OPERATOR),
      find: (place) => does.consentRequest({ place }, OPERATOR),
      approve: (userCode, choice) => does.approveConsentRequest({ userCode, choice }, OPERATOR),
      deny: (place) => does.denyConsentRequest({ place }, OPERATOR),
    },
    containments: {
      plan: async (request) => containedAs(await does.containKey({ ...request, dryRun: true }, OPERATOR)),
      contain: async (request) => containedAs(await does.containKey(request, OPERATOR)),
    },
    declarations: declarationsOf(does),

    catalog: async () => does.permissions({}, OPERATOR),

    async find(name) {
      const key = await named(name);
      return key && stateOf(keys, key);
    },
    async show(name) {
      const key = await named(name);
      if (!key) return undefined;
      const [chain] = await keys.chainsOf([key]);
      const effectivePermissions = keys.accessOf(chain!).permissions();
      const [state, issued] = [await stateOf(keys, key), await issuedBy([key.id])];
      return { ...state, effectivePermissions, limitedBy: keys.limitsOf(chain!), issued };
    },
    async list(query) {
      const page = await does.apiKeys({ query: withoutUndefined(query) }, OPERATOR);
      return { keys: await statesOf(keys, page.keys), hasNextPage: page.hasNextPage };
    },
    async *review() {
      for (let after: string | undefined; ;) {
        const query = { first: MAX_PAGE_SIZE, ...(after !== undefined && { after }) };
        const page = await does.apiKeys({ query }, OPERATOR);
        const chains = await keys.chainsOf(page.keys);
        const states = await statesOf(keys, page.keys);
        yield mapYielding(states.entries(), ([index, state]) => {
          const chain = chains[index]!;
          return {
            ...state,
            effectivePermissions: keys.accessOf(chain).permissions(),
            answering: findAnswering(chain)?.answering ?? null,
            creator: chain.keys[1]?.name ?? null,
          };
        });
        if (!page.hasNextPage) return;
        after = formatCursor(page.keys.at(-1)!);
      }
    },
    attest: (input) => does.attestReview({ input }, OPERATOR),
    async select(query) {
      const { keys: selected, ...page } = await does.apiKeyList({ query }, OPERATOR);
      return { keys: await statesOf(keys, selected), ...page };
    },

    findConfusableNames: (name) => keys.findConfusableNames(name),
    preview: (input) => does.previewApiKey({ input: withoutUndefined(input) }, OPERATOR),
    create: (input, delivery) =>
      does.createApiKey(withoutUndefined({ input: withoutUndefined(input), delivery }), OPERATOR),
    async update({ id }, change) {
      const changed = await does.updateApiKey({ id, change: withoutUndefined(change) }, OPERATOR);
      return { ...changed, after: await stateOf(keys, changed.after) };
    },
    async setEnabled({ id }, enabled) {
      const { before, after } = await does.setApiKeyEnabled({ id, enabled }, OPERATOR);
      return { before, after: await stateOf(keys, after), issued: enabled ? [] : await issuedBy([id]) };
    },
    async rotate({ id }, request, delivery) {
      const input = { id, request: withoutUndefined(request), delivery: presented(delivery, rotatedAs) };
      return rotatedAs(await does.rotateApiKey(input, OPERATOR));
    },
    planMany: (ids, request) => does.apiKeyChangePlan({ ids, request: givenIn(request) }, OPERATOR),
    async changeMany(ids, request) {
      const change = request.what === 'UPDATE' ? does.updateApiKeys : does.narrowApiKeys;
      return (await change({ ids, request: givenIn(request) }, OPERATOR)).map(({ after }) => after);
    },
    finishRotation: async (id) => stateOf(keys, (await does.finishApiKeyRotation({ id }, OPERATOR)).after),
    rollBackRotation: async (id) => stateOf(keys, (await does.rollBackApiKeyRotation({ id }, OPERATOR)).after),
    delete: async (ids) => ({ keys: await does.deleteApiKeys({ ids }, OPERATOR), issued: await issuedBy(ids) }),

    async decide({ id }, text) {
      const permission = readPermission(text, keys.catalog);
      return { ...keys.decide(await chainOf(id), permission), permission };
    },
    async suggest({ id }) {
      const used = await keys.usage.usedPermissionsOf(id);
      return suggestGrants(await chainOf(id), used, keys.catalog);
    },
    usageOf: ({ id }, request) => keys.usage.byPeriod(id, withoutUndefined(request)),
    /** A key that is expired or disabled can come back; a secret that a newer one replaced cannot. */
    async findNameOfWorking(secret) {
      const found = await keys.identify(secret, OPERATOR);
      return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.apiKey.name;
    },
    edges: () => does.edges({}, OPERATOR),
    auditLog: (request, place = {}) =>
      does.auditLog({ request: withoutUndefined(request), place: withoutUndefined(place) }, OPERATOR),

    close: () => keys.close(),
  };
}

/** Brings the keys of a store to what is declared. */
function declarationsOf(does: ReturnType<typeof operationsOn>): ApplyOperations {
  return {
    plan: async (declared, rules) =>
      plannedChanges((await does.applyApiKeys({ declared, rules, dryRun: true }, OPERATOR)).plan),
    apply: async (declared, rules, delivery) =>
      appliedAs(await does.applyApiKeys({ declared, rules, delivery: presented(delivery, appliedAs) }, OPERATOR)),
    async revert(id, action) {
      if (action === 'CREATE') await does.deleteApiKeys({ ids: [id] }, OPERATOR);
      else if (action === 'ROTATE') await does.rollBackApiKeyRotation({ id }, OPERATOR);
      else if (action === 'RENEW') await does.updateApiKey({ id, change: ENDS_AT_ONCE }, OPERATOR);
    },
  };
}

function appliedAs({ plan, created, rotated }: AppliedKeys): Applied {
  const added = created.map(({ apiKey }) => apiKey);
  return { ...plannedChanges(plan, added), created, rotated };
}

function rotatedAs({ key, after, created, disabled, issued }: RotatedKey): Rotated {
  return { key, apiKey: after, rotation: after.rotation, created, disabled, issued: namedIssues(issued) };
}

/** A change of many keys without fields that are undefined. */
function givenIn<Request extends ManyChangeRequest>(request: Request): Request {
  return { ...request, change: request.change && withoutUndefined(request.change) };
}

/** The state of a key, by the rules as they are now. @throws KeysError STORE_… */
export async function stateOf(keys: KeysService, key: ApiKey): Promise<KeyState> {
  return (await statesOf(keys, [key]))[0]!;
}

async function statesOf(keys: KeysService, page: readonly ApiKey[]): Promise<KeyState[]> {
  const [chains, usage, byPolicy, budgets] = await Promise.all([
    keys.chainsOf(page),
    keys.usage.usageOf(page.map(({ id }) => id)),
    keys.unusedKeys.disabledByPolicy(page),
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
      usage: usage.get(key.id) ?? NO_USAGE,
      budgets: budgets.get(key.id)!,
    };
  });
}
