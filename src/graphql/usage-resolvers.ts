import DataLoader from 'dataloader';
import type { ApiKey } from '../keys/key/api-key.ts';
import { groupPermissions } from '../keys/permissions/permission-set.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import { NO_USAGE, previousUseSince, type UsageTotals } from '../keys/key/usage.ts';
import type { Resolvers } from './extension.ts';
import { knownTo } from './resolve.ts';

/** The resolvers for how a key is used. Totals are loaded for a whole page at once. */
export function usageResolversOf(keys: KeysService): Resolvers {
  const { catalog } = keys;
  const load = async (ids: readonly string[]) => {
    const found = await keys.usageOf(ids);
    return ids.map((id) => found.get(id) ?? NO_USAGE);
  };
  const usage = new DataLoader<string, UsageTotals>(load, { cache: false });

  return {
    uses: async ({ id }: ApiKey) => (await usage.load(id)).uses,
    lastUsedAt: async ({ id }: ApiKey) => (await usage.load(id)).lastUsedAt,
    usedPermissions: async ({ id }: ApiKey) =>
      knownTo(catalog, groupPermissions([...(await keys.usedPermissionsOf(id)).keys()])),
    rotation: (key: ApiKey) => {
      const rotation = keys.rotationOf(key);
      return (
        rotation && {
          ...rotation,
          previousPrefix: prefixOf(rotation.previousPublicId),
          previousLastUsedAt: async () => previousUseSince(rotation, await usage.load(key.id)),
        }
      );
    },
  };
}
