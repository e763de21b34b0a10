import type {
  Changed,
  Created,
  Deleted,
  KeyAdministration,
  KeyDecision,
  KeyOperations,
  KeyPage,
  KeyState,
  KeyWithAccess,
  Preview,
  Rotated,
} from '../keys/administration.ts';
import type { AuditEntry } from '../keys/audit/audit-entry.ts';
import { type AuditRequest, readAuditRequest } from '../keys/audit/audit-log.ts';
import type { Suggestion } from '../keys/authorization/suggest.ts';
import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { KeysError, assertValid } from '../keys/errors.ts';
import type { KeyChange, KeyFields, NewKey } from '../keys/key/api-key.ts';
import { type RotationRequest, readRotation } from '../keys/key/rotation.ts';
import { validateChange, validateNewKey } from '../keys/key/validation.ts';
import { type PageQuery, cursorOf, readRoles, readStatus } from '../keys/list.ts';
import { DEFAULT_PAGE_SIZE } from '../keys/page.ts';
import { type Catalog, createCatalog } from '../keys/permissions/catalog.ts';
import { methodsOf } from '../keys/port.ts';
import { formatTime } from '../keys/time.ts';
import type { UsageByPeriod } from '../keys/usage/periods.ts';
import { type UsageRequest, readUsageRequest } from '../keys/usage/usage-request.ts';
import { type Data, ServerConnection, type ServerOptions } from './connection.ts';
import { deliver } from './deliver.ts';
import {
  ACCESS,
  CATALOG,
  CREATE,
  DELETE,
  DISABLE,
  ENABLE,
  FIND,
  PREVIEW,
  ROTATE,
  SHOW,
  SUGGEST,
  UPDATE,
  USAGE,
  auditLogDocument,
  listDocument,
  rotationDocument,
} from './documents.ts';
import { readCatalog } from './read-catalog.ts';
import { readEntry } from './read-changes.ts';
import {
  permissionsIn,
  readAccess,
  readCreated,
  readIssue,
  readName,
  readPeriod,
  readPreview,
  readRotated,
  readState,
} from './read-key.ts';
import { RemoteConsents } from './remote-consents.ts';
import { RemoteContainments } from './remote-containments.ts';
import { RemoteDeclarations } from './remote-declarations.ts';
import { changeInput } from './write-key.ts';

/** More keys at a time would cost more than a request may. */
const PAGE_KEYS = 200;

/**
 * What commands do with the keys of a running server, over its GraphQL, as the key that they send. The rules run on the
 * server; here, what was typed is brought into the form of the schema.
 */
export function remoteKeys(options: ServerOptions): KeyAdministration {
  const connection = new ServerConnection(options);
  const keys = new RemoteKeys(options.server, connection);
  const features = methodsOf(
    new RemoteConsents(connection, () => keys.catalog()),
    new RemoteContainments(connection),
    new RemoteDeclarations(connection),
  );
  return Object.assign(keys, features);
}

class RemoteKeys implements KeyOperations {
  readonly location: string;
  readonly exists = true;
  readonly revertsAll = false;
  readonly pollMs = 1000;
  readonly #connection: ServerConnection;
  #catalog: Promise<Catalog> | undefined;

  constructor(location: string, connection: ServerConnection) {
    this.#connection = connection;
    this.location = location;
  }

  catalog(): Promise<Catalog> {
    return (this.#catalog ??= this.#connection.ask({
      document: CATALOG,
      read: ({ permissions }) => readCatalog(permissions),
    }));
  }

  find(name: string): Promise<KeyState | undefined> {
    const read = ({ apiKey }: Data) => (apiKey === null ? undefined : readState(apiKey));
    return this.#connection.ask({ document: FIND, variables: { name }, read });
  }

  show(name: string): Promise<KeyWithAccess | undefined> {
    const read = ({ apiKey }: Data) => (apiKey === null ? undefined : readAccess(apiKey));
    return this.#connection.ask({ document: SHOW, variables: { name }, read });
  }

  async list({ first, after, search, roles, status }: PageQuery): Promise<KeyPage> {
    const filters = {
      search: search ?? undefined,
      roles: roles ? readRoles(roles, await this.catalog()) : undefined,
      status: status == null ? undefined : readStatus(status),
    };
    const given = { search: search != null, roles: roles != null, status: status != null };
    const document = listDocument(given);
    const keys: KeyState[] = [];
    const wanted = first ?? DEFAULT_PAGE_SIZE;
    for (let cursor = after ?? undefined; ;) {
      const variables = { ...filters, first: Math.min(wanted - keys.length, PAGE_KEYS), after: cursor };
      const page = await this.#connection.ask({ document, variables, read: readPage });
      keys.push(...page.keys);
      const last = page.keys.at(-1);
      if (!page.hasNextPage || !last || keys.length >= wanted) return { keys, hasNextPage: page.hasNextPage };
      cursor = cursorOf(last.apiKey);
    }
  }

  /** None: a server refuses such names. */
  async findConfusableNames(): Promise<[]> {
    return [];
  }

  async preview(input: NewKey): Promise<Preview> {
    const variables = { input: await this.#newKey(input) };
    return this.#connection.ask({
      document: PREVIEW,
      variables,
      read: ({ previewApiKey }) => readPreview(previewApiKey),
    });
  }

  decide({ id }: KeyFields, permission: string): Promise<KeyDecision> {
    const read = ({ apiKey }: Data): KeyDecision => {
      const { deniedById, deniedByName, ...access } = found(apiKey, id).access;
      return { ...access, deniedBy: deniedById === null ? null : { id: deniedById, name: deniedByName } };
    };
    return this.#connection.ask({ document: ACCESS, variables: { id, permission }, read });
  }

  suggest({ id }: KeyFields): Promise<Suggestion> {
    const read = ({ apiKey }: Data): Suggestion => {
      const { suggestedRoles, suggestedPermissions, unusedPermissions } = found(apiKey, id);
      return {
        roles: suggestedRoles,
        permissions: permissionsIn(suggestedPermissions),
        unused: permissionsIn(unusedPermissions),
      };
    };
    return this.#connection.ask({ document: SUGGEST, variables: { id }, read });
  }

  usageOf({ id }: KeyFields, request: UsageRequest): Promise<UsageByPeriod> {
    const range = readUsageRequest(request, Date.now());
    const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
    const read = ({ apiKey }: Data): UsageByPeriod => ({ ...range, periods: found(apiKey, id).usage.map(readPeriod) });
    return this.#connection.ask({ document: USAGE, variables, read });
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
    const given = Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    return this.#connection.ask({
      document: auditLogDocument(given),
      variables,
      read: ({ auditLog }) => auditLog.edges.map(({ node }: Data) => readEntry(node)),
    });
  }

  async create(input: NewKey, delivery?: SecretDelivery<Created>): Promise<Created> {
    const variables = { input: await this.#newKey(input) };
    delivery?.begin?.();
    const read = ({ createApiKey }: Data) => readCreated(createApiKey);
    const created = await this.#connection.ask({ document: CREATE, variables, read });
    const what = `The secret of the new API key "${created.apiKey.name}"`;
    await deliver(created, delivery, what, async () => void (await this.delete([created.apiKey.id])));
    return created;
  }

  async update(before: KeyFields, change: KeyChange): Promise<Changed & { confusable: [] }> {
    const catalog = (change.roles ?? change.permissions) ? await this.catalog() : createCatalog();
    assertValid(validateChange(change, catalog, Date.now()));
    const variables = { input: { id: before.id, ...changeInput(change, catalog) } };
    const read = ({ updateApiKey }: Data) => readState(updateApiKey);
    return { before, after: await this.#connection.ask({ document: UPDATE, variables, read }), confusable: [] };
  }

  async setEnabled(before: KeyFields, enabled: boolean): Promise<Changed & Pick<Deleted, 'issued'>> {
    const read = ({ setApiKeyEnabled: changed }: Data) => {
      return { before, after: readState(changed), issued: enabled ? [] : changed.issued.map(readIssue) };
    };
    const document = enabled ? ENABLE : DISABLE;
    return this.#connection.ask({ document, variables: { id: before.id }, read });
  }

  /** The previous secret works at least until the new one was delivered. */
  async rotate(before: KeyFields, request: RotationRequest, delivery: SecretDelivery<Rotated>): Promise<Rotated> {
    const { id, publicId } = before;
    const { issues, activate, disableSince } = readRotation(request, Date.now());
    assertValid(issues);
    const { grace, disableCreated, createdSince } = request;
    const since = createdSince == null || disableSince === null ? undefined : formatTime(disableSince);
    const input = { id, grace, activate: 'ON_FIRST_USE', disableCreated, createdSince: since };
    delivery.begin?.();
    const read = ({ rotateApiKey }: Data) => readRotated(rotateApiKey);
    const rotated = await this.#connection.ask({ document: ROTATE, variables: { input }, read });
    // A previous secret changes no keys: where the key has rotated itself, it goes on with the new one.
    const connection = this.#connection.isSent(publicId) ? this.#connection.withKey(rotated.key) : this.#connection;
    await deliver(rotated, delivery, `The new secret of the API key "${before.name}"`, async () => {
      await changeRotation(connection, 'rollBackApiKeyRotation', id);
      for (const key of rotated.disabled) await this.setEnabled(key, true);
    });
    if (activate !== 'NOW') return rotated;
    const { apiKey, rotation } = await changeRotation(connection, 'activateApiKeyRotation', id);
    // One without a grace is over, and is not told any more.
    const { startedAt } = rotated.rotation!;
    return { ...rotated, apiKey, rotation: rotation ?? { ...rotated.rotation!, previousEndsAt: startedAt } };
  }

  finishRotation(id: string): Promise<KeyState> {
    return changeRotation(this.#connection, 'finishApiKeyRotation', id);
  }

  rollBackRotation(id: string): Promise<KeyState> {
    return changeRotation(this.#connection, 'rollBackApiKeyRotation', id);
  }

  delete(ids: readonly string[]): Promise<Deleted> {
    const read = ({ deleteApiKeys: { keys, issued } }: Data): Deleted => {
      return { keys: keys.map(readName), issued: issued.map(readIssue) };
    };
    return this.#connection.ask({ document: DELETE, variables: { ids }, read });
  }

  /** A new key as the schema takes it. @throws ValidationError */
  async #newKey(input: NewKey): Promise<object> {
    const catalog = await this.catalog();
    assertValid(validateNewKey(input, catalog, Date.now()));
    return changeInput(input, catalog);
  }

  /** Nothing is kept open. */
  async close(): Promise<void> {}
}

function changeRotation(
  connection: ServerConnection,
  field: Parameters<typeof rotationDocument>[0],
  id: string,
): Promise<KeyState> {
  return connection.ask({
    document: rotationDocument(field),
    variables: { id },
    read: ({ apiKey }) => readState(apiKey),
  });
}

function readPage({ apiKeys: { edges, pageInfo } }: Data): KeyPage {
  return { keys: edges.map(({ node }: Data) => readState(node)), hasNextPage: pageInfo.hasNextPage === true };
}

/** A key that was there a moment ago. @throws KeysError NOT_FOUND */
function found(data: Data, id: string): Data {
  if (data !== null) return data;
  throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
}
