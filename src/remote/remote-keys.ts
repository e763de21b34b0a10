import {
  type Applied,
  formatCursor,
  type KeyAdministration,
  type KeyPage,
  type KeyState,
  type ReviewedKey,
  type SortedKeys,
} from '../keys/service/index.ts';
import { type ApplyOperations, type ApplyRules, type DeclaredKey, ENDS_AT_ONCE } from '../keys/transfer/index.ts';
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
import { type Catalog, createCatalog, type Permission } from '../keys/permissions/index.ts';
import { ServerConnection, type ServerOptions } from './connection.ts';
import {
  changeInput,
  declaredInput,
  newKeyInput,
  permissionsIn,
  readAccess,
  readCatalog,
  readConsent,
  readContained,
  readCreated,
  readEdge,
  readEntry,
  readIssue,
  readManyPlan,
  readName,
  readPeriod,
  readPlanned,
  readPreview,
  readRotated,
  readState,
  secretIn,
  timeIn,
} from './forms.ts';
import type { Operations } from './operations.ts';

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
  const catalog = () => (known ??= connection.ask('Catalog', {}, ({ permissions }) => readCatalog(permissions!)));
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
  const deleteKeys = (ids: readonly string[]) =>
    connection.ask('Delete', { ids }, ({ deleteApiKeys: deleted }) => {
      return { keys: deleted!.keys.map(readName), issued: deleted!.issued.map(readIssue) };
    });
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

    find: (name) => connection.ask('Find', { name }, ({ apiKey }) => (apiKey === null ? undefined : readState(apiKey))),

    show: (name) =>
      connection.ask('Show', { name }, ({ apiKey }) => (apiKey === null ? undefined : readAccess(apiKey))),

    async list({ first, after, ...query }) {
      const filters = await filtersIn(query);
      const keys: KeyState[] = [];
      const wanted = first ?? DEFAULT_PAGE_SIZE;
      for (let cursor = after ?? undefined; ;) {
        const variables = { ...filters, first: Math.min(wanted - keys.length, PAGE_KEYS), after: cursor };
        const page = await connection.ask('List', variables, readPage);
        keys.push(...page.keys);
        const last = page.keys.at(-1);
        if (!page.hasNextPage || !last || keys.length >= wanted) return { keys, hasNextPage: page.hasNextPage };
        cursor = formatCursor(last.apiKey);
      }
    },

    async *review() {
      for (let after: string | undefined; ;) {
        const { keys, hasNextPage } = await connection.ask('Review', { first: REVIEWED_KEYS, after }, readReviewed);
        yield keys;
        const last = keys.at(-1);
        if (!hasNextPage || !last) return;
        after = formatCursor(last.apiKey);
      }
    },

    attest: (input) => connection.ask('Attest', { input: readAttestation(input) }, () => undefined),

    async select({ first, offset, sort, descending, ...query }) {
      const filters = await filtersIn(query);
      const found: KeyState[] = [];
      for (;;) {
        const place = { first: Math.min(first - found.length, PAGE_KEYS), offset: offset + found.length };
        const page = await connection.ask('Select', { ...filters, ...place, sort, descending }, readSorted);
        found.push(...page.keys);
        if (page.keys.length < place.first || found.length >= first) return { ...page, keys: found };
      }
    },

    /** None: a server refuses such names. */
    findConfusableNames: async () => [],

    async preview(input) {
      const variables = { input: await newKeyIn(input) };
      return connection.ask('Preview', variables, ({ previewApiKey }) => readPreview(previewApiKey!));
    },

    decide: ({ id }, permission) =>
      connection.ask('Access', { id, permission }, ({ apiKey }) => {
        const { deniedById, deniedByName, permission: asked, ...access } = found(apiKey, id).access;
        const deniedBy = deniedById === null ? null : { id: deniedById, name: deniedByName };
        return { ...access, permission: asked as Permission, deniedBy };
      }),

    suggest: ({ id }) =>
      connection.ask('Suggest', { id }, ({ apiKey }) => {
        const { suggestedRoles, suggestedPermissions, unusedPermissions, usedTools, usedRoutes } = found(apiKey, id);
        return {
          roles: suggestedRoles,
          permissions: permissionsIn(suggestedPermissions),
          unused: permissionsIn(unusedPermissions),
          tools: usedTools.map(({ name, lastUsedAt }) => ({ name, lastUsedAt: timeIn(lastUsedAt)! })),
          routes: [...usedRoutes],
        };
      }),

    async usageOf({ id }, request) {
      const range = readUsageRequest(request, Date.now());
      const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
      return connection.ask('Usage', variables, ({ apiKey }) => ({
        ...range,
        periods: found(apiKey, id).usage!.map(readPeriod),
      }));
    },

    edges: () => connection.ask('Edges', {}, ({ edges }) => edges!.map(readEdge)),

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
      return connection.ask('AuditLog', variables, ({ auditLog }) =>
        auditLog!.edges.map(({ node }) => readEntry(node)),
      );
    },

    async create(input, delivery) {
      const variables = { input: await newKeyIn(input) };
      delivery?.begin?.();
      const created = await connection.ask('Create', variables, ({ createApiKey }) => readCreated(createApiKey!));
      const what = `The secret of the new API key "${created.apiKey.name}"`;
      await deliver(created, delivery, what, async () => void (await deleteKeys([created.apiKey.id])));
      return created;
    },

    async update(before, change) {
      const variables = { input: { id: before.id, ...(await changeIn(change)) } };
      const after = await connection.ask('Update', variables, ({ updateApiKey }) => readState(updateApiKey!));
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
      const rotated = await connection.ask('Rotate', { input }, ({ rotateApiKey }) => readRotated(rotateApiKey!));
      // A previous secret changes no keys: where the key has rotated itself, it goes on with the new one.
      const next = connection.isSent(publicId) ? connection.withKey(rotated.key) : connection;
      await deliver(rotated, delivery, `The new secret of the API key "${before.name}"`, async () => {
        await changeRotation(next, 'RollBackRotation', id);
        for (const key of rotated.disabled) await setEnabled(connection, key, true);
      });
      if (activate !== 'NOW') return rotated;
      const { apiKey, rotation } = await changeRotation(next, 'ActivateRotation', id);
      // One without a grace is over, and is not told any more.
      const { startedAt } = rotated.rotation!;
      return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation!, previousEndsAt: startedAt } };
    },

    finishRotation: (id) => changeRotation(connection, 'FinishRotation', id),

    rollBackRotation: (id) => changeRotation(connection, 'RollBackRotation', id),

    async planMany(ids, { what, expiresAt, change }) {
      const update = change && (await changeIn(change));
      const variables = { ids, change: what, expiresAt, update };
      return connection.ask('PlanMany', variables, ({ apiKeyChangePlan: plan }) => readManyPlan(plan!));
    },

    async changeMany(ids, { what, expiresAt, change }) {
      if (what === 'UPDATE')
        return connection.ask('UpdateMany', { ids, update: await changeIn(change!) }, ({ updateApiKeys }) =>
          updateApiKeys!.keys.map(readName),
        );
      return connection.ask('NarrowMany', { input: { ids, expiresAt } }, ({ narrowApiKeys }) =>
        narrowApiKeys!.keys.map(readName),
      );
    },

    delete: deleteKeys,

    /** Nothing is kept open. */
    close: async () => {},
  };
}

async function setEnabled(connection: ServerConnection, before: KeyFields, enabled: boolean) {
  const { id } = before;
  if (enabled)
    return connection.ask('Enable', { id }, ({ setApiKeyEnabled: changed }) => {
      return { before, after: readState(changed!), issued: [] };
    });
  return connection.ask('Disable', { id }, ({ setApiKeyEnabled: changed }) => {
    return { before, after: readState(changed!), issued: changed!.issued.map(readIssue) };
  });
}

/** What commands do about applications that ask a server for keys. */
function consentsOf(connection: ServerConnection, findCatalog: () => Promise<Catalog>): ConsentOperations {
  return {
    list: (limit) =>
      connection.ask('ConsentRequests', { first: limit }, ({ consentRequests }) => consentRequests!.map(readConsent)),
    find: (place) => connection.ask('Request', { ...place }, ({ consentRequest }) => readConsent(consentRequest!)),
    async approve(userCode, choice) {
      const isNarrowed = (choice.roles ?? choice.permissions) !== undefined;
      const catalog = isNarrowed ? await findCatalog() : createCatalog();
      if (isNarrowed) assertValid(validateChosen(choice, catalog));
      assertValid(validateExpiry(choice, Date.now()));
      const variables = { input: { userCode, ...changeInput(choice, catalog) } };
      return connection.ask('Approve', variables, ({ approveConsentRequest: approved }) => readConsent(approved!));
    },
    deny: (place) => connection.ask('Deny', { ...place }, ({ denyConsentRequest: denied }) => readConsent(denied!)),
  };
}

/** What commands undo of what keys of a server did to others. */
function containmentsOf(connection: ServerConnection): ContainmentOperations {
  const contain = async ({ key, since }: ContainRequest, dryRun: boolean) => {
    const from = since === undefined ? undefined : formatTime(requirePastTime(since, Date.now()));
    const variables = { input: { name: key, since: from, dryRun } };
    return connection.ask('Contain', variables, ({ containKey }) => readContained(containKey!));
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
    return connection.ask('Apply', variables, ({ applyApiKeys }): Applied => {
      const applied = applyApiKeys!;
      const read = (secrets: (typeof applied)['rotated']) =>
        secrets.map(({ key, apiKey }) => ({ key: secretIn(key), apiKey: readName(apiKey) }));
      const [created, rotated] = [read(applied.created), read(applied.rotated)];
      // A file gets the name of its key: no other than one of those declared here.
      if (![...created, ...rotated].every(({ apiKey }) => declared.some(({ name }) => name === apiKey.name)))
        throw new TypeError('a key that is not declared');
      const ids = created.map(({ apiKey }) => apiKey.id);
      return { ...readPlanned(applied, declared, ids), created, rotated };
    });
  };
  const revert: ApplyOperations['revert'] = async (id, action) => {
    if (action === 'CREATE') await connection.ask('Delete', { ids: [id] }, () => undefined);
    else if (action === 'ROTATE') await changeRotation(connection, 'RollBackRotation', id);
    else if (action === 'RENEW') await connection.ask('Update', { input: { id, ...ENDS_AT_ONCE } }, () => undefined);
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
        if (ids.length > 0) await connection.ask('Delete', { ids }, () => undefined);
        for (const { id, action } of applied.changes) if (action !== 'CREATE') await revert(id!, action);
      });
      return applied;
    },
  };
}

function readPage({ apiKeys }: Operations['List']['data']): KeyPage {
  const { edges, pageInfo } = apiKeys!;
  return { keys: edges.map(({ node }) => readState(node)), hasNextPage: pageInfo.hasNextPage === true };
}

function readReviewed({ apiKeys }: Operations['Review']['data']) {
  const { edges, pageInfo } = apiKeys!;
  const keys = edges.map(({ node }): ReviewedKey => ({
    ...readState(node),
    effectivePermissions: permissionsIn(node.effectivePermissions),
    answering: node.answering,
    creator: node.ancestors[0]?.name ?? null,
  }));
  return { keys, hasNextPage: pageInfo.hasNextPage === true };
}

function readSorted({ apiKeyList }: Operations['Select']['data']): SortedKeys {
  const { keys, total, hasMore, sorted } = apiKeyList!;
  return { keys: keys.map(readState), total, hasMore, isSorted: sorted === true };
}

/** A key that was there a moment ago. @throws KeysError NOT_FOUND */
function found<Key>(data: Key | null, id: string): Key {
  if (data !== null) return data;
  throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
}

function changeRotation(
  connection: ServerConnection,
  operation: 'ActivateRotation' | 'FinishRotation' | 'RollBackRotation',
  id: string,
): Promise<KeyState> {
  return connection.ask(operation, { id }, ({ apiKey }) => readState(apiKey!));
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
