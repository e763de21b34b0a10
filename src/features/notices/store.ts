import { type Kysely, sql } from 'kysely';
import type { AuditReader } from '../../keys/audit/index.ts';
import {
  apiKeyOf,
  auditReaderOf,
  chunksOf,
  type Connection,
  countRows,
  type DialectName,
  portOfStore,
  type Reading,
  type StoreOfFeature,
  type Tables,
  toNumber,
  transactionsApart,
} from '../../store/index.ts';
import {
  type Attempt,
  type EndingKey,
  type EndsQuery,
  NOTICES,
  type NoticeState,
  type NoticeStatus,
  type NoticeStore,
  type NoticeWriter,
  type PendingNotices,
  type RefusedKey,
} from './collect.ts';
import type { Notice, WaitingNotice } from './notice.ts';
import { type NoticeStateTable, noticeTables } from './tables.ts';

/** The tables and the port of notices. The queue has transactions of its own, which no change of a key waits for. */
export const noticeStore: StoreOfFeature = {
  ...noticeTables,
  ports: [portOfStore({ port: NOTICES, read: createNoticeStore })],
};

/** The queue of notices in a store. */
function createNoticeStore({ connection, run, auditKey, clock }: Reading): NoticeStore {
  const { dialect } = connection;
  const transact = transactionsApart(connection);
  return {
    withLease: ({ holder, forMs }, work) =>
      transact(async (db) => {
        const row = await lockState(db, dialect);
        const now = await clock(db);
        if (!isFree(row, holder, now)) return undefined;
        const lease = { holder, leased_until: Math.round(now + forMs) };
        const result = await work(
          createWriter(
            db,
            auditReaderOf((read) => read(db), dialect, auditKey),
            row && stateOf(row),
            lease,
          ),
        );
        await db.updateTable('notice_state').set(lease).execute();
        return result;
      }),

    release: (holder) =>
      transact(
        async (db) =>
          void (await db
            .updateTable('notice_state')
            .set({ holder: null, leased_until: 0 })
            .where('holder', '=', holder)
            .execute()),
      ),

    isFree: (holder) => run(async (db) => isFree(await findNoticeState(db), holder, await clock(db))),

    pending: () => run(findPending),

    changesReceived: () => connection.changesReceived?.(),

    countWaiting: () => run((db) => countRows(db, 'notice_outbox')),

    due: (now, limit) =>
      run(async (db) => {
        const rows = await db
          .selectFrom('notice_outbox')
          .selectAll()
          .where('next_at', '<=', now)
          .orderBy('next_at')
          .orderBy('created_at')
          .orderBy('id')
          .limit(limit)
          .execute();
        return rows.map(({ id, type, created_at: at, body, attempts }): WaitingNotice => ({
          id,
          type: type as WaitingNotice['type'],
          at: Number(at),
          body,
          attempts,
        }));
      }),

    findRefused: (hour, query) => findRefused(connection, hour, query),

    status: () => run(findNoticeStatus),

    lastCollected: (since) =>
      run(async (db) => {
        const row = await findNoticeState(db);
        return row && Number(row.seen_at) > since ? Number(row.log_number) : undefined;
      }),

    async forgetGone() {
      if (((await run(findNoticeState))?.gone ?? null) === null) return;
      await transact(async (db) => void (await db.updateTable('notice_state').set({ gone: null }).execute()));
    },
  };
}

/** The state of collecting notices; undefined if it never ran. */
function findNoticeState(db: Kysely<Tables>): Promise<NoticeStateTable | undefined> {
  return db.selectFrom('notice_state').selectAll().executeTakeFirst();
}

/** See `NoticeStore.status`. */
async function findNoticeStatus(db: Kysely<Tables>): Promise<NoticeStatus | undefined> {
  const row = await findNoticeState(db);
  if (!row) return undefined;
  const { waiting, oldest } = await db
    .selectFrom('notice_outbox')
    .select((outbox) => [outbox.fn.countAll().as('waiting'), outbox.fn.min('created_at').as('oldest')])
    .executeTakeFirstOrThrow();
  return {
    seenAt: Number(row.seen_at),
    waiting: Number(waiting),
    oldestAt: toNumber(oldest),
    behind: (await findPending(db)).behind,
    deliveredAt: toNumber(row.delivered_at),
    failedAt: toNumber(row.failed_at),
    failure: row.failure,
    gone: row.gone,
  };
}

/** The state, locked until the transaction ends. */
async function lockState(db: Kysely<Tables>, dialect: DialectName): Promise<NoticeStateTable | undefined> {
  if (dialect === 'sqlite') return findNoticeState(db);
  return db.selectFrom('notice_state').selectAll().forUpdate().executeTakeFirst();
}

function isFree(row: NoticeStateTable | undefined, holder: string, now: number): boolean {
  return !row || row.holder === null || row.holder === holder || Number(row.leased_until) <= now;
}

function stateOf(row: NoticeStateTable): NoticeState {
  return {
    logNumber: Number(row.log_number),
    seenAt: Number(row.seen_at),
    endings: JSON.parse(row.endings) as NoticeState['endings'],
    refusals: JSON.parse(row.refusals) as NoticeState['refusals'],
    gone: row.gone,
  };
}

async function findPending(db: Kysely<Tables>): Promise<PendingNotices> {
  const { rows } = await sql<{
    head: number | string | null;
    seen: number | string | null;
    due: number | string | null;
  }>`
    select (select number from audit_head) as head, (select log_number from notice_state) as seen,
      (select min(next_at) from notice_outbox) as due`.execute(db);
  const { head, seen, due } = rows[0]!;
  return { behind: seen === null ? 0 : Number(head ?? 0) - Number(seen), dueAt: toNumber(due) };
}

function createWriter(
  db: Kysely<Tables>,
  log: AuditReader,
  state: NoticeState | undefined,
  lease: { holder: string; leased_until: number },
): NoticeWriter {
  return {
    state,
    head: async () => (await log.head())?.number ?? 0,
    entries: (after, limit) => log.find({ order: 'oldest', after, limit }),
    ending: (query) => findEnding(db, query),
    countWaiting: () => countRows(db, 'notice_outbox'),
    add: (notices, now) => addNotices(db, notices, now),
    async setState({ logNumber, seenAt, endings, refusals, gone }) {
      const row = {
        log_number: logNumber,
        seen_at: seenAt,
        endings: JSON.stringify(endings),
        refusals: JSON.stringify(refusals),
        gone,
      };
      await db
        .insertInto('notice_state')
        .values({ one: 1, ...row, ...lease })
        .onConflict((conflict) => conflict.column('one').doUpdateSet(row))
        .execute();
    },
    settle: (attempts) => settle(db, attempts),
    async clear() {
      await db.deleteFrom('notice_outbox').execute();
    },
  };
}

async function addNotices(db: Kysely<Tables>, notices: readonly Notice[], now: number): Promise<void> {
  for (const chunk of chunksOf(notices))
    await db
      .insertInto('notice_outbox')
      .values(chunk.map(({ id, type, at, body }) => ({ id, type, created_at: at, body, attempts: 0, next_at: now })))
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
}

async function settle(db: Kysely<Tables>, attempts: readonly Attempt[]): Promise<void> {
  const done = attempts.flatMap(({ id, nextAt }) => (nextAt === null ? [id] : []));
  for (const chunk of chunksOf(done)) await db.deleteFrom('notice_outbox').where('id', 'in', chunk).execute();
  for (const { id, nextAt } of attempts)
    if (nextAt !== null)
      await db
        .updateTable('notice_outbox')
        .set((row) => ({ attempts: row('attempts', '+', 1), next_at: nextAt }))
        .where('id', '=', id)
        .execute();
  const delivered = attempts.findLast(({ failure }) => failure === null);
  const failed = attempts.findLast(({ failure }) => failure !== null);
  if (delivered) await db.updateTable('notice_state').set({ delivered_at: delivered.at }).execute();
  if (failed) await db.updateTable('notice_state').set({ failed_at: failed.at, failure: failed.failure }).execute();
}

/** How many rows of usage are read at once, so that others get their turns. */
const PAGE_ROWS = 1000;

/** Keys that expire in a period, in the order of expiry. */
async function findEnding(db: Kysely<Tables>, { from, to, after, limit }: EndsQuery): Promise<EndingKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('expires_at', 'is not', null)
    .where('expires_at', '>', from)
    .where('expires_at', '<=', to)
    .$if(after !== undefined, (query) =>
      query.where((row) =>
        row.or([
          row('expires_at', '>', after!.expiresAt),
          row.and([row('expires_at', '=', after!.expiresAt), row('id', '>', after!.id)]),
        ]),
      ),
    )
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...apiKeyOf(row), expiresAt: Number(row.expires_at) }));
}

/** Keys with frequent refusals within an hour, which is the latest hour of only some keys. Reads page by page. */
async function findRefused(
  connection: Connection,
  hour: number,
  { least, limit }: { least: number; limit: number },
): Promise<RefusedKey[]> {
  const found = new Map<number, RefusedKey['counts']>();
  for (const [table, number, isRefused] of [
    // Repeats the condition of its index.
    ['key_usage', 'number', sql`and (forbidden > 0 or limited > 0 or refused > 0)`],
    ['key_usage_hours', 'key_number', sql``],
  ] as const) {
    for (let after: number | undefined = -1; after !== undefined;) {
      const from: number = after;
      const { rows } = await connection.run((db) =>
        sql<RefusedKey['counts'] & { number: number }>`select ${sql.ref(number)} as number, forbidden, limited, refused
          from ${sql.table(table)} where hour = ${sql.lit(hour)} and ${sql.ref(number)} > ${sql.lit(from)} ${isRefused}
          order by ${sql.ref(number)} limit ${sql.lit(PAGE_ROWS)}`.execute(db),
      );
      for (const row of rows) {
        const before = found.get(row.number) ?? { forbidden: 0, limited: 0, refused: 0 };
        const [forbidden, limited, refused] = [Number(row.forbidden), Number(row.limited), Number(row.refused)];
        if (forbidden + limited + refused > 0)
          found.set(row.number, {
            forbidden: before.forbidden + forbidden,
            limited: before.limited + limited,
            refused: before.refused + refused,
          });
      }
      after = rows.length === PAGE_ROWS ? rows.at(-1)!.number : undefined;
    }
  }
  const often = [...found].filter(([, { forbidden, limited, refused }]) => forbidden + limited + refused >= least);
  const keys: RefusedKey[] = [];
  for (const chunk of chunksOf(often)) {
    const { rows } = await connection.run((db) =>
      sql<Tables['api_keys'] & { number: number }>`select api_keys.*, number from key_usage join api_keys on id = key_id
        where number in (${sql.join(Array.from(chunk, ([number]) => number))})`.execute(db),
    );
    for (const row of rows) keys.push({ key: apiKeyOf(row), counts: found.get(row.number)! });
    if (keys.length >= limit) break;
  }
  return keys.slice(0, limit);
}
