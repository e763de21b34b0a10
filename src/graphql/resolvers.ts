import { arch, platform } from 'node:process';
import { containedAs } from '../keys/changes/operator-containments.ts';
import type { Issued } from '../keys/changes/contain.ts';
import type { FieldChange } from '../keys/key/field-changes.ts';
import type { BudgetedContext } from './context.ts';
import { mayFor } from '../keys/authorization/principal.ts';
import type { ApiKey, NewKey } from '../keys/key/api-key.ts';
import { type Action, type Permission, type Role, unknownGrantsOf } from '../keys/permissions/catalog.ts';
import { withoutUndefined } from '../keys/options.ts';
import { cursorOf, type PageQuery } from '../keys/list.ts';
import { MAX_PAGE_SIZE } from '../keys/page.ts';
import { groupPermissions, type ResourceActions, PermissionSet } from '../keys/permissions/permission-set.ts';
import type { RotationRequest } from '../keys/key/rotation.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import { DateTime } from './date-time.ts';
import type { Resolvers, ServiceInfo } from './extension.ts';
import { refuseNulls } from './nulls.ts';
import { badInput, connectionOf, knownTo, type Resolve } from './resolve.ts';
import { chainResolversOf } from './chain-resolvers.ts';
import { foresightResolversOf, roleGrants } from './foresight-resolvers.ts';
import { loadersOf } from './loaders.ts';
import { usageResolversOf } from './usage-resolvers.ts';

interface GrantsInput {
  roles?: Role[] | null;
  permissions?: ResourceActions[] | null;
}

interface RestrictionsInput {
  limits?: string[];
  allowFrom?: string[] | null;
}

interface NewKeyInput extends GrantsInput, RestrictionsInput {
  name: string;
  description?: string | null;
  expiresAt?: string | null;
  expiresIn?: string;
  overwrite: boolean;
}

/** The resolvers of the built-in fields. They shape the answers of the service, which decides what is allowed. */
export function resolversOf(keys: KeysService, info: ServiceInfo): Resolvers {
  const { catalog } = keys;
  const loaders = loadersOf(keys);
  const foresight = foresightResolversOf(keys, loaders);

  const me: Resolve = (_, __, { principal }) => principal.apiKey;
  const apiKeys: Resolve<PageQuery> = async (_, args, { principal }) => {
    const page = await keys.list(args, principal);
    return connectionOf(page.keys, cursorOf, page.hasNextPage);
  };
  const apiKey: Resolve<{ id?: string | null; name?: string | null }> = async (_, { id, name }, { principal }) => {
    if ((id == null) === (name == null)) throw badInput('Pass either the id or the name of the key.');
    return id == null ? keys.findByName(name!, principal) : keys.findById(id, principal);
  };
  const node: Resolve<{ id: string }> = (_, { id }, { principal }) => keys.findById(id, principal);
  const permissions: Resolve = () => ({
    roles: catalog.roles.map((role) => roleGrants(role, catalog)),
    resources: catalog.resources,
    actions: catalog.actions,
  });
  const previewPermissions: Resolve<GrantsInput> = (_, args) => PermissionSet.of(catalog, grantsOf(args)).byResource();

  const createApiKey: Resolve<{ input: NewKeyInput }> = async (_, { input }, { principal }) => {
    const { key, apiKey, replaced } = await keys.create(newKeyOf(input), principal);
    return { key, apiKey, replaced };
  };
  const previewApiKey: Resolve<{ input: NewKeyInput }> = async (_, { input }, { principal }) => {
    const preview = await keys.preview(newKeyOf(input), principal);
    const { roles, permissions, effectivePermissions } = preview;
    return {
      ...preview,
      grants: [...roles, ...permissions],
      effectivePermissions: groupPermissions(effectivePermissions),
    };
  };
  const updateApiKey: Resolve<{
    input: GrantsInput &
      RestrictionsInput & {
        id: string;
        name?: string;
        description?: string | null;
        expiresAt?: string | null;
        expiresIn?: string;
      };
  }> = async (_, { input }, { principal }) => {
    refuseNulls(input, ['description', 'allowFrom', 'expiresAt']);
    const given = grantsOf(input);
    const change = {
      ...(input.name === undefined ? {} : { name: input.name }),
      ...(input.description === undefined ? {} : { description: input.description }),
      ...(input.expiresAt === undefined ? {} : { expiresAt: input.expiresAt }),
      ...(input.expiresIn === undefined ? {} : { expiresIn: input.expiresIn }),
      ...(input.limits === undefined ? {} : { limits: input.limits }),
      ...(input.allowFrom === undefined ? {} : { allowFrom: input.allowFrom }),
      ...(input.roles === undefined ? {} : { roles: given.roles }),
      ...(input.permissions === undefined ? {} : { permissions: given.permissions }),
    };
    return (await keys.update(input.id, change, principal)).after;
  };
  const setApiKeyEnabled: Resolve<{ id: string; enabled: boolean }> = async (_, { id, enabled }, { principal }) =>
    (await keys.setEnabled(id, enabled, principal)).after;
  const rotateApiKey: Resolve<{ input: RotationRequest & { id: string } }> = async (_, { input }, { principal }) => {
    const { id, ...request } = input;
    const { key, after, created, disabled, issued } = await keys.rotate(id, request, principal);
    const readable = (page: readonly ApiKey[]) => page.filter((each) => mayFor(principal, 'READ', each));
    const others = { created: readable(created), disabled: readable(disabled), issued: issued.map(issuedAs) };
    return { key, apiKey: after, ...others };
  };
  const activateApiKeyRotation: Resolve<{ id: string }> = async (_, { id }, { principal }) =>
    (await keys.startGrace(id, principal)).after;
  const finishApiKeyRotation: Resolve<{ id: string }> = async (_, { id }, { principal }) =>
    (await keys.finishRotation(id, principal)).after;
  const rollBackApiKeyRotation: Resolve<{ id: string }> = async (_, { id }, { principal }) =>
    (await keys.rollBackRotation(id, principal)).after;
  const deleteApiKeys: Resolve<{ ids: string[] }> = async (_, { ids }, { principal }) => {
    if (ids.length > MAX_PAGE_SIZE)
      throw badInput(`There are ${ids.length} ids; at most ${MAX_PAGE_SIZE} are allowed.`);
    const deleted = await keys.delete(ids, principal);
    const issued = async () => (await keys.issuedBy(ids, principal)).map(issuedAs);
    return { deleted: deleted.length, keys: deleted, issued };
  };
  const containKey: Resolve<{
    input: { id?: string | null; name?: string | null; since?: string | null; dryRun: boolean };
  }> = async (_, { input: { id, name, since, dryRun } }, { principal }) => {
    if ((id == null) === (name == null)) throw badInput('Pass either the id or the name of the key.');
    const contained = await keys[dryRun ? 'planContainment' : 'contain'](id ?? name!, since ?? undefined, principal);
    const { changes, requests, apiKey: key, exists } = containedAs(contained);
    return {
      keyId: key.id,
      name: key.name,
      exists,
      issued: contained.issued.map(issuedAs),
      changes: changes.map(({ id: keyId, changes: fields = [], ...change }) => {
        const asJson = ({ field, before, after }: FieldChange) => {
          return { field, before: JSON.stringify(before), after: JSON.stringify(after) };
        };
        return { ...change, keyId, changes: fields.map(asJson) };
      }),
      requests: requests.map(({ id: requestId, client: clientName, keyName }) => ({ requestId, clientName, keyName })),
    };
  };

  return {
    DateTime,
    Node: { __resolveType: ({ __typename = 'ApiKey' }: { __typename?: string }) => __typename },
    Query: {
      me,
      online: () => true,
      info: () => ({
        ...info,
        uptime: Math.max(0, Date.now() - info.startedAt) / 1000,
        runtime: `Node.js ${process.version}`,
        platform: `${platform} ${arch}`,
      }),
      apiKeys,
      apiKey,
      node,
      permissions,
      previewApiKey,
      previewPermissions,
      ...foresight.Query,
    },
    Mutation: {
      createApiKey,
      updateApiKey,
      setApiKeyEnabled,
      rotateApiKey,
      activateApiKeyRotation,
      finishApiKeyRotation,
      rollBackApiKeyRotation,
      deleteApiKeys,
      containKey,
    },
    ApiKey: {
      roles: (key: ApiKey) => key.roles.filter((role) => catalog.knows(role)),
      permissions: (key: ApiKey) => knownTo(catalog, key.permissions),
      grants: (key: ApiKey) => [...key.roles, ...key.permissions],
      unknownGrants: (key: ApiKey) => unknownGrantsOf(key, catalog),
      issued: ({ id }: ApiKey, _: object, { principal, budget }: BudgetedContext) =>
        budget.inSequence(async () => (await keys.issuedBy([id], principal)).map(issuedAs)),
      prefix: (key: ApiKey) => prefixOf(key.publicId),
      ...chainResolversOf(keys, loaders),
      ...usageResolversOf(keys, loaders),
      ...foresight.ApiKey,
    },
  };
}

function issuedAs({ name, apiKey, what, at }: Issued): object {
  return { name, keyId: apiKey?.id, what, at, disabled: apiKey?.disabledAt != null };
}

function newKeyOf(input: NewKeyInput): NewKey {
  refuseNulls(input, ['description', 'allowFrom', 'expiresAt']);
  const { name, description, overwrite, limits, allowFrom, expiresIn } = input;
  const expiresAt = input.expiresAt ?? undefined;
  const given = { name, description, limits, allowFrom, expiresAt, expiresIn, overwrite };
  return { ...withoutUndefined(given), ...grantsOf(input) };
}

function grantsOf({ roles, permissions }: GrantsInput): { roles: Role[]; permissions: Permission[] } {
  const grants = (permissions ?? []).flatMap(({ resource, actions }) =>
    actions.map((action: Action): Permission => `${resource}:${action}`),
  );
  return { roles: roles ?? [], permissions: grants };
}
