import type { OwnFeature } from '../../feature.ts';
import { findIssued, requireToContainNow } from './contain.ts';
import { EFFECTS, recordEffects } from './effects.ts';
import { containOperations } from './operations.ts';

/** Records effects of keys on other keys and undoes them, including approved requests of applications. */
export const contain: OwnFeature = {
  name: 'contain',
  needs: ['consent'],
  ...containOperations,
  schema: () => import('./schema.ts'),
  store: async () => (await import('./store.ts')).effectStore,
  onKeys: {
    changing: recordEffects,
    issued: (...asked) => findIssued(...asked),
    rules: { CONTAIN: requireToContainNow },
    async restoring(backup, ids) {
      const effects = await backup.port(EFFECTS).export(ids);
      return (transaction) => transaction.port(EFFECTS).insert(effects);
    },
  },
};
