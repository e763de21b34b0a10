import type { Kysely } from 'kysely';
import type { ConsentFinder, ConsentWriter } from '../keys/repository.ts';
import type { ConsentRequest } from '../keys/requests/consent-request.ts';
import { clientOf, clientsOf, rememberClient, replaceGivenKey } from './application-keys.ts';
import type { Connection } from './connection.ts';
import type { ConsentRequestTable, Tables } from './tables.ts';

const COLUMNS = { id: 'id', handleDigest: 'handle_digest', codeDigest: 'code_digest' } as const;

/** Finds requests for keys, by what can read. */
export function consentFinderOf(run: Connection['run']): ConsentFinder {
  return {
    find: (by, value) =>
      run(async (db) => {
        const row = await db
          .selectFrom('consent_requests')
          .selectAll()
          .where(COLUMNS[by], '=', value)
          .executeTakeFirst();
        return row && requestOf(row);
      }),
    listOpen: (now, limit) =>
      run(async (db) => {
        const rows = await recentAt(db, now)
          .selectAll()
          .where('status', 'in', ['PENDING', 'APPROVED'])
          .orderBy('created_at')
          .orderBy('id')
          .limit(limit)
          .execute();
        return rows.map(requestOf);
      }),
    clientOf: (keyId) => run((db) => clientOf(db, keyId)),
  };
}

/** Changes requests for keys, inside a write transaction. */
export function consentWriterOf(db: Kysely<Tables>): ConsentWriter {
  return {
    ...consentFinderOf((work) => work(db)),
    async countRecent(now) {
      const { count } = await recentAt(db, now)
        .select((row) => row.fn.countAll().as('count'))
        .executeTakeFirstOrThrow();
      return Number(count);
    },
    async insert(request) {
      await db.insertInto('consent_requests').values(rowOf(request)).execute();
    },
    async update(request) {
      const { id, ...columns } = rowOf(request);
      await db.updateTable('consent_requests').set(columns).where('id', '=', id).execute();
    },
    clientsOf: (keyIds) => clientsOf(db, keyIds),
    rememberClient: (keyId, clientId) => rememberClient(db, keyId, clientId),
    replaceGivenKey: (from, to) => replaceGivenKey(db, from, to),
    async forget({ used, unused }) {
      await db
        .deleteFrom('consent_requests')
        .where('expires_at', '<', unused)
        .where((row) => row.or([row('status', '!=', 'USED'), row('expires_at', '<', used)]))
        .execute();
    },
  };
}

function recentAt(db: Kysely<Tables>, now: number) {
  return db.selectFrom('consent_requests').where('expires_at', '>', now);
}

function rowOf(request: ConsentRequest): ConsentRequestTable {
  const { id, handleDigest, codeDigest, status, createdAt, expiresAt, ...details } = request;
  return {
    id,
    handle_digest: handleDigest,
    code_digest: codeDigest,
    status,
    created_at: createdAt,
    expires_at: expiresAt,
    details: JSON.stringify(details),
  };
}

/** PostgreSQL returns large numbers as text. */
function requestOf(row: ConsentRequestTable): ConsentRequest {
  return {
    ...(JSON.parse(row.details) as ConsentRequest),
    id: row.id,
    handleDigest: row.handle_digest,
    codeDigest: row.code_digest,
    status: row.status as ConsentRequest['status'],
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
  };
}
