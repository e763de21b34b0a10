import type { Feature } from '../../feature.ts';
import { SESSIONS } from '../../keys/repository/index.ts';
import { sessionStore } from './store.ts';

/** Sessions of people who have signed in. They end with their key, and when it is disabled. */
export const sessions: Feature = {
  name: 'sessions',
  ports: [sessionStore],
  onKeys: {
    async changed(transaction, changes) {
      const disabled = changes.filter(
        ({ before, after }) => after.disabledAt !== null && before && (before.disabledAt === null || before.damaged),
      );
      await transaction.port(SESSIONS).end(disabled.map(({ after }) => after.id));
    },
    restoring: async (_, ids) => (transaction) => transaction.port(SESSIONS).end(ids),
    deleted: (transaction, keys) => transaction.port(SESSIONS).end(keys.map(({ id }) => id)),
  },
};
