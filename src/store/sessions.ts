import type { Kysely } from 'kysely';
import { type FormOutcome, type Session, SESSIONS, type SessionWriter } from '../keys/session.ts';
import { portOfStore } from './connection.ts';
import type { SessionTable, Tables } from './tables.ts';

/** The sessions of people who have signed in. */
export const sessions = portOfStore({
  port: SESSIONS,
  read: ({ run }) => ({ find: (tokenDigest) => run((db) => findSession(db, tokenDigest)) }),
  write: ({ db }) => createWriter(db),
  empty: () => ({ find: async () => undefined }),
});

async function findSession(db: Kysely<Tables>, tokenDigest: string): Promise<Session | undefined> {
  const row = await db.selectFrom('sessions').selectAll().where('token_digest', '=', tokenDigest).executeTakeFirst();
  return row && readSession(row);
}

function createWriter(db: Kysely<Tables>): Omit<SessionWriter, 'find'> {
  return {
    async insert({ tokenDigest, secretDigest, keyId, startedAt, usedAt }) {
      await db
        .insertInto('sessions')
        .values({
          token_digest: tokenDigest,
          secret_digest: secretDigest,
          key_id: keyId,
          started_at: startedAt,
          used_at: usedAt,
          form_outcomes: null,
        })
        .execute();
    },
    async touch(tokenDigest, usedAt) {
      await db
        .updateTable('sessions')
        .set({ used_at: usedAt })
        .where('token_digest', '=', tokenDigest)
        .where('used_at', '<', usedAt)
        .execute();
    },
    async keepOutcomes(tokenDigest, outcomes) {
      await db
        .updateTable('sessions')
        .set({ form_outcomes: JSON.stringify(outcomes) })
        .where('token_digest', '=', tokenDigest)
        .execute();
    },
    async delete(tokenDigest) {
      await db.deleteFrom('sessions').where('token_digest', '=', tokenDigest).execute();
    },
    async leaveNewest(keyId, count) {
      const newest = db
        .selectFrom('sessions')
        .select('token_digest')
        .where('key_id', '=', keyId)
        .orderBy('used_at', 'desc')
        .limit(count);
      await db.deleteFrom('sessions').where('key_id', '=', keyId).where('token_digest', 'not in', newest).execute();
    },
    async forget({ startedAfter, usedAfter }) {
      await db
        .deleteFrom('sessions')
        .where((row) => row.or([row('used_at', '<=', usedAfter), row('started_at', '<=', startedAfter)]))
        .execute();
    },
  };
}

/** PostgreSQL returns large numbers as text. */
function readSession(row: SessionTable): Session {
  return {
    tokenDigest: row.token_digest,
    secretDigest: row.secret_digest,
    keyId: row.key_id,
    startedAt: Number(row.started_at),
    usedAt: Number(row.used_at),
    outcomes: row.form_outcomes === null ? [] : (JSON.parse(row.form_outcomes) as FormOutcome[]),
  };
}
