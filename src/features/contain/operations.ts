import { changing } from '../../keys/operations/index.ts';
import { containedAs, Containments } from './contain.ts';

/** The operation that contains a key, and how a server is asked for it. */
export const containOperations = {
  operations: {
    containKey: changing({
      needs: 'API_KEY:UPDATE_OWN',
      does:
        'Disables a key with all its child keys and undoes its changes to other keys, in one transaction: revokes secrets ' +
        'it issued, removes permissions it added, and disables keys it enabled. Requires permission to update and delete ' +
        'the key and the others; for a deleted key, any key. No key gains permissions.',
      run: async (
        keys,
        { key, since, dryRun = false }: { key: string; since?: string | undefined; dryRun?: boolean },
        actor,
      ) => containedAs(await keys.feature(Containments)[dryRun ? 'plan' : 'contain'](key, since, actor)),
    }),
  },
  remote: () => import('./remote.ts'),
};
