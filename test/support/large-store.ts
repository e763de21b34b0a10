import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import { auditValuesOf } from '../../src/keys/audit/audit-entry.ts';
import { ACTIONS, createCatalog, type Permission } from '../../src/keys/permissions/catalog.ts';
import { createSecret, type Secret } from '../../src/keys/secret/secret.ts';
import { PERIOD_MS } from '../../src/keys/key/use.ts';
import { firstKept } from '../../src/features/usage/usage.ts';
import { toAuditRow, rowOf } from '../../src/store/rows.ts';
import { openStore } from '../../src/store/open.ts';
import { idOf, storedKey } from './keys.ts';
import { tempStore } from './temp.ts';
import { STORES } from './features.ts';

/** The roles of the keys that send the queries. */
export type Caller = 'ADMIN' | 'VIEWER' | 'GUEST';

/** The length of each chain of creators. */
const GENERATIONS = 12;
/** How many keys were used in each hour. */
const USED_KEYS = 50;
const CALLERS: readonly Caller[] = ['ADMIN', 'VIEWER', 'GUEST'];

/**
 * A store that is as expensive to read as possible: long descriptions, all permissions, long chains, and uses in every
 * hour. The rows are inserted by SQL, because creating keys by the rules would take minutes.
 */
export async function largeStore(
  sizes: { keys: number; entries: number; now?: number } = { keys: 30_000, entries: 100_000 },
): Promise<{ path: string; secrets: Record<Caller, string> }> {
  const path = tempStore();
  await (await openStore({ database: path }, { features: STORES })).close();
  const db = new Database(path);
  db.pragma('synchronous = off');
  const secrets = new Map<Caller, Secret>(CALLERS.map((role) => [role, createSecret(randomBytes)]));
  db.transaction(() => {
    const now = sizes.now ?? Date.now();
    insertKeys(db, sizes.keys, secrets, now);
    insertHours(db, now);
    insertEntries(db, sizes.entries);
  })();
  db.pragma('wal_checkpoint(truncate)');
  db.close();
  const texts = CALLERS.map((role) => [role, secrets.get(role)!.text]);
  return { path, secrets: Object.fromEntries(texts) as Record<Caller, string> };
}

function insertKeys(db: Database.Database, count: number, secrets: ReadonlyMap<Caller, Secret>, now: number): void {
  const insert = inserter(db, 'api_keys', rowOf(storedKey('')));
  const used = db.prepare('insert into used_grants (key_id, permission, last_used_at) values (?, ?, 1)');
  const uses = db.prepare('insert into key_uses values (?, 7, 1, null)');
  const usage = db.prepare('insert into key_usage values (?, ?, 0, ?, 1000, 10, 20, 30)');
  const description = 'A description with ÄÖÜ and 日本 in it. '.repeat(24);
  const all = createCatalog().resources.flatMap((resource) =>
    ACTIONS.map((action): Permission => `${resource}:${action}`),
  );
  for (const [role, { publicId, digest }] of secrets)
    insert.run(rowOf(storedKey(idOf(`caller ${role}`), { name: `Caller ${role}`, roles: [role], publicId, digest })));
  for (let index = 0; index < count; index += 1) {
    const id = idOf(String(index));
    const generation = index % GENERATIONS;
    const rotation = { previousPublicId: `p${index}`, startedAt: 1, grace: 1, previousEndsAt: null };
    const fields = {
      name: `Key ${index}`,
      description,
      roles: ['ADMIN' as const, 'VIEWER' as const],
      permissions: index % 10 === 0 ? all : all.slice(0, 3),
      createdAt: Date.UTC(2024, 0, 1) + index * 1000,
      createdBy: generation === 0 ? null : idOf(String(index - 1)),
      publicId: `i${index}`,
      digest: `digest ${index}`,
      previousDigest: `previous ${index}`,
      rotation,
    };
    insert.run(rowOf(storedKey(id, fields)));
    uses.run(id);
    usage.run(id, index, Math.floor(now / PERIOD_MS.HOUR));
    for (let grant = 0; grant < 5; grant += 1) used.run(id, all[(index + grant * 7) % all.length]);
  }
}

/** Inserts the usage of the oldest keys. */
function insertHours(db: Database.Database, now: number): void {
  for (const [table, period] of [
    ['hours', 'HOUR'],
    ['days', 'DAY'],
  ] as const) {
    const [from, to] = [firstKept(period, now), period === 'HOUR' ? now : firstKept('HOUR', now)];
    db.prepare(
      `with recursive period(start) as (select ? union all select start + 1 from period where start < ?)
      insert into key_usage_${table} select start, number, 1000, 10, 20, 30 from period, (select number from key_usage
        where key_id in (select id from api_keys order by created_at, id limit ${USED_KEYS}))`,
    ).run(from / PERIOD_MS[period], Math.ceil(to / PERIOD_MS[period]) - 1);
  }
}

function insertEntries(db: Database.Database, count: number): void {
  const values = auditValuesOf(storedKey('x', { description: 'Made by an apply, for the pipeline of the web shop.' }));
  const entryOf = (number: number) => ({
    number,
    at: Date.UTC(2024, 0, 1) + number * 1000,
    actor: { kind: 'KEY' as const, id: idOf(String(number % 500)), name: `Key ${number % 500}` },
    action: number % 2 === 0 ? ('CREATE' as const) : ('REFUSE' as const),
    apiKey: { id: idOf(String(number % 30_000)), name: `Key ${number % 30_000}` },
    before: null,
    after: number % 2 === 0 ? values : { reason: 'forbidden', count: 3, missing: ['LOGS:READ_ANY'] },
    hash: number.toString(16).padStart(64, '0'),
  });
  const insert = inserter(db, 'audit_log', toAuditRow(entryOf(1)));
  for (let number = 1; number <= count; number += 1) insert.run(toAuditRow(entryOf(number)));
  db.prepare('insert into audit_head (one, number, hash) values (1, ?, ?)').run(count, entryOf(count).hash);
}

function inserter(db: Database.Database, table: string, row: object): Database.Statement<[object]> {
  const columns = Object.keys(row);
  return db.prepare(
    `insert into ${table} (${columns.map((name) => `"${name}"`).join(', ')}) values (${columns.map((name) => `:${name}`).join(', ')})`,
  );
}
