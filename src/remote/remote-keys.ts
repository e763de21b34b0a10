import { type Applied, formatCursor, type KeyAdministration, type KeyState } from '../keys/service/index.ts';
import {
  type ApplyOperations,
  type ApplyRules,
  type DeclaredKey,
  ENDS_AT_ONCE,
  plannedCreation,
} from '../keys/transfer/index.ts';
import { readAuditRequest } from '../keys/audit/index.ts';
import {
  type ContainmentOperations,
  type ContainRequest,
  readAttestation,
  type SecretDelivery,
} from '../keys/changes/index.ts';
import { type ConsentOperations, validateChosen } from '../keys/consent/index.ts';
import {
  assertValid,
  DEFAULT_PAGE_SIZE,
  formatTime,
  isKeysError,
  KeysError,
  MAX_PAGE_SIZE,
  readDate,
  requirePastTime,
} from '../keys/basics/index.ts';
import {
  type KeyChange,
  type KeyFields,
  type NewKey,
  type PlannedChange,
  readRotation,
  readUsageRequest,
  validateChange,
  validateExpiry,
  validateNewKey,
} from '../keys/key/index.ts';
import { type KeyFilters, readFieldFilters, readRoles, readStatus } from '../keys/lists/index.ts';
import {
  type Catalog,
  createCatalog,
  parsePermissions,
  parseRoles,
  type Permission,
  splitPermission,
} from '../keys/permissions/index.ts';
import { ServerConnection, type ServerOptions } from './connection.ts';
import { plannedIn, REQUESTS } from './requests.ts';
import { mapRequest } from './shape.ts';

/** More keys at a time would cost more than a request may. */
const PAGE_KEYS = 200;
/** The same of keys with all that they may do. */
const REVIEWED_KEYS = 100;

/**
 * What commands do with the keys of a running server, over its GraphQL, as the key that they send. The rules run on the
 * server; here, what was typed is brought into the form of the schema.
 */
export function remoteKeys(options: ServerOptions): KeyAdministration {
  const connection = new ServerConnection(options);
  let known: Promise<Catalog> | undefined;
  const catalog = () => (known ??= connection.ask(REQUESTS.catalog, {}));
  const filtersIn = async (filters: KeyFilters) => {
    const { search, roles, status, createdBy, expiresBefore, unusedSince } = filters;
    return {
      search: search ?? undefined,
      roles: roles ? readRoles(roles, await catalog()) : undefined,
      status: status == null ? undefined : readStatus(status),
      ...readFieldFilters(filters),
      createdBy: createdBy ?? undefined,
      expiresBefore: expiresBefore ?? undefined,
      unusedSince: unusedSince ?? undefined,
    };
  };
  /** A change of keys as the schema takes it. @throws ValidationError */
  const changeIn = async (change: KeyChange) => {
    const grantable = (change.roles ?? change.permissions) ? await catalog() : createCatalog();
    assertValid(validateChange(change, grantable, Date.now()));
    return changeInput(change, grantable);
  };
  /** A new key as the schema takes it. @throws ValidationError */
  const newKeyIn = async (input: NewKey) => {
    const grantable = await catalog();
    assertValid(validateNewKey(input, grantable, Date.now()));
    return newKeyInput(input, grantable);
  };
  const deleteKeys = (ids: readonly string[]) => connection.ask(REQUESTS.delete, { ids });
  return {
    location: options.server,
    exists: true,
    revertsAll: false,
    mostAtOnce: MAX_PAGE_SIZE,
    pollMs: 1000,
    consents: consentsOf(connection, catalog),
    containments: containmentsOf(connection),
    declarations: declarationsOf(connection),
    catalog,

    find: async (name) => (await connection.ask(REQUESTS.find, { name })) ?? undefined,

    show: async (name) => (await connection.ask(REQUESTS.show, { name })) ?? undefined,

    async list({ first, after, ...query }) {
      const filters = await filtersIn(query);
      const keys: KeyState[] = [];
      const wanted = first ?? DEFAULT_PAGE_SIZE;
      for (let cursor = after ?? undefined; ;) {
        const variables = { ...filters, first: Math.min(wanted - keys.length, PAGE_KEYS), after: cursor };
        const page = await connection.ask(REQUESTS.list, variables);
        keys.push(...page.keys);
        const last = page.keys.at(-1);
        if (!page.hasNextPage || !last || keys.length >= wanted) return { keys, hasNextPage: page.hasNextPage };
        cursor = formatCursor(last.apiKey);
      }
    },

    async *review() {
      for (let after: string | undefined; ;) {
        const { keys, hasNextPage } = await connection.ask(REQUESTS.review, { first: REVIEWED_KEYS, after });
        yield keys;
        const last = keys.at(-1);
        if (!hasNextPage || !last) return;
        after = formatCursor(last.apiKey);
      }
    },

    attest: async (input) => void (await connection.ask(REQUESTS.attest, { input: readAttestation(input) })),

    async select({ first, offset, sort, descending, ...query }) {
      const filters = await filtersIn(query);
      const found: KeyState[] = [];
      for (;;) {
        const place = { first: Math.min(first - found.length, PAGE_KEYS), offset: offset + found.length };
        const page = await connection.ask(REQUESTS.select, { ...filters, ...place, sort, descending });
        found.push(...page.keys);
        if (page.keys.length < place.first || found.length >= first) return { ...page, keys: found };
      }
    },

    /** None: a server refuses such names. */
    findConfusableNames: async () => [],

    async preview(input) {
      const planned = await connection.ask(REQUESTS.preview, { input: await newKeyIn(input) });
      return { ...planned, confusable: [] };
    },

    decide: async ({ id }, permission) => found(await connection.ask(REQUESTS.decide, { id, permission }), id),

    suggest: async ({ id }) => found(await connection.ask(REQUESTS.suggest, { id }), id),

    async usageOf({ id }, request) {
      const range = readUsageRequest(request, Date.now());
      const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
      return { ...range, periods: found(await connection.ask(REQUESTS.usageOf, variables), id) };
    },

    edges: () => connection.ask(REQUESTS.edges, {}),

    async auditLog(request, { before, after } = {}) {
      const { limit, since, until, ...filter } = readAuditRequest(request, Date.now());
      const variables = {
        ...filter,
        first: limit,
        since: since === undefined ? undefined : formatTime(since),
        until: until === undefined ? undefined : formatTime(until),
        beforeNumber: before,
        afterNumber: after,
      };
      return connection.ask(REQUESTS.auditLog, variables);
    },

    async create(input, delivery) {
      const variables = { input: await newKeyIn(input) };
      delivery?.begin?.();
      const created = { ...(await connection.ask(REQUESTS.create, variables)), confusable: [] };
      const what = `The secret of the new API key "${created.apiKey.name}"`;
      await deliver(created, delivery, what, async () => void (await deleteKeys([created.apiKey.id])));
      return created;
    },

    async update(before, change) {
      const variables = { input: { id: before.id, ...(await changeIn(change)) } };
      const after = await connection.ask(REQUESTS.update, variables);
      return { before, after, confusable: [] };
    },

    setEnabled: (before, enabled) => setEnabled(connection, before, enabled),

    /** The previous secret works at least until the new one was delivered. */
    async rotate(before, request, delivery) {
      const { id, publicId } = before;
      const { issues, activate, disableSince } = readRotation(request, Date.now());
      assertValid(issues);
      const { grace, disableCreated, createdSince } = request;
      const since = createdSince == null || disableSince === null ? undefined : formatTime(disableSince);
      const input = { id, grace, activate: 'ON_FIRST_USE', disableCreated, createdSince: since } as const;
      delivery.begin?.();
      const { apiKey: state, ...secrets } = await connection.ask(REQUESTS.rotate, { input });
      const rotated = { ...secrets, apiKey: state.apiKey, rotation: state.rotation };
      // A previous secret changes no keys: where the key has rotated itself, it goes on with the new one.
      const next = connection.isSent(publicId) ? connection.withKey(rotated.key) : connection;
      await deliver(rotated, delivery, `The new secret of the API key "${before.name}"`, async () => {
        await next.ask(REQUESTS.rollBackRotation, { id });
        for (const key of rotated.disabled) await setEnabled(connection, key, true);
      });
      if (activate !== 'NOW') return rotated;
      const { apiKey, rotation } = await next.ask(REQUESTS.activateRotation, { id });
      // One without a grace is over, and is not told any more.
      const { startedAt } = rotated.rotation!;
      return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation!, previousEndsAt: startedAt } };
    },

    finishRotation: (id) => connection.ask(REQUESTS.finishRotation, { id }),

    rollBackRotation: (id) => connection.ask(REQUESTS.rollBackRotation, { id }),

    async planMany(ids, { what, expiresAt, change }) {
      const update = change && (await changeIn(change));
      return connection.ask(REQUESTS.planMany, { ids, change: what, expiresAt, update });
    },

    async changeMany(ids, { what, expiresAt, change }) {
      if (what === 'UPDATE') return connection.ask(REQUESTS.updateMany, { ids, update: await changeIn(change!) });
      return connection.ask(REQUESTS.narrowMany, { input: { ids, expiresAt } });
    },

    delete: deleteKeys,

    /** Nothing is kept open. */
    close: async () => {},
  };
}

async function setEnabled(connection: ServerConnection, before: KeyFields, enabled: boolean) {
  const { id } = before;
  if (enabled) return { before, after: await connection.ask(REQUESTS.enable, { id, enabled }), issued: [] };
  const { issued, ...after } = await connection.ask(REQUESTS.disable, { id, enabled });
  return { before, after, issued };
}

/** What commands do about applications that ask a server for keys. */
function consentsOf(connection: ServerConnection, findCatalog: () => Promise<Catalog>): ConsentOperations {
  return {
    list: (first) => connection.ask(REQUESTS.consents, { first }),
    find: (place) => connection.ask(REQUESTS.consent, place),
    async approve(userCode, choice) {
      const isNarrowed = (choice.roles ?? choice.permissions) !== undefined;
      const catalog = isNarrowed ? await findCatalog() : createCatalog();
      if (isNarrowed) assertValid(validateChosen(choice, catalog));
      assertValid(validateExpiry(choice, Date.now()));
      return connection.ask(REQUESTS.approve, { input: { userCode, ...changeInput(choice, catalog) } });
    },
    deny: (place) => connection.ask(REQUESTS.deny, place),
  };
}

/** What commands undo of what keys of a server did to others. */
function containmentsOf(connection: ServerConnection): ContainmentOperations {
  const contain = async ({ key, since }: ContainRequest, dryRun: boolean) => {
    const from = since === undefined ? undefined : formatTime(requirePastTime(since, Date.now()));
    return connection.ask(REQUESTS.contain, { input: { name: key, since: from, dryRun } });
  };
  return { plan: (request) => contain(request, true), contain: (request) => contain(request, false) };
}

/** What commands do with keys that are declared, on a server. */
function declarationsOf(connection: ServerConnection): ApplyOperations {
  const run = async (declared: readonly DeclaredKey[], { prune, adopt }: ApplyRules, dryRun: boolean) => {
    if (adopt)
      throw new KeysError(
        'STORE_REQUIRED',
        'Only the operator adopts keys. Run it where the store is, or leave it out.',
      );
    const variables = { input: { keys: declared.map(declaredInput), prune, dryRun } };
    return connection.ask(
      mapRequest(REQUESTS.apply, (applied) => appliedIn(applied, declared)),
      variables,
    );
  };
  const revert: ApplyOperations['revert'] = async (id, action) => {
    if (action === 'CREATE') await connection.ask(REQUESTS.delete, { ids: [id] });
    else if (action === 'ROTATE') await connection.ask(REQUESTS.rollBackRotation, { id });
    else if (action === 'RENEW') await connection.ask(REQUESTS.update, { input: { id, ...ENDS_AT_ONCE } });
  };
  return {
    revert,
    plan: (declared, rules) => run(declared, rules, true),
    async apply(declared, rules, delivery) {
      const plan = await run(declared, rules, true);
      if (plan.changes.length === 0) return { ...plan, created: [], rotated: [] };
      const named = (...actions: PlannedChange['action'][]) =>
        plan.changes
          .filter(({ action }) => actions.includes(action))
          .map(({ name }) => ({ key: '', apiKey: { id: '', name } }));
      delivery.begin?.();
      // What would go wrong with the secrets afterwards goes wrong now, as far as that can be told.
      delivery.prepare?.({ ...plan, created: named('CREATE'), rotated: named('ROTATE', 'RENEW') });
      const applied = await run(declared, rules, false);
      const ids = applied.created.map(({ apiKey }) => apiKey.id);
      await deliver(applied, delivery, 'The secrets of the new API keys', async () => {
        if (ids.length > 0) await connection.ask(REQUESTS.delete, { ids });
        for (const { id, action } of applied.changes) if (action !== 'CREATE') await revert(id!, action);
      });
      return applied;
    },
  };
}

/** What an apply changes. @throws TypeError for a key that is not declared */
function appliedIn(
  { changes, ...applied }: ReturnType<typeof REQUESTS.apply.read>,
  declared: readonly DeclaredKey[],
): Applied {
  const declaredAs = (name: string) => {
    const key = declared.find((each) => each.name === name);
    if (!key) throw new TypeError('a key that is not declared');
    return key;
  };
  // A file gets the name of its key: no other than one of those declared here.
  for (const { apiKey } of [...applied.created, ...applied.rotated]) declaredAs(apiKey.name);
  const ids = applied.created.map(({ apiKey }) => apiKey.id);
  const planned = changes.map((change) =>
    change.action === 'CREATE' ? plannedCreation(declaredAs(change.name), ids.shift()) : plannedIn(change),
  );
  return { ...applied, changes: planned, confusable: [] };
}

/** A key that was there a moment ago. @throws KeysError NOT_FOUND */
function found<Key>(data: Key | null, id: string): Key {
  if (data !== null) return data;
  throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
}

/**
 * Delivers secrets, and reverts the change where that fails.
 * @throws what `delivery` throws; KeysError where the change cannot be reverted
 */
async function deliver<Change>(
  change: Change,
  delivery: SecretDelivery<Change> | undefined,
  what: string,
  revert: () => Promise<void>,
): Promise<void> {
  try {
    delivery?.prepare?.(change);
    await delivery?.deliver(change);
  } catch (error) {
    await revert().catch((cause: unknown) => {
      const code = isKeysError(cause) ? cause.code : 'SERVER_FAILED';
      const reason = `${what} could not be delivered, and the change not be reverted: ${(cause as Error).message}`;
      throw new KeysError(code, reason, { cause: error });
    });
    throw error;
  }
}

/** A new key as the schema takes it. Its values are valid. */
function newKeyInput({ name, overwrite, ...input }: NewKey, catalog: Catalog) {
  return { name, ...changeInput(input, catalog), overwrite };
}

/** Changes of a key as the schema takes them. Their values are valid. */
function changeInput({ roles, permissions, expiresAt, ...change }: KeyChange, catalog: Catalog) {
  return {
    ...change,
    roles: roles && parseRoles(roles, catalog).values,
    permissions: permissions && permissionsInput(parsePermissions(permissions, catalog).values),
    // The command line takes forms that the schema does not.
    expiresAt: expiresAt
      ? formatTime(expiresAt instanceof Date ? expiresAt.getTime() : (readDate(expiresAt) ?? null))
      : expiresAt,
  };
}

function declaredInput({ permissions, expiresAt, ...key }: DeclaredKey) {
  return { ...key, permissions: permissionsInput(permissions), expiresAt: formatTime(expiresAt) };
}

/** One by one: grouped by their resources, they would lose their order. */
function permissionsInput(permissions: readonly Permission[]) {
  return permissions.map((permission) => {
    const [resource, action] = splitPermission(permission);
    return { resource, actions: [action] };
  });
}
