import type { OwnFeature } from '../../feature.ts';
import { usageOperations } from './operations.ts';
import { USED_GRANTS } from './suggest.ts';
import { boundsAt, USAGE } from './usage.ts';

/** How the requests of keys ended, by hours and days, and which of their grants they used. */
export const usage: OwnFeature = {
  name: 'usage',
  operations: usageOperations,
  schema: () => import('./schema.ts'),
  store: async () => (await import('./store.ts')).usageStore,
  onKeys: {
    async used(ports, uses) {
      await ports.port(USED_GRANTS).add(uses);
      await ports.port(USAGE).add(uses);
    },
    condensing: (ports, now, rows) => ports.port(USAGE).condense(boundsAt(now, rows)),
    async forgetting(ports, ids, rows) {
      await ports.port(USED_GRANTS).forget(ids);
      return ports.port(USAGE).forget(ids, rows);
    },
  },
};
