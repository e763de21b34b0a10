import type {
  ConsentState,
  Contained,
  Created,
  KeyLimit,
  KeyName,
  KeyState,
  KeyWithAccess,
  ManyPlan,
  NamedIssue,
  Preview,
  Rotated,
} from '../keys/service/index.ts';
import { type DeclaredKey, type PlannedChanges, plannedCreation } from '../keys/transfer/index.ts';
import type { ListedEdge } from '../keys/feed/index.ts';
import type { AuditEntry, AuditValues } from '../keys/audit/index.ts';
import {
  type FieldChange,
  type FieldTable,
  type FieldValue,
  fixedFields,
  type KeyChange,
  type KeyFields,
  labelFields,
  type NewKey,
  personIn,
  type PeriodUsage,
  type PlannedChange,
  restrictionFields,
  valuesOf,
  type ValuesOf,
} from '../keys/key/index.ts';
import {
  type Catalog,
  createCatalog,
  NO_POLICY,
  parsePermissions,
  parseRoles,
  type Permission,
  type ResourceActions,
  type Role,
  splitPermission,
} from '../keys/permissions/index.ts';
import { publicIdOfPrefix, readSecret } from '../keys/secret/index.ts';
import { type Budget, type ErrorCode, formatTime, readDate } from '../keys/basics/index.ts';
import type {
  ApplyMutation,
  AuditLogQuery,
  CatalogQuery,
  ChangeFragment,
  EdgesQuery,
  ConsentFragment,
  ContainMutation,
  CreateApiKeyInput,
  CreateMutation,
  DeclaredApiKeyInput,
  IssueFragment,
  PermissionInput,
  PlanManyQuery,
  PreviewQuery,
  RotateMutation,
  ShowQuery,
  StateFragment,
  UsageQuery,
} from './operations.ts';

type Answered<Data> = NonNullable<Data[keyof Data]>;

/** Reads a key as `State` of the documents has it. Whatever is not as it should be throws. */
export function readState(data: StateFragment): KeyState {
  const { rotation } = data;
  return {
    apiKey: readFields(data),
    status: data.status,
    disabledByPolicy: data.disabledByPolicy === true,
    unknownGrants: data.unknownGrants,
    rotation: rotation && {
      startedAt: timeIn(rotation.startedAt)!,
      previousPublicId: publicIdIn(rotation.previousPrefix),
      previousEndsAt: timeIn(rotation.previousEndsAt),
    },
    usage: {
      uses: data.uses,
      lastUsedAt: timeIn(data.lastUsedAt),
      previousLastUsedAt: timeIn(rotation?.previousLastUsedAt ?? null),
    },
    budgets: data.budgets as readonly Budget[],
  };
}

function readFields(data: StateFragment): KeyFields {
  const { id, name, createdBy, managed } = data;
  if (typeof id !== 'string' || typeof name !== 'string') throw new TypeError('a key without an id and a name');
  return {
    id,
    name,
    ...keyValuesIn(labelFields, data),
    ...grantsIn(data.grants),
    ...keyValuesIn(restrictionFields, data),
    publicId: publicIdIn(data.prefix),
    createdAt: timeIn(data.createdAt)!,
    createdBy,
    expiresAt: timeIn(data.expiresAt),
    disabledAt: timeIn(data.disabledAt),
    managed,
    ...keyValuesIn(fixedFields, data),
    person: personIn(data.person) ?? null,
  };
}

export function readAccess(data: Answered<ShowQuery>): KeyWithAccess {
  const limitedBy = data.limitedBy.map((limit): KeyLimit => ({
    ancestor: { id: limit.keyId, name: limit.name },
    status: limit.status,
    expiresAt: timeIn(limit.expiresAt),
    permissions: permissionsIn(limit.permissions),
    ...keyValuesIn(restrictionFields, limit),
  }));
  const effectivePermissions = permissionsIn(data.effectivePermissions);
  return { ...readState(data), effectivePermissions, limitedBy, issued: data.issued.map(readIssue) };
}

export function readPreview(data: Answered<PreviewQuery>): Preview {
  const { name, grants, expiresAt, effectivePermissions } = data;
  return {
    name,
    ...keyValuesIn(labelFields, data),
    ...grantsIn(grants),
    ...keyValuesIn(restrictionFields, data),
    expiresAt: timeIn(expiresAt),
    effectivePermissions: permissionsIn(effectivePermissions),
    confusable: [],
  };
}

export function readCreated({ key, apiKey, replaced }: Answered<CreateMutation>): Created {
  return { key: secretIn(key), apiKey: readFields(apiKey), replaced: replaced.map(readName), confusable: [] };
}

export function readRotated({ key, apiKey, created, disabled, issued }: Answered<RotateMutation>): Rotated {
  const state = readState(apiKey);
  return {
    key: secretIn(key),
    apiKey: state.apiKey,
    rotation: state.rotation,
    created: created.map(readFields),
    disabled: disabled.map(readFields),
    issued: issued.map(readIssue),
  };
}

export function readIssue({ name, what, at, disabled }: IssueFragment): NamedIssue {
  if (typeof name !== 'string' || typeof what !== 'string') throw new TypeError('not what a key did');
  return { name, what, at: timeIn(at)!, isDisabled: disabled };
}

export function readManyPlan(plan: Answered<PlanManyQuery>): ManyPlan {
  const { changing, unchanged, refused, total: keys, lastUsedAt } = plan;
  return {
    changing: changing.map(readName),
    unchanged: unchanged.map(readName),
    refused: refused.map(({ apiKey, reason, code }) => ({
      key: readName(apiKey),
      refusal: { reason, code: code as ErrorCode },
    })),
    keys,
    lastUsedAt: timeIn(lastUsedAt),
  };
}

type UsagePeriodData = NonNullable<Answered<UsageQuery>['usage']>[number];

/** Reads how requests ended in an hour or on a day. */
export function readPeriod({ start, ...counts }: UsagePeriodData): PeriodUsage {
  return { start: timeIn(start)!, ...counts };
}

export function readName({ id, name }: KeyName): KeyName {
  return { id, name };
}

/** Reads a secret, which goes to stdout as it is. */
export function secretIn(text: unknown): string {
  if (typeof text !== 'string' || !readSecret(text)) throw new TypeError('not a secret');
  return text;
}

export function permissionsIn(groups: readonly ResourceActions[]): Permission[] {
  return groups.flatMap(({ resource, actions }) => actions.map((action): Permission => `${resource}:${action}`));
}

/** Reads a time into milliseconds since 1970. */
export function timeIn(text: unknown): number | null {
  if (text === null) return null;
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new TypeError('not a time');
  return time;
}

/** Reads grants, roles first. */
function grantsIn(grants: string[]): Pick<KeyFields, 'roles' | 'permissions'> {
  const isPermission = (grant: string): grant is Permission => grant.includes(':');
  return { roles: grants.filter((grant) => !isPermission(grant)), permissions: grants.filter(isPermission) };
}

/** Reads the fields of a table, which the generated types leave out. The server has checked them. */
function keyValuesIn<Table extends FieldTable>(table: Table, data: object): ValuesOf<Table> {
  return valuesOf(table, data as ValuesOf<Table>);
}

function publicIdIn(prefix: unknown): string {
  const publicId = typeof prefix === 'string' ? publicIdOfPrefix(prefix) : undefined;
  if (publicId === undefined) throw new TypeError('not a prefix');
  return publicId;
}

/** Reads what an apply changes. @param ids of the keys that were created, in the order of their declarations */
export function readPlanned(
  { changes, unchanged, waiting }: Answered<ApplyMutation>,
  declared: readonly DeclaredKey[],
  ids: readonly string[],
): PlannedChanges {
  let created = 0;
  const read = changes.map(({ action, name, keyId, secretSince, changes: fields }): PlannedChange => {
    if (action === 'CREATE') {
      const key = declared.find((each) => each.name === name);
      if (!key) throw new TypeError('a key that is not declared');
      return plannedCreation(key, ids[created++]);
    }
    if (action === 'DELETE') return { action, name, id: keyId! };
    return {
      action,
      name,
      id: keyId!,
      ...(secretSince !== null && { secretSince: timeIn(secretSince)! }),
      changes: fieldsIn(fields),
    };
  });
  if (!Number.isInteger(unchanged)) throw new TypeError('not a number');
  const waits = waiting.map(({ name, previousEndsAt }) => ({ name, previousEndsAt: timeIn(previousEndsAt) }));
  return { changes: read, unchanged, confusable: [], waiting: waits };
}

/** The log has when a key was disabled; commands show whether it is enabled, before who created it. */
function fieldsIn(fields: ChangeFragment['changes']): FieldChange[] {
  const read = fields.map(({ field, before, after }): FieldChange => {
    const [old, fresh] = [JSON.parse(before!), JSON.parse(after!)] as [FieldValue, FieldValue];
    if (field !== 'disabledAt') return { field: field as FieldChange['field'], before: old, after: fresh };
    return { field: 'enabled', before: old === null, after: fresh === null };
  });
  const isLast = ({ field }: FieldChange) => Number(field === 'createdBy');
  return read.toSorted((one, other) => isLast(one) - isLast(other));
}

export function readContained({
  keyId,
  name,
  exists,
  issued,
  changes,
  requests,
}: Answered<ContainMutation>): Contained {
  return {
    apiKey: readName({ id: keyId, name }),
    exists: exists === true,
    issued: issued.map(readIssue),
    changes: changes.map(({ name: changed, keyId: id, changes: fields }): PlannedChange => {
      return { action: 'UPDATE', name: changed, id: id!, changes: fieldsIn(fields) };
    }),
    requests: requests.map(({ requestId: id, clientName: client, keyName }) => ({ id, client, keyName })),
  };
}

/** An edge as it is listed. */
export function readEdge({
  edgeId: id,
  keyId,
  keyName,
  lastAskedAt,
  ...edge
}: Answered<EdgesQuery>[number]): ListedEdge {
  const address = edge.address ?? undefined;
  return { ...edge, id, address, key: { id: keyId, name: keyName }, lastAskedAt: timeIn(lastAskedAt)! };
}

type EntryData = Answered<AuditLogQuery>['edges'][number]['node'];

export function readEntry(data: EntryData): AuditEntry {
  const { number, actor, action, keyId, keyName, changes, address, hash } = data;
  if (!Number.isInteger(number)) throw new TypeError('not a number');
  const { kind, keyId: id, name } = actor;
  return {
    number,
    at: timeIn(data.at)!,
    actor: { kind, id, name },
    action,
    apiKey: keyId === null ? null : { id: keyId, name: keyName! },
    before: valuesIn(changes, 'before'),
    after: valuesIn(changes, 'after'),
    ...(address !== null && { address }),
    hash,
  };
}

/** One side of all changed fields; null if there was no key then. */
function valuesIn(changes: EntryData['changes'], side: 'before' | 'after'): AuditValues | null {
  if (changes.every((change) => change[side] === null)) return null;
  return Object.fromEntries(changes.map((change) => [change.field, JSON.parse(change[side]!) as unknown]));
}

/** Reads what can be granted at a server. */
export function readCatalog({ resources, actions, roles }: Answered<CatalogQuery>): Catalog {
  const builtIn = createCatalog();
  const permissions = new Map<Role, readonly Permission[]>();
  const meanings = new Map<Role, string>();
  for (const { role, description, permissions: included } of roles) {
    permissions.set(role, permissionsIn(included));
    meanings.set(role, description);
  }
  const known = new Set<string>(resources.flatMap((name) => actions.map((action) => `${name}:${action}`)));
  return {
    resources,
    actions,
    roles: [...permissions.keys()],
    // What is limited, and demanded, is decided there.
    defaultLimits: [],
    policy: NO_POLICY,
    declaredIn: 'the svc-api.yaml of the server',
    meaningOf: (role) => meanings.get(role) ?? '',
    permissionsOf: (role) => permissions.get(role) ?? [],
    includes: (role, other) => builtIn.includes(role, other),
    knows: (grant) => permissions.has(grant) || known.has(grant),
  };
}

/** A new key as the schema takes it. Its values are valid. */
export function newKeyInput({ name, overwrite, ...input }: NewKey, catalog: Catalog): CreateApiKeyInput {
  return { name, ...changeInput(input, catalog), overwrite };
}

/** Changes of a key as the schema takes them. Their values are valid. */
export function changeInput({ roles, permissions, expiresAt, ...change }: KeyChange, catalog: Catalog) {
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

export function declaredInput({ permissions, expiresAt, ...key }: DeclaredKey): DeclaredApiKeyInput {
  return { ...key, permissions: permissionsInput(permissions), expiresAt: formatTime(expiresAt) };
}

/** One by one: grouped by their resources, they would lose their order. */
function permissionsInput(permissions: readonly Permission[]): PermissionInput[] {
  return permissions.map((permission) => {
    const [resource, action] = splitPermission(permission);
    return { resource, actions: [action] };
  });
}

/** Reads what an application asks for. Whatever is not as it should be throws. */
export function readConsent(data: ConsentFragment): ConsentState {
  const { requestId: id, flow, clientId, clientName, keyExpiresIn, address, status, keyName } = data;
  if (typeof id !== 'string' || typeof clientName !== 'string')
    throw new TypeError('a request without an id and a name');
  return {
    id,
    flow,
    client: { id: clientId, name: clientName },
    audience: data.audience,
    ...grantsIn(data.grants),
    keyExpiresIn,
    address,
    createdAt: timeIn(data.createdAt)!,
    expiresAt: timeIn(data.expiresAt)!,
    status,
    approval:
      keyName === null ? null : { keyName, ...grantsIn(data.keyGrants!), keyExpiresAt: timeIn(data.keyExpiresAt) },
  };
}
