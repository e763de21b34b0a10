import type { Feature } from '../../feature.ts';
import { EFFECTS, recordEffects } from '../../keys/changes/index.ts';
import { effectStore } from './store.ts';

/** Effects of keys on other keys, and how they are undone. Requests of applications that a key agreed to are among them. */
export const contain: Feature = {
  name: 'contain',
  needs: ['consent'],
  ports: [effectStore],
  onKeys: {
    changing: recordEffects,
    async restoring(backup, ids) {
      const effects = await backup.port(EFFECTS).export(ids);
      return (transaction) => transaction.port(EFFECTS).insert(effects);
    },
  },
};
