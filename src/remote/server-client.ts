import { type Client, type RemoteOperations, type Server, type ServerRequest } from '../keys/operations/index.ts';
import { formatCursor, type KeyState } from '../keys/service/index.ts';
import { readAuditRequest } from '../keys/audit/index.ts';
import {
  assertValid,
  DEFAULT_PAGE_SIZE,
  formatTime,
  KeysError,
  MAX_PAGE_SIZE,
  noKeyWithId,
} from '../keys/basics/index.ts';
import { type KeyChange, type NewKey, readRotation, validateChange, validateNewKey } from '../keys/key/index.ts';
import { type KeyFilters, readFieldFilters, readRoles, readStatus } from '../keys/lists/index.ts';
import { type Catalog, createCatalog } from '../keys/permissions/index.ts';
import { ServerConnection, type ServerOptions } from './connection.ts';
import { deliver } from './deliver.ts';
import { changeInput } from './inputs.ts';
import { REQUESTS } from './requests.ts';

/** Keys at a time. At twice as many, some plugin fields would exceed the cost limit of a request with a filter. */
const PAGE_KEYS = 100;

/**
 * The client of a running server, over its GraphQL, as the key that is sent. The rules run on the server; input is
 * converted to the schema's form here.
 */
export function serverClient(options: ServerOptions): Client {
  const connection = new ServerConnection(options);
  let known: Promise<Catalog> | undefined;
  const permissions = () => (known ??= connection.ask(REQUESTS.permissions, {}));
  const filtersIn = async (filters: KeyFilters) => {
    const { search, roles, status, createdBy, expiresBefore, unusedSince } = filters;
    return {
      search: search ?? undefined,
      roles: roles ? readRoles(roles, await permissions()) : undefined,
      status: status == null ? undefined : readStatus(status),
      ...readFieldFilters(filters),
      createdBy: createdBy ?? undefined,
      expiresBefore: expiresBefore ?? undefined,
      unusedSince: unusedSince ?? undefined,
    };
  };
  /** A change of keys as input of the schema. @throws ValidationError */
  const changeIn = async (change: KeyChange) => {
    const grantable = (change.roles ?? change.permissions) ? await permissions() : createCatalog();
    assertValid(validateChange(change, grantable, Date.now()));
    return changeInput(change, grantable);
  };
  /** A new key as input of the schema. @throws ValidationError */
  const newKeyIn = async (input: NewKey) => {
    const grantable = await permissions();
    assertValid(validateNewKey(input, grantable, Date.now()));
    return newKeyInput(input, grantable);
  };
  const setEnabled = async (id: string, enabled: boolean) => {
    if (enabled) return { after: await connection.ask(REQUESTS.enable, { id, enabled }), issued: [] };
    const { issued, ...after } = await connection.ask(REQUESTS.disable, { id, enabled });
    return { after, issued };
  };
  const server: Server = {
    ask: (request: ServerRequest<unknown> | string, variables?: object) =>
      connection.ask(typeof request === 'string' ? documentOf(request) : request, variables ?? {}) as never,
    permissions,
  };
  const client: Client = {
    location: options.server,
    exists: true,
    revertsAll: false,
    mostAtOnce: MAX_PAGE_SIZE,
    pollMs: 1000,
    of: ({ operations, remote }) =>
      askedBy(Object.keys(operations), server, remote as () => Promise<RemoteOperations>) as never,

    permissions,
    apiKey: (which) => connection.ask(REQUESTS.apiKey, which),
    async apiKeys({ query: { first, after, ...query } }) {
      const filters = await filtersIn(query);
      const keys: KeyState[] = [];
      const wanted = first ?? DEFAULT_PAGE_SIZE;
      for (let cursor = after ?? undefined; ;) {
        const variables = { ...filters, first: Math.min(wanted - keys.length, PAGE_KEYS), after: cursor };
        const page = await connection.ask(REQUESTS.apiKeys, variables);
        keys.push(...page.keys);
        const last = page.keys.at(-1);
        if (!page.hasNextPage || !last || keys.length >= wanted) return { keys, hasNextPage: page.hasNextPage };
        cursor = formatCursor(last.apiKey);
      }
    },
    async apiKeyList({ query: { first, offset, sort, descending, ...query } }) {
      const filters = await filtersIn(query);
      const found: KeyState[] = [];
      for (;;) {
        const place = { first: Math.min(first - found.length, PAGE_KEYS), offset: offset + found.length };
        const page = await connection.ask(REQUESTS.apiKeyList, { ...filters, ...place, sort, descending });
        found.push(...page.keys);
        if (page.keys.length < place.first || found.length >= first) return { ...page, keys: found };
      }
    },
    async previewApiKey({ input }) {
      const planned = await connection.ask(REQUESTS.previewApiKey, { input: await newKeyIn(input) });
      return { ...planned, confusable: [] };
    },

    async createApiKey({ input, delivery }) {
      const variables = { input: await newKeyIn(input) };
      delivery?.begin?.();
      const created = { ...(await connection.ask(REQUESTS.createApiKey, variables)), confusable: [] };
      const { id, name } = created.apiKey;
      await deliver(created, delivery, `The secret of the new API key "${name}"`, async () => {
        await client.deleteApiKeys({ ids: [id] });
      });
      return created;
    },
    async updateApiKey({ id, change }) {
      const after = await connection.ask(REQUESTS.updateApiKey, { input: { id, ...(await changeIn(change)) } });
      return { after, confusable: [] };
    },
    setApiKeyEnabled: ({ id, enabled }) => setEnabled(id, enabled),
    /** The previous secret works at least until the new one was delivered. */
    async rotateApiKey({ id, request, delivery }) {
      const { issues, activate, disableSince } = readRotation(request, Date.now());
      assertValid(issues);
      const { grace, disableCreated, createdSince } = request;
      const since = createdSince == null || disableSince === null ? undefined : formatTime(disableSince);
      const input = { id, grace, activate: 'ON_FIRST_USE', disableCreated, createdSince: since };
      delivery?.begin?.();
      const { apiKey: state, ...secrets } = await connection.ask(REQUESTS.rotateApiKey, { input });
      const rotated = { ...secrets, apiKey: state.apiKey, rotation: state.rotation };
      // A previous secret cannot change keys: if the key has rotated itself, continue with the new one.
      const isOwn = connection.isSent(rotated.rotation?.previousPublicId ?? '');
      const next = isOwn ? connection.withKey(rotated.key) : connection;
      await deliver(rotated, delivery, `The new secret of the API key "${rotated.apiKey.name}"`, async () => {
        await next.ask(REQUESTS.rollBackApiKeyRotation, { id });
        for (const key of rotated.disabled) await setEnabled(key.id, true);
      });
      if (activate !== 'NOW' || !rotated.rotation) return rotated;
      const { apiKey, rotation } = await next.ask(REQUESTS.activateApiKeyRotation, { id });
      // A rotation without a grace period has ended, and is not in the answer.
      const { startedAt } = rotated.rotation;
      return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation, previousEndsAt: startedAt } };
    },
    finishApiKeyRotation: (which) => connection.ask(REQUESTS.finishApiKeyRotation, which),
    rollBackApiKeyRotation: (which) => connection.ask(REQUESTS.rollBackApiKeyRotation, which),
    deleteApiKeys: (which) => connection.ask(REQUESTS.deleteApiKeys, which),

    async apiKeyChangePlan({ ids, request: { what, expiresAt, change } }) {
      const update = change && (await changeIn(change));
      return connection.ask(REQUESTS.apiKeyChangePlan, { ids, change: what, expiresAt, update });
    },
    narrowApiKeys: ({ ids, request: { expiresAt } }) =>
      connection.ask(REQUESTS.narrowApiKeys, { input: { ids, expiresAt } }),
    updateApiKeys: async ({ ids, request: { change } }) =>
      connection.ask(REQUESTS.updateApiKeys, { ids, update: await changeIn(change!) }),
    async auditLog({ request, place = {} }) {
      const { limit, since, until, ...filter } = readAuditRequest(request, Date.now());
      return connection.ask(REQUESTS.auditLog, {
        ...filter,
        first: limit,
        since: since === undefined ? undefined : formatTime(since),
        until: until === undefined ? undefined : formatTime(until),
        beforeNumber: place.before,
        afterNumber: place.after,
      });
    },

    show: async (name) => (await connection.ask(REQUESTS.show, { name })) ?? undefined,
    /** A server refuses confusable names of keys itself. */
    findConfusableNames: async () => [],
    decide: async ({ id }, permission) => found(await connection.ask(REQUESTS.decide, { id, permission }), id),
    /** There is nothing to close. */
    close: async () => {},
  };
  return client;
}

/** Operations of a feature, as requests to a server. */
function askedBy(names: readonly string[], server: Server, remote?: () => Promise<RemoteOperations>) {
  const asked = names.map((name) => [
    name,
    async (input: never) => {
      const ask = (await remote?.())?.[name];
      if (ask) return ask(server, input);
      throw new KeysError(
        'STORE_REQUIRED',
        `"${name}" cannot be done on a server. Run the command on the machine with the store.`,
      );
    },
  ]);
  return Object.fromEntries(asked) as object;
}

/** The request for a document, whose answer the caller reads. */
function documentOf(text: string): ServerRequest<unknown> {
  return { documentFor: () => text, read: (data) => data };
}

/** A key that existed a moment ago. @throws KeysError NOT_FOUND */
function found<Key>(data: Key | null, id: string): Key {
  if (data !== null) return data;
  throw noKeyWithId(id);
}

/** A new key as input of the schema. Its values are valid. */
function newKeyInput({ name, overwrite, ...input }: NewKey, catalog: Catalog) {
  return { name, ...changeInput(input, catalog), overwrite };
}
