import { type Kysely, sql } from 'kysely';
import { NETWORK_DIGITS } from '../../keys/basics/index.ts';
import {
  type ConsentFinder,
  type ConsentRequest,
  CONSENTS,
  type ConsentWriter,
  type GivenTo,
  type Refresh,
} from './consent-request.ts';
import {
  chunksOf,
  type Connection,
  type DialectName,
  portOfStore,
  type StoreOfFeature,
  type Tables,
  toNumber,
} from '../../store/index.ts';
import { type ApplicationKeyTable, type ConsentRequestTable, consentTables } from './tables.ts';

const COLUMNS = { id: 'id', handleDigest: 'handle_digest', codeDigest: 'code_digest' } as const;

/** The requests of applications for keys, and the applications that got some. */
const consents = portOfStore({
  port: CONSENTS,
  read: ({ run }) => consentFinderOf(run),
  write: ({ db, dialect }) => consentWriterOf(db, dialect),
});

/** All that is kept of applications. */
export const consentStore: StoreOfFeature = { ...consentTables, ports: [consents] };

function consentFinderOf(run: Connection['run']): ConsentFinder {
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
    clientOf: (keyId) =>
      run(async (db) => {
        const row = await db
          .selectFrom('application_keys')
          .select('client_id')
          .where('key_id', '=', keyId)
          .executeTakeFirst();
        return row?.client_id;
      }),
    findRefresh: (family) =>
      run(async (db) => {
        const row = await db
          .selectFrom('application_keys')
          .selectAll()
          .where('refresh_family', '=', family)
          .executeTakeFirst();
        return row && { keyId: row.key_id, ...refreshOf(row)! };
      }),
  };
}

function consentWriterOf(db: Kysely<Tables>, dialect: DialectName): Omit<ConsentWriter, keyof ConsentFinder> {
  return {
    async recent(now, network) {
      // Aggregated into one text, because anyone can cause thousands of rows.
      const held = sql`case when status in ('PENDING', 'DENIED') then source end`;
      const { all, ofNetwork, sources } = await recentAt(db, now)
        .select((row) => [
          row.fn.countAll().as('all'),
          row.fn
            .sum(sql`case when substr(source, 1, ${sql.lit(NETWORK_DIGITS)}) = ${network} then 1 else 0 end`)
            .as('ofNetwork'),
          (dialect === 'sqlite'
            ? sql<string | null>`group_concat(${held})`
            : sql<string | null>`string_agg(${held}, ',')`
          ).as('sources'),
        ])
        .executeTakeFirstOrThrow();
      return { all: Number(all), ofNetwork: Number(ofNetwork ?? 0), held: sources?.split(',') ?? [] };
    },
    async removeOldest(now, source) {
      const oldest = recentAt(db, now)
        .select('id')
        .where('status', 'in', ['PENDING', 'DENIED'])
        .where('source', '=', source)
        .orderBy('created_at')
        .orderBy('id')
        .limit(1);
      await db.deleteFrom('consent_requests').where('id', 'in', oldest).execute();
    },
    async insert(request) {
      await db.insertInto('consent_requests').values(consentRowOf(request)).execute();
    },
    async update(request) {
      const { id, ...columns } = consentRowOf(request);
      await db.updateTable('consent_requests').set(columns).where('id', '=', id).execute();
    },
    async givenTo(keyIds) {
      const given = new Map<string, GivenTo>();
      for (const ids of chunksOf(keyIds)) {
        const rows = await db.selectFrom('application_keys').selectAll().where('key_id', 'in', ids).execute();
        for (const row of rows) given.set(row.key_id, { clientId: row.client_id, refresh: refreshOf(row) });
      }
      return given;
    },
    async rememberClient(keyId, { clientId, refresh }) {
      const row = { key_id: keyId, client_id: clientId, ...(refresh && refreshColumns(refresh)) };
      await db.insertInto('application_keys').values(row).execute();
    },
    async keepRefresh(keyId, refresh) {
      await db.updateTable('application_keys').set(refreshColumns(refresh)).where('key_id', '=', keyId).execute();
    },
    async replaceGivenKey(from, to) {
      const given = (id: string) => `"keyId":${JSON.stringify(id)}`;
      await db
        .updateTable('consent_requests')
        .set({ details: sql`replace(details, ${given(from)}, ${given(to)})` })
        .where('status', '=', 'USED')
        .where('details', 'like', `%${given(from)}%`)
        .execute();
    },
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

function consentRowOf(request: ConsentRequest): ConsentRequestTable {
  const { id, handleDigest, codeDigest, status, createdAt, expiresAt, source, ...details } = request;
  return {
    id,
    source,
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
    source: row.source,
    handleDigest: row.handle_digest,
    codeDigest: row.code_digest,
    status: row.status as ConsentRequest['status'],
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
  };
}

/** The refresh token's digest and salt; undefined for an application that does not refresh. */
function refreshOf(row: ApplicationKeyTable): Refresh | undefined {
  if (row.refresh_family === null) return undefined;
  return {
    family: row.refresh_family,
    current: row.refresh_digest!,
    previous: row.refresh_previous,
    salt: row.refresh_salt,
    endsAt: toNumber(row.refresh_ends_at),
  };
}

function refreshColumns({ family, current, previous, salt, endsAt }: Refresh) {
  return {
    refresh_family: family,
    refresh_digest: current,
    refresh_previous: previous,
    refresh_salt: salt,
    refresh_ends_at: endsAt,
  };
}
