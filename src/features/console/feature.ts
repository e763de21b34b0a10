import type { OwnFeature } from '../../feature.ts';
import type { DoorRoom } from '../sessions/index.ts';

/** Pages for managing keys, approving requests of applications, and signing in to guarded services. */
export const console: OwnFeature = {
  name: 'console',
  needs: ['people', 'routes', 'sessions', 'consent', 'contain', 'usage'],
  commands: {
    serve: {
      flags: {
        'no-console': { description: 'Do not serve /console, the pages for managing keys.', group: 'OPERATION' },
      },
    },
  },
  routes: async (app, context) => (await import('./routes.ts')).addConsole(app, context),
  provides: {
    async door(): Promise<DoorRoom> {
      const { addDoor, openDoor } = await import('./door.tsx');
      return { add: addDoor, open: openDoor };
    },
  },
  inPrimary: async () => (await import('./forms-of-workers.ts')).keepForms(),
};
