import { type Kysely, sql } from 'kysely';
import type { AppliedLimit } from '../keys/authorization/index.ts';
import { splitLimit } from '../keys/basics/index.ts';
import {
  grantLease,
  type Lease,
  type LeaseGrant,
  type LeaseRequest,
  type LimitState,
  type LimitStore,
} from '../limits/index.ts';
import type { Connection, DialectName } from './connection.ts';
import { chunksOf, jsonRowId, jsonRowNumber, jsonRows, jsonRowText } from './rows.ts';
import type { LimitStateTable, Tables } from './tables.ts';

/** Milliseconds since 1970, by the one clock that all processes of a store share. */
export type StoreClock = (db: Kysely<Tables>) => Promise<number>;

/** The most limits of a key that are remembered, since servers without a store choose the names of route limits. */
const MAX_STATES = 1000;

/** A limit of a key without a state. */
type NewState = Pick<AppliedLimit, 'keyId' | 'limit' | 'route'>;

/**
 * Limits shared by processes, as rows of the store.
 * @param clock default: that of the database server, or of the machine that all processes of a file are on
 */
export function createLimitStore(connection: Connection, clock: StoreClock = clockOf(connection.dialect)): LimitStore {
  const { dialect } = connection;
  const transact = transactionsApart(connection);
  return {
    async lease(requests) {
      const limits = requests.flatMap((request) => request.limits);
      const keyIds = [...new Set(limits.map(({ keyId }) => keyId))].toSorted();
      let missing: NewState[] = [];
      const grants = await transact(async (db) => {
        const states = await lockStates(db, dialect, keyIds);
        missing = limits.filter((limit) => !states.has(nameOf(limit)));
        return missing.length > 0 ? undefined : grantAll(db, dialect, requests, states, await clock(db));
      });
      if (grants) return grants;
      // Separate from the statement that locks rows, since two processes can insert the same ones.
      await transact((db) => insertStates(db, dialect, missing));
      // The time is read after locking, so that no earlier grant has a later time.
      return transact(async (db) =>
        grantAll(db, dialect, requests, await lockStates(db, dialect, keyIds), await clock(db)),
      );
    },
  };
}

/**
 * Transactions independent of those that change keys: in PostgreSQL they lock only rows, so neither waits for the
 * other.
 */
export function transactionsApart(connection: Connection): Connection['run'] {
  if (connection.dialect === 'sqlite') return (work) => connection.write((db) => work(db));
  return (work) => connection.run((db) => db.transaction().setIsolationLevel('read committed').execute(work));
}

/** The database clock that leases are based on. */
export function clockOf(dialect: DialectName): StoreClock {
  if (dialect === 'sqlite') return async () => Date.now();
  return async (db) => {
    const { rows } = await sql<{ now: number }>`select extract(epoch from clock_timestamp()) * 1000 as now`.execute(db);
    return Number(rows[0]!.now);
  };
}

/** Grants requests one after another; undefined for keys that were deleted. */
async function grantAll(
  db: Kysely<Tables>,
  dialect: DialectName,
  requests: readonly LeaseRequest[],
  states: Map<string, LimitState>,
  now: number,
): Promise<(LeaseGrant | undefined)[]> {
  const changed = new Map<string, LimitStateTable>();
  const grants = requests.map((request) => {
    const names = request.limits.map(nameOf);
    const before = names.flatMap((name) => states.get(name) ?? []);
    if (before.length < names.length) return undefined;
    const { states: after, grant } = grantLease(before, request, Math.round(now * 1000));
    for (const [index, limit] of request.limits.entries()) {
      states.set(names[index]!, after[index]!);
      changed.set(names[index]!, rowOf(limit, after[index]!));
    }
    return grant;
  });
  await updateStates(db, dialect, [...changed.values()]);
  return grants;
}

/** The states of keys, locked in the order of their ids to avoid deadlocks. */
async function lockStates(
  db: Kysely<Tables>,
  dialect: DialectName,
  keyIds: readonly string[],
): Promise<Map<string, LimitState>> {
  const states = new Map<string, LimitState>();
  for (const chunk of chunksOf(keyIds)) {
    const rows = await db
      .selectFrom('limit_states')
      .selectAll()
      .where('key_id', 'in', chunk)
      .orderBy('key_id')
      .orderBy('unit')
      .$if(dialect === 'postgres', (query) => query.forUpdate())
      .execute();
    for (const row of rows) states.set(`${row.key_id} ${row.unit}`, stateOf(row));
  }
  return states;
}

function nameOf(state: NewState): string {
  return `${state.keyId} ${unitOf(state)}`;
}

/** Identifies a limit: the unit, plus the route if it is a route's. */
function unitOf({ limit, route }: NewState): string {
  const { unit } = splitLimit(limit);
  return route === undefined ? unit : `${unit} ${route}`;
}

/** The state in a row. An unreadable one has nothing left. */
function stateOf({ count, unused_at: unusedAt, leases }: LimitStateTable): LimitState {
  try {
    return { count: Number(count), unusedAt: Number(unusedAt), leases: JSON.parse(leases) as Lease[] };
  } catch {
    return { count: Number(count), unusedAt: Number.MAX_SAFE_INTEGER, leases: [] };
  }
}

function rowOf(state: NewState, { count, unusedAt, leases }: LimitState): LimitStateTable {
  return { key_id: state.keyId, unit: unitOf(state), count, unused_at: unusedAt, leases: JSON.stringify(leases) };
}

/** Inserts unused states of limits, for keys that still exist. */
async function insertStates(db: Kysely<Tables>, dialect: DialectName, states: readonly NewState[]): Promise<void> {
  const byName = new Map(states.map((state) => [nameOf(state), state]));
  for (const [, state] of [...byName].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const { count } = splitLimit(state.limit);
    // The key must not be deleted before the row that refers to it is inserted.
    const lock = dialect === 'postgres' ? sql`for key share` : sql``;
    await sql`insert into limit_states (key_id, unit, count, unused_at, leases)
      select id, ${unitOf(state)}, ${sql.lit(count)}, 0, '[]' from api_keys where id = ${state.keyId}
        and (select count(*) from limit_states where key_id = ${state.keyId}) < ${sql.lit(MAX_STATES)} ${lock}
      on conflict do nothing`.execute(db);
  }
}

/** Writes states as one parameter: a statement for each would take longer. */
async function updateStates(db: Kysely<Tables>, dialect: DialectName, rows: readonly LimitStateTable[]): Promise<void> {
  if (rows.length === 0) return;
  const given = jsonRows(
    dialect,
    rows.map((row) => [row.key_id, row.unit, row.count, row.unused_at, row.leases]),
  );
  await sql`update limit_states
    set count = ${jsonRowNumber(2)}, unused_at = ${jsonRowNumber(3)}, leases = ${jsonRowText(4)}
    from ${given} where key_id = ${jsonRowId(dialect, 0)} and unit = ${jsonRowText(1)}`.execute(db);
}
