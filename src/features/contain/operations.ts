import { changing } from '../../keys/operations/index.ts';
import { containedAs, Containments } from './contain.ts';

/** The operation that contains a key, and how a server is asked for it. */
export const containOperations = {
  operations: {
    containKey: changing({
      needs: 'API_KEY:UPDATE_OWN',
      does:
        'Undoes what a key did, in one transaction: it and all its child keys are disabled, secrets end that it issued ' +
        'to others, and what it widened or enabled is taken back. Who may update and delete the key, and the others, ' +
        'may do so; of a key that is gone, who may update and delete any. No key gets more by it than it has.',
      run: async (
        keys,
        { key, since, dryRun = false }: { key: string; since?: string | undefined; dryRun?: boolean },
        actor,
      ) => containedAs(await keys.feature(Containments)[dryRun ? 'plan' : 'contain'](key, since, actor)),
    }),
  },
  remote: () => import('./remote.ts'),
};
