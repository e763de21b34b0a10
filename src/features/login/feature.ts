import type { OwnFeature } from '../../feature.ts';

/** Keys that a person gets for a server by a code. */
export const login: OwnFeature = {
  name: 'login',
  needs: ['consent'],
  provides: { storedKey: async () => (await import('./cli/credentials.ts')).keptKey },
};
