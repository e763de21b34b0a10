import type { Kysely } from 'kysely';
import { type Session, SESSIONS, type SessionWriter } from './session.ts';
import { chunksOf, portOfStore, type StoreOfFeature, type Tables } from '../../store/index.ts';
import { type SessionTable, sessionTables } from './tables.ts';

/** The sessions of people who have signed in. */
const sessions = portOfStore({
  port: SESSIONS,
  read: ({ run }) => ({ find: (tokenDigest) => run((db) => findSession(db, tokenDigest)) }),
  write: ({ db }) => sessionWriterOf(db),
});

/** All that is kept of sessions. */
export const sessionStore: StoreOfFeature = { ...sessionTables, ports: [sessions] };

async function endSessionsOf(db: Kysely<Tables>, ids: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(ids)) await db.deleteFrom('sessions').where('key_id', 'in', chunk).execute();
}

async function findSession(db: Kysely<Tables>, tokenDigest: string): Promise<Session | undefined> {
  const row = await db.selectFrom('sessions').selectAll().where('token_digest', '=', tokenDigest).executeTakeFirst();
  return row && sessionOf(row);
}

function sessionWriterOf(db: Kysely<Tables>): Omit<SessionWriter, 'find'> {
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
          entry_digest: null,
          entered_at: null,
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
    async noteEntry(tokenDigest, { proofDigest, at }) {
      await db
        .updateTable('sessions')
        .set({ entry_digest: proofDigest, entered_at: at })
        .where('token_digest', '=', tokenDigest)
        .execute();
    },
    async delete(tokenDigest) {
      await db.deleteFrom('sessions').where('token_digest', '=', tokenDigest).execute();
    },
    end: (keyIds) => endSessionsOf(db, keyIds),
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
function sessionOf(row: SessionTable): Session {
  return {
    tokenDigest: row.token_digest,
    secretDigest: row.secret_digest,
    keyId: row.key_id,
    startedAt: Number(row.started_at),
    usedAt: Number(row.used_at),
    entry: row.entry_digest === null ? null : { proofDigest: row.entry_digest, at: Number(row.entered_at) },
  };
}
