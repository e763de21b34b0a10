import { USED_TOKENS } from '../keys/repository/index.ts';
import { portOfStore } from './port-of-store.ts';

/** The tokens that were exchanged for keys. */
export const usedTokens = portOfStore({
  port: USED_TOKENS,
  read: () => ({}),
  write: ({ db }) => ({
    async use(digest, until, now) {
      await db.deleteFrom('used_tokens').where('ends_at', '<=', now).execute();
      const values = { digest, ends_at: until };
      const { numInsertedOrUpdatedRows: inserted } = await db
        .insertInto('used_tokens')
        .values(values)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirstOrThrow();
      return inserted === 1n;
    },
    async giveBack(digest) {
      await db.deleteFrom('used_tokens').where('digest', '=', digest).execute();
    },
  }),
});
