import type { KeyDecision, KeyPage, KeyState, KeyWithAccess, Preview } from '../keys/administration.ts';
import type { AuditEntry } from '../keys/audit/audit-entry.ts';
import { type AuditRequest, readAuditRequest } from '../keys/audit/audit-log.ts';
import type { Suggestion } from '../keys/authorization/suggest.ts';
import { assertValid, KeysError } from '../keys/errors.ts';
import type { KeyFields, NewKey } from '../keys/key/api-key.ts';
import { validateNewKey } from '../keys/key/validation.ts';
import { cursorOf, type PageQuery, readRoles, readStatus } from '../keys/list.ts';
import { DEFAULT_PAGE_SIZE } from '../keys/page.ts';
import type { Catalog } from '../keys/permissions/catalog.ts';
import { formatTime } from '../keys/time.ts';
import type { UsageByPeriod } from '../keys/usage/periods.ts';
import { readUsageRequest, type UsageRequest } from '../keys/usage/usage-request.ts';
import type { Data, ServerConnection } from './connection.ts';
import { ACCESS, auditLogDocument, CATALOG, FIND, listDocument, PREVIEW, SHOW, SUGGEST, USAGE } from './documents.ts';
import { readCatalog } from './read-catalog.ts';
import { readEntry } from './read-changes.ts';
import { permissionsIn, readAccess, readPeriod, readPreview, readState } from './read-key.ts';
import { changeInput } from './write-key.ts';

/** More keys at a time would cost more than a request may. */
const PAGE_KEYS = 200;

/** What commands ask a running server. */
export class RemoteQueries {
  readonly location: string;
  readonly exists = true;
  readonly revertsAll = false;
  readonly pollMs = 1000;
  protected readonly connection: ServerConnection;
  #catalog: Promise<Catalog> | undefined;

  constructor(location: string, connection: ServerConnection) {
    this.connection = connection;
    this.location = location;
  }

  catalog(): Promise<Catalog> {
    return (this.#catalog ??= this.connection.ask({
      document: CATALOG,
      read: ({ permissions }) => readCatalog(permissions),
    }));
  }

  find(name: string): Promise<KeyState | undefined> {
    const read = ({ apiKey }: Data) => (apiKey === null ? undefined : readState(apiKey));
    return this.connection.ask({ document: FIND, variables: { name }, read });
  }

  show(name: string): Promise<KeyWithAccess | undefined> {
    const read = ({ apiKey }: Data) => (apiKey === null ? undefined : readAccess(apiKey));
    return this.connection.ask({ document: SHOW, variables: { name }, read });
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
      const page = await this.connection.ask({ document, variables, read: readPage });
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
    const variables = { input: await this.newKey(input) };
    return this.connection.ask({
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
    return this.connection.ask({ document: ACCESS, variables: { id, permission }, read });
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
    return this.connection.ask({ document: SUGGEST, variables: { id }, read });
  }

  usageOf({ id }: KeyFields, request: UsageRequest): Promise<UsageByPeriod> {
    const range = readUsageRequest(request, Date.now());
    const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
    const read = ({ apiKey }: Data): UsageByPeriod => ({ ...range, periods: found(apiKey, id).usage.map(readPeriod) });
    return this.connection.ask({ document: USAGE, variables, read });
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
    return this.connection.ask({
      document: auditLogDocument(given),
      variables,
      read: ({ auditLog }) => auditLog.edges.map(({ node }: Data) => readEntry(node)),
    });
  }

  /** A new key as the schema takes it. @throws ValidationError */
  protected async newKey(input: NewKey): Promise<object> {
    const catalog = await this.catalog();
    assertValid(validateNewKey(input, catalog, Date.now()));
    return changeInput(input, catalog);
  }

  /** Nothing is kept open. */
  async close(): Promise<void> {}
}

function readPage({ apiKeys: { edges, pageInfo } }: Data): KeyPage {
  return { keys: edges.map(({ node }: Data) => readState(node)), hasNextPage: pageInfo.hasNextPage === true };
}

/** A key that was there a moment ago. @throws KeysError NOT_FOUND */
function found(data: Data, id: string): Data {
  if (data !== null) return data;
  throw new KeysError('NOT_FOUND', `There is no API key with the id "${id}".`);
}
