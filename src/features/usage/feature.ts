import type { OwnFeature } from '../../feature.ts';
import { usageOperations } from './operations.ts';
import { boundsAt, USAGE } from './usage.ts';

/** How the requests of keys ended, by hours and days. */
export const usage: OwnFeature = {
  name: 'usage',
  operations: usageOperations,
  schema: () => import('./schema.ts'),
  store: async () => (await import('./store.ts')).usageStore,
  onKeys: {
    used: (ports, uses) => ports.port(USAGE).add(uses),
    condensing: (ports, now, rows) => ports.port(USAGE).condense(boundsAt(now, rows)),
    forgetting: (ports, ids, rows) => ports.port(USAGE).forget(ids, rows),
  },
};
