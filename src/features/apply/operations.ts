import { presented } from '../../keys/changes/index.ts';
import { withoutUndefined } from '../../keys/basics/index.ts';
import { changing } from '../../keys/operations/index.ts';
import { type Applied, appliedAs, type ApplyInput, Declarations } from './apply.ts';

/** The operation that applies a declaration, and how a server is asked for it. */
export const applyOperations = {
  operations: {
    applyApiKeys: changing({
      needs: 'API_KEY:UPDATE_OWN',
      does:
        'Brings keys to their declared state, in one transaction; writes nothing if nothing differs. Keys that ' +
        "are not declared stay; with 'prune', those that an apply created are deleted.",
      run: async (keys, { declared, rules, dryRun, delivery }: ApplyInput, actor): Promise<Applied> => {
        const declarations = keys.feature(Declarations);
        const options = withoutUndefined(rules);
        if (dryRun)
          return appliedAs({ plan: await declarations.plan(declared, options, actor), created: [], rotated: [] });
        const delivered = withoutUndefined({ ...options, delivery: delivery && presented(delivery, appliedAs) });
        return appliedAs(await declarations.apply(declared, delivered, actor));
      },
    }),
  },
  remote: () => import('./remote.ts'),
};
