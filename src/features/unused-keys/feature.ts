import type { OwnFeature } from '../../feature.ts';

/** Keys that the policy disables, as they are not used. */
export const unusedKeys: OwnFeature = {
  name: 'unused-keys',
  background: async (context) => (await import('./background.ts')).disableUnused(context),
  store: async () => (await import('./store.ts')).unusedKeysStore,
};
