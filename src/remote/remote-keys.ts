import {
  type Applied,
  type Changed,
  type ConsentPlace,
  type ConsentState,
  type Contained,
  type Created,
  formatCursor,
  type Deleted,
  type KeyAdministration,
  type KeyDecision,
  type KeyPage,
  type KeyName,
  type KeyState,
  type ManyPlan,
  type KeyWithAccess,
  type PageQuery,
  type Preview,
  type ReviewedKey,
  type Rotated,
  type SortedKeys,
} from '../keys/service/index.ts';
import {
  type ApplyOperations,
  type ApplyRules,
  type DeclaredKey,
  ENDS_AT_ONCE,
  type PlannedChanges,
} from '../keys/transfer/index.ts';
import { type AuditEntry, type AuditRequest, readAuditRequest } from '../keys/audit/index.ts';
import type { Suggestion } from '../keys/authorization/index.ts';
import {
  type Attestation,
  type ContainmentOperations,
  type ContainRequest,
  type ManyChangeRequest,
  readAttestation,
  type SecretDelivery,
  type UndeletingChange,
} from '../keys/changes/index.ts';
import { type ConsentChoice, type ConsentOperations, validateChosen } from '../keys/consent/index.ts';
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
  type RotationRequest,
  type UsageByPeriod,
  type UsageRequest,
  validateChange,
  validateExpiry,
  validateNewKey,
} from '../keys/key/index.ts';
import type { ListedEdge } from '../keys/feed/index.ts';
import { type KeyFilters, readRoles, readStatus, readTags, type SelectionQuery } from '../keys/lists/index.ts';
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
import type { CreateApiKeyInput, Operations } from './operations.ts';

/** More keys at a time would cost more than a request may. */
const PAGE_KEYS = 200;
/** The same of keys with all that they may do. */
const REVIEWED_KEYS = 100;

/**
 * What commands do with the keys of a running server, over its GraphQL, as the key that they send. The rules run on the
 * server; here, what was typed is brought into the form of the schema.
 */
export class RemoteKeys implements KeyAdministration {
  readonly location: string;
  readonly exists = true;
  readonly revertsAll = false;
  readonly mostAtOnce = MAX_PAGE_SIZE;
  readonly pollMs = 1000;
  readonly consents: ConsentOperations;
  readonly containments: ContainmentOperations;
  readonly declarations: ApplyOperations;
  readonly #connection: ServerConnection;
  #catalog: Promise<Catalog> | undefined;

  constructor(options: ServerOptions) {
    this.#connection = new ServerConnection(options);
    this.location = options.server;
    this.consents = new RemoteConsents(this.#connection, () => this.catalog());
    this.containments = new RemoteContainments(this.#connection);
    this.declarations = new RemoteDeclarations(this.#connection);
  }

  catalog(): Promise<Catalog> {
    return (this.#catalog ??= this.#connection.ask('Catalog', {}, ({ permissions }) => readCatalog(permissions!)));
  }

  find(name: string): Promise<KeyState | undefined> {
    return this.#connection.ask('Find', { name }, ({ apiKey }) => (apiKey === null ? undefined : readState(apiKey)));
  }

  show(name: string): Promise<KeyWithAccess | undefined> {
    return this.#connection.ask('Show', { name }, ({ apiKey }) => (apiKey === null ? undefined : readAccess(apiKey)));
  }

  async list({ first, after, ...query }: PageQuery): Promise<KeyPage> {
    const filters = await this.#filters(query);
    const keys: KeyState[] = [];
    const wanted = first ?? DEFAULT_PAGE_SIZE;
    for (let cursor = after ?? undefined; ;) {
      const variables = { ...filters, first: Math.min(wanted - keys.length, PAGE_KEYS), after: cursor };
      const page = await this.#connection.ask('List', variables, readPage);
      keys.push(...page.keys);
      const last = page.keys.at(-1);
      if (!page.hasNextPage || !last || keys.length >= wanted) return { keys, hasNextPage: page.hasNextPage };
      cursor = formatCursor(last.apiKey);
    }
  }

  async *review(): AsyncGenerator<readonly ReviewedKey[]> {
    for (let after: string | undefined; ;) {
      const { keys, hasNextPage } = await this.#connection.ask('Review', { first: REVIEWED_KEYS, after }, readReviewed);
      yield keys;
      const last = keys.at(-1);
      if (!hasNextPage || !last) return;
      after = formatCursor(last.apiKey);
    }
  }

  attest(input: Attestation): Promise<void> {
    return this.#connection.ask('Attest', { input: readAttestation(input) }, () => undefined);
  }

  async select({ first, offset, sort, descending, ...query }: SelectionQuery): Promise<SortedKeys> {
    const filters = await this.#filters(query);
    const found: SortedKeys = { keys: [], total: 0, hasMore: false, isSorted: true };
    for (;;) {
      const place = { first: Math.min(first - found.keys.length, PAGE_KEYS), offset: offset + found.keys.length };
      const page = await this.#connection.ask('Select', { ...filters, ...place, sort, descending }, readSorted);
      const keys = [...found.keys, ...page.keys];
      if (page.keys.length < place.first || keys.length >= first) return { ...page, keys };
      found.keys.push(...page.keys);
    }
  }

  async #filters({ search, roles, status, owner, tags, createdBy, expiresBefore, unusedSince }: KeyFilters) {
    return {
      search: search ?? undefined,
      roles: roles ? readRoles(roles, await this.catalog()) : undefined,
      status: status == null ? undefined : readStatus(status),
      owner: owner ?? undefined,
      tags: tags ? readTags(tags) : undefined,
      createdBy: createdBy ?? undefined,
      expiresBefore: expiresBefore ?? undefined,
      unusedSince: unusedSince ?? undefined,
    };
  }

  /** None: a server refuses such names. */
  async findConfusableNames(): Promise<[]> {
    return [];
  }

  async preview(input: NewKey): Promise<Preview> {
    const variables = { input: await this.#newKey(input) };
    return this.#connection.ask('Preview', variables, ({ previewApiKey }) => readPreview(previewApiKey!));
  }

  decide({ id }: KeyFields, permission: string): Promise<KeyDecision> {
    return this.#connection.ask('Access', { id, permission }, ({ apiKey }) => {
      const { deniedById, deniedByName, permission: asked, ...access } = found(apiKey, id).access;
      const deniedBy = deniedById === null ? null : { id: deniedById, name: deniedByName };
      return { ...access, permission: asked as Permission, deniedBy };
    });
  }

  suggest({ id }: KeyFields): Promise<Suggestion> {
    return this.#connection.ask('Suggest', { id }, ({ apiKey }) => {
      const { suggestedRoles, suggestedPermissions, unusedPermissions, usedTools, usedRoutes } = found(apiKey, id);
      return {
        roles: suggestedRoles,
        permissions: permissionsIn(suggestedPermissions),
        unused: permissionsIn(unusedPermissions),
        tools: usedTools.map(({ name, lastUsedAt }) => ({ name, lastUsedAt: timeIn(lastUsedAt)! })),
        routes: [...usedRoutes],
      };
    });
  }

  usageOf({ id }: KeyFields, request: UsageRequest): Promise<UsageByPeriod> {
    const range = readUsageRequest(request, Date.now());
    const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
    return this.#connection.ask('Usage', variables, ({ apiKey }) => ({
      ...range,
      periods: found(apiKey, id).usage!.map(readPeriod),
    }));
  }

  edges(): Promise<ListedEdge[]> {
    return this.#connection.ask('Edges', {}, ({ edges }) => edges!.map(readEdge));
  }

  auditLog(request: AuditRequest, { before, after }: { before?: number; after?: number } = {}): Promise<AuditEntry[]> {
    const { limit, since, until, ...filter } = readAuditRequest(request, Date.now());
    const variables = {
      ...filter,
      first: limit,
      since: since === undefined ? undefined : formatTime(since),
      until: until === undefined ? undefined : formatTime(until),
      beforeNumber: before,
      afterNumber: after,
    };
    return this.#connection.ask('AuditLog', variables, ({ auditLog }) =>
      auditLog!.edges.map(({ node }) => readEntry(node)),
    );
  }

  async create(input: NewKey, delivery?: SecretDelivery<Created>): Promise<Created> {
    const variables = { input: await this.#newKey(input) };
    delivery?.begin?.();
    const created = await this.#connection.ask('Create', variables, ({ createApiKey }) => readCreated(createApiKey!));
    const what = `The secret of the new API key "${created.apiKey.name}"`;
    await deliver(created, delivery, what, async () => void (await this.delete([created.apiKey.id])));
    return created;
  }

  async update(before: KeyFields, change: KeyChange): Promise<Changed & { confusable: [] }> {
    const variables = { input: { id: before.id, ...(await this.#change(change)) } };
    const after = await this.#connection.ask('Update', variables, ({ updateApiKey }) => readState(updateApiKey!));
    return { before, after, confusable: [] };
  }

  async setEnabled(before: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>> {
    const { id } = before;
    if (enabled)
      return this.#connection.ask('Enable', { id }, ({ setApiKeyEnabled: changed }) => {
        return { before, after: readState(changed!), issued: [] };
      });
    return this.#connection.ask('Disable', { id }, ({ setApiKeyEnabled: changed }) => {
      return { before, after: readState(changed!), issued: changed!.issued.map(readIssue) };
    });
  }

  /** The previous secret works at least until the new one was delivered. */
  async rotate(before: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated> {
    const { id, publicId } = before;
    const { issues, activate, disableSince } = readRotation(request, Date.now());
    assertValid(issues);
    const { grace, disableCreated, createdSince } = request;
    const since = createdSince == null || disableSince === null ? undefined : formatTime(disableSince);
    const input = { id, grace, activate: 'ON_FIRST_USE', disableCreated, createdSince: since } as const;
    delivery.begin?.();
    const rotated = await this.#connection.ask('Rotate', { input }, ({ rotateApiKey }) => readRotated(rotateApiKey!));
    // A previous secret changes no keys: where the key has rotated itself, it goes on with the new one.
    const connection = this.#connection.isSent(publicId) ? this.#connection.withKey(rotated.key) : this.#connection;
    await deliver(rotated, delivery, `The new secret of the API key "${before.name}"`, async () => {
      await changeRotation(connection, 'RollBackRotation', id);
      for (const key of rotated.disabled) await this.setEnabled(key, true);
    });
    if (activate !== 'NOW') return rotated;
    const { apiKey, rotation } = await changeRotation(connection, 'ActivateRotation', id);
    // One without a grace is over, and is not told any more.
    const { startedAt } = rotated.rotation!;
    return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation!, previousEndsAt: startedAt } };
  }

  finishRotation(id: string): Promise<KeyState> {
    return changeRotation(this.#connection, 'FinishRotation', id);
  }

  rollBackRotation(id: string): Promise<KeyState> {
    return changeRotation(this.#connection, 'RollBackRotation', id);
  }

  async planMany(ids: readonly string[], { what, expiresAt, change }: ManyChangeRequest): Promise<ManyPlan> {
    const update = change && (await this.#change(change));
    return this.#connection.ask('PlanMany', { ids, change: what, expiresAt, update }, ({ apiKeyChangePlan: plan }) =>
      readManyPlan(plan!),
    );
  }

  async changeMany(ids: readonly string[], { what, expiresAt, change }: UndeletingChange): Promise<KeyName[]> {
    if (what === 'UPDATE')
      return this.#connection.ask('UpdateMany', { ids, update: await this.#change(change!) }, ({ updateApiKeys }) =>
        updateApiKeys!.keys.map(readName),
      );
    return this.#connection.ask('NarrowMany', { input: { ids, expiresAt } }, ({ narrowApiKeys }) =>
      narrowApiKeys!.keys.map(readName),
    );
  }

  delete(ids: readonly string[]): Promise<Deleted> {
    return this.#connection.ask('Delete', { ids }, ({ deleteApiKeys: deleted }) => {
      return { keys: deleted!.keys.map(readName), issued: deleted!.issued.map(readIssue) };
    });
  }

  /** A change of keys as the schema takes it. @throws ValidationError */
  async #change(change: KeyChange) {
    const catalog = (change.roles ?? change.permissions) ? await this.catalog() : createCatalog();
    assertValid(validateChange(change, catalog, Date.now()));
    return changeInput(change, catalog);
  }

  /** A new key as the schema takes it. @throws ValidationError */
  async #newKey(input: NewKey): Promise<CreateApiKeyInput> {
    const catalog = await this.catalog();
    assertValid(validateNewKey(input, catalog, Date.now()));
    return newKeyInput(input, catalog);
  }

  /** Nothing is kept open. */
  async close(): Promise<void> {}
}

/** What commands do about applications that ask a server for keys. */
class RemoteConsents implements ConsentOperations {
  readonly #connection: ServerConnection;
  readonly #catalog: () => Promise<Catalog>;

  constructor(connection: ServerConnection, catalog: () => Promise<Catalog>) {
    this.#connection = connection;
    this.#catalog = catalog;
  }

  list(limit: number): Promise<ConsentState[]> {
    return this.#connection.ask('ConsentRequests', { first: limit }, ({ consentRequests }) =>
      consentRequests!.map(readConsent),
    );
  }

  find(place: ConsentPlace): Promise<ConsentState> {
    return this.#connection.ask('Request', { ...place }, ({ consentRequest }) => readConsent(consentRequest!));
  }

  async approve(userCode: string, choice: ConsentChoice): Promise<ConsentState> {
    const isNarrowed = (choice.roles ?? choice.permissions) !== undefined;
    const catalog = isNarrowed ? await this.#catalog() : createCatalog();
    if (isNarrowed) assertValid(validateChosen(choice, catalog));
    assertValid(validateExpiry(choice, Date.now()));
    const variables = { input: { userCode, ...changeInput(choice, catalog) } };
    return this.#connection.ask('Approve', variables, ({ approveConsentRequest: approved }) => readConsent(approved!));
  }

  deny(place: ConsentPlace): Promise<ConsentState> {
    return this.#connection.ask('Deny', { ...place }, ({ denyConsentRequest: denied }) => readConsent(denied!));
  }
}

/** What commands undo of what keys of a server did to others. */
class RemoteContainments implements ContainmentOperations {
  readonly #connection: ServerConnection;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  plan(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, true);
  }

  contain(request: ContainRequest): Promise<Contained> {
    return this.#contain(request, false);
  }

  #contain({ key, since }: ContainRequest, dryRun: boolean): Promise<Contained> {
    const from = since === undefined ? undefined : formatTime(requirePastTime(since, Date.now()));
    const variables = { input: { name: key, since: from, dryRun } };
    return this.#connection.ask('Contain', variables, ({ containKey }) => readContained(containKey!));
  }
}

/** What commands do with keys that are declared, on a server. */
class RemoteDeclarations implements ApplyOperations {
  readonly #connection: ServerConnection;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  async plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges> {
    return this.#apply(declared, rules, true);
  }

  async apply(
    declared: readonly DeclaredKey[],
    rules: ApplyRules,
    delivery: SecretDelivery<Applied>,
  ): Promise<Applied> {
    const plan = await this.plan(declared, rules);
    if (plan.changes.length === 0) return { ...plan, created: [], rotated: [] };
    const named = (...actions: PlannedChange['action'][]) =>
      plan.changes
        .filter(({ action }) => actions.includes(action))
        .map(({ name }) => ({ key: '', apiKey: { id: '', name } }));
    delivery.begin?.();
    // What would go wrong with the secrets afterwards goes wrong now, as far as that can be told.
    delivery.prepare?.({ ...plan, created: named('CREATE'), rotated: named('ROTATE', 'RENEW') });
    const applied = await this.#apply(declared, rules, false);
    const ids = applied.created.map(({ apiKey }) => apiKey.id);
    await deliver(applied, delivery, 'The secrets of the new API keys', async () => {
      if (ids.length > 0) await this.#connection.ask('Delete', { ids }, () => undefined);
      for (const { id, action } of applied.changes) if (action !== 'CREATE') await this.revert(id!, action);
    });
    return applied;
  }

  async revert(id: string, action: PlannedChange['action']): Promise<void> {
    if (action === 'CREATE') await this.#connection.ask('Delete', { ids: [id] }, () => undefined);
    else if (action === 'ROTATE') await changeRotation(this.#connection, 'RollBackRotation', id);
    else if (action === 'RENEW')
      await this.#connection.ask('Update', { input: { id, ...ENDS_AT_ONCE } }, () => undefined);
  }

  #apply(declared: readonly DeclaredKey[], { prune, adopt }: ApplyRules, dryRun: boolean): Promise<Applied> {
    if (adopt)
      throw new KeysError(
        'STORE_REQUIRED',
        'Only the operator adopts keys. Run it where the store is, or leave it out.',
      );
    const variables = { input: { keys: declared.map(declaredInput), prune, dryRun } };
    return this.#connection.ask('Apply', variables, ({ applyApiKeys }) => {
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
  }
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
