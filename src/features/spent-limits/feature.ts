import type { OwnFeature } from '../../feature.ts';
import { isBudgetUnit, USED_LIMITS } from '../../keys/basics/index.ts';

/**
 * Keeps the usage of limits. A key that replaces another takes over its usage. Budgets restart, unless a key replaces
 * itself.
 */
export const spentLimits: OwnFeature = {
  name: 'spent-limits',
  onKeys: {
    async replacing(transaction, { apiKey: key, replaced: [named, ...others], takesOwnPlace }) {
      const spent = await transaction.port(USED_LIMITS).find([named, ...others].map(({ id }) => id));
      const kept = spent.filter(({ keyId, unit }) => keyId === named.id && (takesOwnPlace || !isBudgetUnit(unit)));
      return {
        replaced: (here) => here.port(USED_LIMITS).insert(kept.map((each) => ({ ...each, keyId: key.id }))),
        reverted: (here) => here.port(USED_LIMITS).insert(spent),
      };
    },
  },
};
