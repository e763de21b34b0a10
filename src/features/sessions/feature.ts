import type { OwnFeature } from '../../feature.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { isSecretlessId } from '../../keys/secret/index.ts';
import { SESSIONS } from './session.ts';

/** Sessions of signed-in people. They end when their key is deleted or disabled, and with a person's last grant. */
export const sessions: OwnFeature = {
  name: 'sessions',
  store: async () => (await import('./store.ts')).sessionStore,
  onKeys: {
    async changed(transaction, changes) {
      const ended = changes.filter(({ before, after }) => before && (isDisabled(before, after) || isLeftOut(after)));
      await transaction.port(SESSIONS).end(ended.map(({ after }) => after.id));
    },
    restoring: async (_, ids) => (transaction) => transaction.port(SESSIONS).end(ids),
    deleted: (transaction, keys) => transaction.port(SESSIONS).end(keys.map(({ id }) => id)),
  },
};

function isDisabled(before: ApiKey, after: ApiKey): boolean {
  return after.disabledAt !== null && (before.disabledAt === null || before.damaged === true);
}

function isLeftOut({ publicId, roles, permissions }: ApiKey): boolean {
  return isSecretlessId(publicId) && roles.length + permissions.length === 0;
}
