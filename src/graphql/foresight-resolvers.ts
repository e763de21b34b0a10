import type { EndBounds, Grantable } from '../keys/changes/grantable.ts';
import type { PossibleChange } from '../keys/changes/possible-changes.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { Catalog, Role } from '../keys/permissions/catalog.ts';
import { groupPermissions } from '../keys/permissions/permission-set.ts';
import type { KeysService } from '../keys/service.ts';
import { formatDuration } from '../keys/time.ts';
import type { BudgetedContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import type { Loaders } from './loaders.ts';
import type { Resolve } from './resolve.ts';

/** The resolvers for what a key would be let do, and for what is demanded of all keys. */
export function foresightResolversOf(
  keys: KeysService,
  loadersOf: (context: BudgetedContext) => Loaders,
): { Query: Resolvers; ApiKey: Resolvers } {
  const { catalog } = keys;

  const policy: Resolve = () => {
    const { maxLifetime, requireExpiry, grantableByKeys, maxKeysPerCreator, disableUnused } = catalog.policy;
    return {
      maxLifetime: durationOf(maxLifetime),
      requireExpiry,
      grantableByKeys,
      maxKeysPerCreator,
      disableUnused: durationOf(disableUnused),
    };
  };
  const grantable: Resolve = async (_, __, { principal }) => grantableAs(await keys.grantable(principal), catalog);

  return {
    Query: { policy, grantable },
    ApiKey: {
      possibleChanges: async (key: ApiKey, _: object, context: BudgetedContext) =>
        (await loadersOf(context).possibleChanges.load(key)).map(changeAs),
      grantable: (key: ApiKey, _: object, { budget, principal }: BudgetedContext) =>
        budget.inSequence(async () => grantableAs(await keys.grantableTo(key, principal), catalog)),
    },
  };
}

/** A role as it is published: see `RoleGrants`. */
export function roleGrants(role: Role, catalog: Catalog): object {
  return {
    role,
    description: catalog.meaningOf(role),
    permissions: groupPermissions(catalog.permissionsOf(role)),
  };
}

function changeAs({ change, refusal }: PossibleChange): object {
  return { change, allowed: refusal === null, ...refusal };
}

function grantableAs({ refusal, roles, permissions, withheld, ...found }: Grantable, catalog: Catalog): object {
  return {
    reason: refusal?.reason,
    roles: () => roles.map((role) => roleGrants(role, catalog)),
    permissions: () => permissions.byResource(),
    withheld,
    ends: async () => boundsAs(await found.ends()),
    creatable: () => found.countCreatable(),
  };
}

function boundsAs({ refusal, latest, required }: EndBounds): object {
  return { reason: refusal?.reason, latest, required };
}

function durationOf(time: number | null): string | null {
  return time === null ? null : formatDuration(time);
}
