import { type Kysely, sql, type SqlBool } from 'kysely';
import type { AuditAction, AuditActor } from '../keys/audit/index.ts';
import { NETWORK_DIGITS, type Port } from '../keys/basics/index.ts';
import { KEYS_IN_USE } from '../keys/changes/index.ts';
import {
  type ApiKey,
  type Effect,
  type EffectFinder,
  type EffectKind,
  EFFECTS,
  type EffectWriter,
  type NewEffect,
  type Widening,
} from '../keys/key/index.ts';
import {
  type ConsentFinder,
  type ConsentRequest,
  CONSENTS,
  type ConsentWriter,
  type Refresh,
  type Session,
  SESSIONS,
  type SessionWriter,
  USED_TOKENS,
} from '../keys/repository/index.ts';
import { type AnyPortOfStore, type Connection, type DialectName, portOfStore } from './connection.ts';
import { feed } from './feed.ts';
import { imports } from './imports.ts';
import { keyLists } from './key-lists.ts';
import { chunksOf, idStart, isAbout, isId, toNumber } from './rows.ts';
import { findFamily } from './select-keys.ts';
import type { ApplicationKeyTable, ConsentRequestTable, KeyEffectTable, SessionTable, Tables } from './tables.ts';
import { spentLimits, usage } from './usage.ts';

const COLUMNS = { id: 'id', handleDigest: 'handle_digest', codeDigest: 'code_digest' } as const;

/** The requests of applications for keys, and the applications that got some. */
const consents = portOfStore({
  port: CONSENTS,
  read: ({ run }) => consentFinderOf(run),
  write: ({ db, dialect }) => consentWriterOf(db, dialect),
});

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
    clientOf: (keyId) => run((db) => clientOf(db, keyId)),
    findRefresh: (family) =>
      run(async (db) => {
        const row = await db
          .selectFrom('application_keys')
          .selectAll()
          .where('refresh_family', '=', family)
          .executeTakeFirst();
        return row && { keyId: row.key_id, ...refreshOf(row)! };
      }),
    refreshOf: (keyId) =>
      run(async (db) => {
        const row = await db.selectFrom('application_keys').selectAll().where('key_id', '=', keyId).executeTakeFirst();
        return row && refreshOf(row);
      }),
  };
}

function consentWriterOf(db: Kysely<Tables>, dialect: DialectName): Omit<ConsentWriter, keyof ConsentFinder> {
  return {
    async recent(now, network) {
      // As one text: anybody may make it thousands of rows.
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
    clientsOf: (keyIds) => clientsOf(db, keyIds),
    rememberClient: (keyId, clientId) => rememberClient(db, keyId, clientId),
    async keepRefresh(keyId, { family, current, previous, salt, endsAt }) {
      await db
        .updateTable('application_keys')
        .set({
          refresh_family: family,
          refresh_digest: current,
          refresh_previous: previous,
          refresh_salt: salt,
          refresh_ends_at: endsAt,
        })
        .where('key_id', '=', keyId)
        .execute();
    },
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

/** The application that a key was given to, as somebody agreed; undefined for any other key. */
async function clientOf(db: Kysely<Tables>, keyId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('application_keys')
    .select('client_id')
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return row?.client_id;
}

/** Remembers which application was given a key, until the key is deleted, inside a write transaction. */
async function rememberClient(db: Kysely<Tables>, keyId: string, clientId: string): Promise<void> {
  await db.insertInto('application_keys').values({ key_id: keyId, client_id: clientId }).execute();
}

/** The applications of those of the keys that one was given, by the ids of the keys. */
async function clientsOf(db: Kysely<Tables>, keyIds: readonly string[]): Promise<Map<string, string>> {
  const clients = new Map<string, string>();
  for (const ids of chunksOf(keyIds)) {
    const rows = await db.selectFrom('application_keys').selectAll().where('key_id', 'in', ids).execute();
    for (const row of rows) clients.set(row.key_id, row.client_id);
  }
  return clients;
}

/** Lets used requests that gave one key have given another, which takes its place, inside a write transaction. */
async function replaceGivenKey(db: Kysely<Tables>, from: string, to: string): Promise<void> {
  const given = (id: string) => `"keyId":${JSON.stringify(id)}`;
  await db
    .updateTable('consent_requests')
    .set({ details: sql`replace(details, ${given(from)}, ${given(to)})` })
    .where('status', '=', 'USED')
    .where('details', 'like', `%${given(from)}%`)
    .execute();
}

/** What keys did to others. */
const keyEffects = portOfStore({
  port: EFFECTS,
  read: ({ run, connection: { dialect } }) => effectFinderOf(run, dialect),
  write: ({ db, dialect }) => effectWriterOf(db, dialect),
});

function effectFinderOf(run: Connection['run'], dialect: DialectName): EffectFinder {
  const find = (column: 'key_id' | 'by_secret', values: readonly string[]) =>
    run(async (db) => {
      const found: Effect[] = [];
      for (const chunk of chunksOf(values))
        found.push(...(await selectEffects(db).where(`effect.${column}`, 'in', chunk).execute()).map(effectOf));
      return found;
    });
  return {
    by: (keyIds) =>
      run(async (db) => {
        const found = new Map<string, Effect>();
        for (const chunk of chunksOf(keyIds)) {
          const ids = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', 'in', chunk);
          const rows = await selectEffects(db).where('effect.id', 'in', ids).execute();
          for (const row of rows) found.set(row.id, effectOf(row));
        }
        return [...found.values()];
      }),
    withSecrets: (publicIds) => find('by_secret', publicIds),
    on: (keyIds) => find('key_id', keyIds),
    actorsNamed: (nameOrId) =>
      run(async (db) => {
        const rows = await db
          .selectFrom('key_effect_actors')
          .select(['key_id as id', 'name'])
          .distinct()
          .where((row) =>
            row.or([row('name', '=', nameOrId), ...(isId(dialect, nameOrId) ? [row('key_id', '=', nameOrId)] : [])]),
          )
          .orderBy('key_id')
          .execute();
        return rows;
      }),
  };
}

function effectWriterOf(db: Kysely<Tables>, dialect: DialectName): Omit<EffectWriter, keyof EffectFinder> {
  return {
    async insert(effects) {
      for (const chunk of chunksOf(effects)) {
        await db
          .insertInto('key_effects')
          .values(chunk.map(effectRowOf))
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        const actors = chunk.flatMap(({ id, actor, above }) =>
          [actor, ...above].map((key) => ({ effect_id: id, key_id: key.id, name: key.name })),
        );
        for (const part of chunksOf(actors))
          await db
            .insertInto('key_effect_actors')
            .values(part)
            .onConflict((conflict) => conflict.doNothing())
            .execute();
      }
    },
    async delete(ids) {
      for (const chunk of chunksOf(ids)) await db.deleteFrom('key_effects').where('id', 'in', chunk).execute();
    },
    async rename(keyId, name) {
      await db.updateTable('key_effect_actors').set({ name }).where('key_id', '=', keyId).execute();
    },
    async replaceKey(from, { id, name }) {
      await db.updateTable('key_effects').set({ key_id: id }).where('key_id', '=', from).execute();
      const done = db.selectFrom('key_effect_actors').select('effect_id').where('key_id', '=', from);
      await db
        .updateTable('key_effects')
        .set({ actor_id: id })
        .where('actor_id', '=', from)
        .where('id', 'in', done)
        .execute();
      await db.updateTable('key_effect_actors').set({ key_id: id, name }).where('key_id', '=', from).execute();
    },
    async export(keyIds) {
      const effects = await effectFinderOf((work) => work(db), dialect).on(keyIds);
      const above = new Map<string, { id: string; name: string }[]>();
      for (const chunk of chunksOf(effects.map(({ id }) => id))) {
        const rows = await db.selectFrom('key_effect_actors').selectAll().where('effect_id', 'in', chunk).execute();
        for (const { effect_id: effect, key_id: id, name } of rows)
          above.set(effect, [...(above.get(effect) ?? []), { id, name }]);
      }
      return effects.map((effect): NewEffect => {
        const others = (above.get(effect.id) ?? []).filter(({ id }) => id !== effect.actor.id);
        return { ...effect, above: others };
      });
    },
    async forget(before, limit) {
      const forgotten = db
        .selectFrom('key_effects')
        .select('id')
        .where('at', '<', before)
        .where((row) =>
          row.not(row.exists(row.selectFrom('api_keys').select('api_keys.id').whereRef('api_keys.id', '=', 'key_id'))),
        )
        .where((row) => {
          const later = row.selectFrom('key_effects as later').select('later.id');
          return row.not(row.exists(later.whereRef('later.by_secret', '=', 'key_effects.secret')));
        })
        .limit(limit);
      const { numDeletedRows } = await db.deleteFrom('key_effects').where('id', 'in', forgotten).executeTakeFirst();
      return Number(numDeletedRows);
    },
  };
}

function selectEffects(db: Kysely<Tables>) {
  return db
    .selectFrom('key_effects as effect')
    .innerJoin('key_effect_actors as actor', (join) =>
      join.onRef('actor.effect_id', '=', 'effect.id').onRef('actor.key_id', '=', 'effect.actor_id'),
    )
    .selectAll('effect')
    .select('actor.name as actor_name')
    .orderBy('effect.at')
    .orderBy('effect.id');
}

function effectRowOf({ id, at, kind, actor, bySecret, keyId, secret, widening }: Effect): KeyEffectTable {
  return {
    id,
    at,
    kind,
    actor_id: actor.id,
    by_secret: bySecret,
    key_id: keyId,
    secret,
    widening: widening && JSON.stringify(widening),
  };
}

/** PostgreSQL returns large numbers as text. */
function effectOf(row: KeyEffectTable & { actor_name: string }): Effect {
  return {
    id: row.id,
    at: Number(row.at),
    kind: row.kind as EffectKind,
    actor: { id: row.actor_id, name: row.actor_name },
    bySecret: row.by_secret,
    keyId: row.key_id,
    secret: row.secret,
    widening: row.widening === null ? null : (JSON.parse(row.widening) as Widening),
  };
}

/** What begins anew the time for which a key may go unused. */
const BEGINNINGS: readonly AuditAction[] = [
  'CREATE',
  'IMPORT',
  'ENABLE',
  'ADOPT',
  'ROTATE',
  'ROTATE_ROLLBACK',
  'RESTORE',
];

/** Which keys are in use. */
const keysInUse = portOfStore({
  port: KEYS_IN_USE,
  read: ({ run, connection: { dialect } }) => ({
    find: (ids, since) => run((db) => findInUse(db, dialect, ids, since)),
    disabledByPolicy: (keys) => run((db) => findDisabledByPolicy(db, dialect, keys)),
  }),
});

async function findInUse(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<Set<string>> {
  const inUse = await findUsed(db, dialect, ids, since);
  for (const id of ids) {
    if (inUse.has(id)) continue;
    // It keeps those alive that it has created.
    const family = await findFamily(db, [id]);
    for (const chunk of chunksOf(family.slice(1))) {
      if ((await findUsed(db, dialect, chunk, since)).size === 0) continue;
      inUse.add(id);
      break;
    }
  }
  return inUse;
}

/** Those of these keys that were themselves used, or began, since a time. */
async function findUsed(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<Set<string>> {
  const used = new Set<string>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('api_keys')
      .select('id')
      .where('id', 'in', chunk)
      .where((row) =>
        row.or([
          row('created_at', '>=', since),
          row.exists(
            row
              .selectFrom('key_usage')
              .select(sql`1`.as('one'))
              .whereRef('key_id', '=', 'api_keys.id')
              .where('last_used_at', '>=', since),
          ),
          row.exists(
            row
              .selectFrom('audit_log')
              .select(sql`1`.as('one'))
              .where(sql<SqlBool>`${idStart(dialect, 'audit_log.key_id')} = ${idStart(dialect, 'api_keys.id')}`)
              .whereRef('key_id', '=', 'api_keys.id')
              .where('at', '>=', since)
              .where('action', 'in', BEGINNINGS),
          ),
        ]),
      )
      .execute();
    for (const { id } of rows) used.add(id);
    const others = chunk.filter((id) => !used.has(id));
    for (const id of await findRevived(db, dialect, others, since)) used.add(id);
  }
  return used;
}

/** Those of these keys that had ended, and got another end since a time. */
async function findRevived(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  since: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('audit_log')
    .select(['key_id', 'at', 'before'])
    .where(isAbout(dialect, ids))
    .where('at', '>=', since)
    .where('action', '=', 'UPDATE' satisfies AuditAction)
    .where('before', 'like', '%"expiresAt":%')
    .execute();
  return rows.flatMap(({ key_id: id, at, before }) => {
    const { expiresAt } = JSON.parse(before!) as { expiresAt?: string | null };
    // One that was still to come, somebody may move again and again without a thought of this key.
    return expiresAt && Date.parse(expiresAt) <= Number(at) ? [id!] : [];
  });
}

async function findDisabledByPolicy(
  db: Kysely<Tables>,
  dialect: DialectName,
  keys: readonly Pick<ApiKey, 'id' | 'disabledAt'>[],
): Promise<Set<string>> {
  const disabled = new Map(keys.flatMap(({ id, disabledAt }) => (disabledAt === null ? [] : [[id, disabledAt]])));
  const found = new Set<string>();
  for (const chunk of chunksOf([...disabled.keys()])) {
    const rows = await db
      .selectFrom('audit_log')
      .select(['key_id', 'at'])
      .where(isAbout(dialect, chunk))
      .where('action', '=', 'DISABLE' satisfies AuditAction)
      .where('actor_kind', '=', 'POLICY' satisfies AuditActor['kind'])
      .execute();
    for (const { key_id: id, at } of rows) if (disabled.get(id!) === Number(at)) found.add(id!);
  }
  return found;
}

/** The sessions of people who have signed in. */
const sessions = portOfStore({
  port: SESSIONS,
  read: ({ run }) => ({ find: (tokenDigest) => run((db) => findSession(db, tokenDigest)) }),
  write: ({ db }) => sessionWriterOf(db),
  disabled: ({ db }, ids) => endSessionsOf(db, ids),
  deleted: ({ db }, ids) => endSessionsOf(db, ids),
});

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

/** The tokens that were exchanged for keys. */
const usedTokens = portOfStore({
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

/** What the store keeps for features, each as the feature asks for it. */
export const PORTS: readonly AnyPortOfStore[] = [
  consents,
  feed,
  imports,
  keyEffects,
  keyLists,
  keysInUse,
  sessions,
  spentLimits,
  usage,
  usedTokens,
];

/** How the store does what a feature asks of it. */
export function portIn<Reader, Writer extends Reader>(wanted: Port<Reader, Writer>): AnyPortOfStore {
  const found = PORTS.find(({ port }) => port === wanted);
  if (!found) throw new Error(`The store keeps nothing for "${wanted.name}".`);
  return found;
}
