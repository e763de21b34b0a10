import type { OwnFeature } from '../../feature.ts';

/** Secrets that are found where they should not be. Anyone who knows a secret can revoke it. */
export const leaks: OwnFeature = {
  name: 'leaks',
  routes: async (app, context) => (await import('./routes.ts')).addLeaks(app, context),
};
