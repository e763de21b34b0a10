import type { AuditAction, AuditActor, AuditEntry, AuditValues } from '../keys/audit/index.ts';
import type { ErrorCode, Limit } from '../keys/basics/index.ts';
import {
  type FieldChange,
  type FieldTable,
  fieldsOf,
  type FieldValue,
  filterFields,
  fixedFields,
  graphqlTypeOf,
  IDENTITY_FIELDS,
  type identityFields,
  type KeyFields,
  labelFields,
  type PlannedChange,
  restrictionFields,
  type Status,
  type ValuesOf,
} from '../keys/key/index.ts';
import {
  type Action,
  ALL_ACCESS,
  type Catalog,
  createCatalog,
  NO_POLICY,
  type Permission,
  type ResourceActions,
  type Role,
  splitPermission,
} from '../keys/permissions/index.ts';
import { publicIdOfPrefix, readSecret } from '../keys/secret/index.ts';
import type { KeyState, KeyWithAccess, ManyPlan, NamedIssue } from '../keys/service/index.ts';
import {
  around,
  json,
  list,
  mapped,
  mutation,
  nullable,
  number,
  object,
  of,
  only,
  query,
  type Shape,
  text,
  time,
  whole,
  word,
  yesOrNo,
} from './shape.ts';

const texts = list(text);
/** A key by its id and name. */
export const name = object({ id: text, name: text });
/** Permissions, grouped by their resources in the answer. */
export const permissions = mapped(list(object({ resource: text, actions: list(word<Action>()) })), permissionsIn);
const isPermission = (grant: string): grant is Permission => grant.includes(':');
export const rolesOf = mapped(texts, (grants): Role[] => grants.filter((grant) => !isPermission(grant)));
export const permissionsOf = mapped(texts, (grants) => grants.filter(isPermission));
/** Text of a secret, which is printed unchanged. */
export const secret = mapped(text, (value) => {
  if (!readSecret(value)) throw new TypeError('not a secret');
  return value;
});
const publicId = mapped(text, (prefix) => text.read(publicIdOfPrefix(prefix)));

const FORMS = { text, list: texts, number, boolean: yesOrNo, json };

/** The fields of a table. The server has checked their values. */
function fieldsIn<Table extends FieldTable>(table: Table) {
  const shapes = fieldsOf(table).map(([field, { form, numbers, none }]): [string, Shape<unknown>] => {
    const shape = form === 'list' && numbers ? list(number) : FORMS[form];
    return [field, none === null ? nullable<unknown>(shape) : shape];
  });
  return Object.fromEntries(shapes) as { [Name in keyof Table]: Shape<ValuesOf<Table>[Name]> };
}

export const granted = { roles: of('grants', rolesOf), permissions: of('grants', permissionsOf) };
const given = {
  name: text,
  ...fieldsIn(labelFields),
  ...granted,
  ...fieldsIn(restrictionFields),
  expiresAt: nullable(time),
};

/** The identities that keys without a secret stand for. */
const identities = Object.fromEntries(
  IDENTITY_FIELDS.map(([name, { parts }]) => [
    name,
    nullable(object(Object.fromEntries(Object.keys(parts).map((part) => [part, text])))),
  ]),
) as unknown as { [Name in keyof typeof identityFields]: Shape<ValuesOf<typeof identityFields>[Name]> };

const keyFields: Shape<KeyFields> = object({
  id: text,
  ...given,
  publicId: of('prefix', publicId),
  createdAt: time,
  createdBy: nullable(text),
  disabledAt: nullable(time),
  managed: yesOrNo,
  ...fieldsIn(fixedFields),
  ...identities,
});

const rotation = nullable(
  object({
    startedAt: time,
    previousPublicId: of('previousPrefix', publicId),
    previousEndsAt: nullable(time),
    previousLastUsedAt: nullable(time),
  }),
);

/** The fields of a key's state. */
export const stateFields = {
  apiKey: of('', keyFields),
  status: word<Status>(),
  disabledByPolicy: yesOrNo,
  unknownGrants: texts,
  rotation: mapped(rotation, (running) => {
    if (running === null) return null;
    const { previousLastUsedAt: _, ...shown } = running;
    return shown;
  }),
  use: around({
    uses: number,
    lastUsedAt: nullable(time),
    previousLastUsedAt: of(
      'rotation',
      mapped(rotation, (running) => running?.previousLastUsedAt ?? null),
    ),
  }),
  budgets: list(object({ limit: word<Limit>(), left: number })),
};
const state: Shape<KeyState> = object(stateFields);

/** Effects of a key on others. */
export const issued: Shape<NamedIssue[]> = list(
  object({ name: text, keyId: nullable(text), what: word<NamedIssue['what']>(), at: time, disabled: yesOrNo }),
);

const access: Shape<KeyWithAccess> = object({
  ...stateFields,
  effectivePermissions: permissions,
  limitedBy: list(
    object({
      ancestor: around({ id: of('keyId', text), name: nullable(text) }),
      status: word<Status>(),
      expiresAt: nullable(time),
      permissions,
      ...fieldsIn(restrictionFields),
    }),
  ),
  issued,
});

/** The nodes of a page. */
const nodes = <Node>(node: Shape<Node>) => of('edges', list(only('node', node)));
/** A page of keys. */
export const pageOf = <Key>(key: Shape<Key>) =>
  object({ keys: nodes(key), hasNextPage: of('pageInfo', only('hasNextPage', yesOrNo)) });

const fieldChanges = list(object({ field: text, before: nullable(text), after: nullable(text) }));
type FieldChanges = ReturnType<typeof fieldChanges.read>;

/** A change of a key. */
export const change = object({
  action: word<PlannedChange['action']>(),
  name: text,
  keyId: nullable(text),
  secretSince: nullable(time),
  changes: fieldChanges,
});

/** A change in the form for display. */
export function plannedIn({ action, name: changed, ...rest }: ReturnType<typeof change.read>): PlannedChange {
  const { keyId, secretSince, changes } = rest;
  return {
    action,
    name: changed,
    ...(keyId !== null && { id: keyId }),
    ...(secretSince !== null && { secretSince }),
    ...(action !== 'DELETE' && { changes: shownIn(changes) }),
  };
}

/** The log records when a key was disabled; commands show whether it is enabled, before its creator. */
function shownIn(changes: FieldChanges): FieldChange[] {
  const read = changes.map(({ field, before, after }): FieldChange => {
    const [old, fresh] = [JSON.parse(before!), JSON.parse(after!)] as [FieldValue, FieldValue];
    if (field !== 'disabledAt') return { field: field as FieldChange['field'], before: old, after: fresh };
    return { field: 'enabled', before: old === null, after: fresh === null };
  });
  const isLast = ({ field }: FieldChange) => Number(field === 'createdBy');
  return read.toSorted((one, other) => isLast(one) - isLast(other));
}

const entry: Shape<AuditEntry> = mapped(
  object({
    number: whole,
    at: time,
    actor: object({ kind: word<AuditActor['kind']>(), id: of('keyId', nullable(text)), name: nullable(text) }),
    action: word<AuditAction>(),
    keyId: nullable(text),
    keyName: nullable(text),
    changes: fieldChanges,
    address: nullable(text),
    hash: text,
  }),
  ({ keyId, keyName, changes, address, ...shown }) => ({
    ...shown,
    apiKey: keyId === null ? null : { id: keyId, name: keyName! },
    before: valuesIn(changes, 'before'),
    after: valuesIn(changes, 'after'),
    ...(address !== null && { address }),
  }),
);

/** One side of all changed fields; null if the key did not exist then. */
function valuesIn(changes: FieldChanges, side: 'before' | 'after'): AuditValues | null {
  if (changes.every((each) => each[side] === null)) return null;
  return Object.fromEntries(changes.map((each) => [each.field, JSON.parse(each[side]!) as unknown]));
}

const denying = mapped(object({ deniedById: nullable(text), deniedByName: nullable(text) }), (by) =>
  by.deniedById === null ? null : { id: by.deniedById, name: by.deniedByName },
);

const manyPlan: Shape<ManyPlan> = object({
  changing: list(name),
  unchanged: list(name),
  refused: list(object({ key: of('apiKey', name), refusal: around({ reason: text, code: word<ErrorCode>() }) })),
  keys: of('total', number),
  lastUsedAt: nullable(time),
});

const catalog = mapped(
  object({
    resources: texts,
    actions: list(word<Action>()),
    roles: list(object({ role: text, description: text, permissions })),
  }),
  readCatalog,
);

function permissionsIn(groups: readonly ResourceActions[]): Permission[] {
  return groups.flatMap(({ resource, actions }) => actions.map((action): Permission => `${resource}:${action}`));
}

/** The grants of a server. */
function readCatalog({
  resources,
  actions,
  roles,
}: {
  resources: string[];
  actions: Action[];
  roles: { role: Role; description: string; permissions: Permission[] }[];
}): Catalog {
  const builtIn = createCatalog();
  const byName = new Map(roles.map((each) => [each.role, each]));
  // Hidden resources are still in force: ADMIN has them all.
  const all = byName.get(ALL_ACCESS)?.permissions ?? [];
  const inForce = new Set([...resources, ...all.map((permission) => splitPermission(permission)[0])]);
  const known = new Set<string>([...inForce].flatMap((each) => actions.map((action) => `${each}:${action}`)));
  return {
    resources: [...inForce],
    offered: resources,
    actions,
    roles: [...byName.keys()],
    // The server itself applies limits and its policy.
    defaultLimits: [],
    policy: NO_POLICY,
    // The server makes secrets.
    prefix: builtIn.prefix,
    declaredIn: 'the svc-api.yaml of the server',
    added: {},
    meaningOf: (role) => byName.get(role)?.description ?? '',
    permissionsOf: (role) => byName.get(role)?.permissions ?? [],
    includes: (role, other) => builtIn.includes(role, other),
    knows: (grant) => byName.has(grant) || known.has(grant),
  };
}

const ID = { id: 'ID!' };
const IDS = { ids: '[ID!]!' };
const FILTERS = {
  search: 'String',
  roles: '[Role!]',
  status: 'ApiKeyStatus',
  ...Object.fromEntries(fieldsOf(filterFields).map(([name, field]) => [name, graphqlTypeOf(field)])),
  createdBy: 'ID',
  expiresBefore: 'DateTime',
  unusedSince: 'DateTime',
};

/** The requests to servers, each with the types of its arguments and of its answer. */
export const REQUESTS = {
  permissions: query('permissions', {}, catalog),
  apiKey: query('apiKey', { id: 'ID', name: 'String' }, nullable(state)),
  show: query('apiKey', { name: 'String!' }, nullable(access)),
  decide: query(
    'apiKey',
    { ...ID, permission: 'String!' },
    nullable(
      only(
        'access(permission: $permission)',
        object({
          allowed: yesOrNo,
          permission: word<Permission>(),
          grantedBy: texts,
          status: word<Status>(),
          deniedBy: of('', denying),
        }),
      ),
    ),
  ),
  apiKeys: query('apiKeys', { first: 'Int!', after: 'String', ...FILTERS }, pageOf(state)),
  apiKeyList: query(
    'apiKeyList',
    { first: 'Int!', offset: 'Int!', sort: 'ApiKeySort!', descending: 'Boolean!', ...FILTERS },
    object({ keys: list(state), total: number, hasMore: yesOrNo, isSorted: of('sorted', yesOrNo) }),
  ),

  previewApiKey: query(
    'previewApiKey',
    { input: 'CreateApiKeyInput!' },
    object({ ...given, effectivePermissions: permissions }),
  ),
  createApiKey: mutation(
    'createApiKey',
    { input: 'CreateApiKeyInput!' },
    object({ key: secret, apiKey: keyFields, replaced: list(name) }),
  ),
  updateApiKey: mutation('updateApiKey', { input: 'UpdateApiKeyInput!' }, state),
  enable: mutation('setApiKeyEnabled', { ...ID, enabled: 'Boolean!' }, state),
  disable: mutation('setApiKeyEnabled', { ...ID, enabled: 'Boolean!' }, object({ ...stateFields, issued })),
  rotateApiKey: mutation(
    'rotateApiKey',
    { input: 'RotateApiKeyInput!' },
    object({
      key: secret,
      apiKey: state,
      created: list(keyFields),
      disabled: list(keyFields),
      issued,
    }),
  ),
  activateApiKeyRotation: mutation('activateApiKeyRotation', ID, state),
  finishApiKeyRotation: mutation('finishApiKeyRotation', ID, state),
  rollBackApiKeyRotation: mutation('rollBackApiKeyRotation', ID, state),
  apiKeyChangePlan: query(
    'apiKeyChangePlan',
    { ...IDS, change: 'ManyKeysChange!', expiresAt: 'DateTime', update: 'ManyKeysUpdate' },
    manyPlan,
  ),
  narrowApiKeys: mutation('narrowApiKeys', { input: 'NarrowApiKeysInput!' }, only('keys', list(name))),
  updateApiKeys: mutation('updateApiKeys', { ...IDS, update: 'ManyKeysUpdate!' }, only('keys', list(name))),
  deleteApiKeys: mutation('deleteApiKeys', IDS, object({ keys: list(name), issued })),

  auditLog: query(
    'auditLog',
    {
      first: 'Int',
      beforeNumber: 'Int',
      afterNumber: 'Int',
      apiKey: 'String',
      actor: 'String',
      action: 'AuditAction',
      outcome: 'AuditOutcome',
      since: 'DateTime',
      until: 'DateTime',
    },
    only('edges', list(only('node', entry))),
  ),
};
