import type { Feature } from '../../feature.ts';
import { keysInUse } from './store.ts';

/** Keys that the policy disables, as they are not used. */
export const unusedKeys: Feature = {
  name: 'unused-keys',
  ports: [keysInUse],
  background: async (context) => (await import('./background.ts')).disableUnused(context),
};
