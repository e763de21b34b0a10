import { hash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { OPERATOR, openKeys } from './svc-api.ts';

/** A key that is asked with: the servers let in all of them, and others that nobody asks with. */
export interface BenchKey {
  id: string;
  name: string;
  roles: string[];
  secret: string;
}

/** How many keys are asked with: one for each connection. */
export const KEYS_ASKED_WITH = 32;

/** The host resource of the list. */
export const RESOURCES = ['ITEM'];

/** Makes a folder, and removes it with all that is in it when `work` has ended. */
export async function withFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-api-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Makes the stores of all rows in a folder, each with `size` keys. */
export async function makeStores(folder: string, size: number): Promise<BenchKey[]> {
  const keys = await makeStore(storePath(folder), size);
  makeNaiveStore(naivePath(folder), keys, size);
  writeFileSync(keysPath(folder), JSON.stringify(keys));
  return keys;
}

/** Makes a key store of svc-api: the keys that are asked with are created by it, all others are put into its table. */
export async function makeStore(database: string, size: number): Promise<BenchKey[]> {
  const store = await openKeys({ database, resources: RESOURCES });
  const keys: BenchKey[] = [];
  // Spread over time, as they would be: half of the others are older.
  fill(database, Math.floor((size - KEYS_ASKED_WITH) / 2), Date.UTC(2026, 0));
  while (keys.length < KEYS_ASKED_WITH) {
    const { secret, key } = await store.create({ name: `Asked with ${keys.length}`, roles: ['VIEWER'] }, OPERATOR);
    keys.push({ id: key.id, name: key.name, roles: key.roles, secret });
  }
  fill(database, Math.ceil((size - KEYS_ASKED_WITH) / 2), Date.now());
  await store.close();
  return keys;
}

/** Puts keys into the table, in pairs of a second, with digests that no secret has. */
function fill(database: string, count: number, from: number): void {
  const db = new Database(database);
  db.pragma('synchronous = off');
  db.pragma('cache_size = -2000000');
  const insert = db.prepare(
    `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at, managed, search_text)
     values (:id, :name, '["VIEWER"]', '[]', :publicId, :digest, :at, 0, upper(:name))`,
  );
  db.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      const random = randomBytes(32).toString('hex');
      const at = from + Math.floor(index / 2) * 1000;
      insert.run({ id: randomUUID(), name: `Key ${from} ${index}`, publicId: random.slice(0, 12) + index, digest: `sha256:${random}`, at });
    }
  })();
  db.exec('analyze');
  db.pragma('wal_checkpoint(truncate)');
  db.close();
}

function makeNaiveStore(path: string, keys: readonly BenchKey[], size: number): void {
  const db = new Database(path);
  db.pragma('journal_mode = wal');
  db.exec('create table keys (id text primary key, name text not null, roles text not null, digest text not null unique)');
  const insert = db.prepare('insert into keys values (?, ?, ?, ?)');
  db.transaction(() => {
    for (const { id, name, roles, secret } of keys) insert.run(id, name, JSON.stringify(roles), digestOf(secret));
    for (let index = keys.length; index < size; index += 1) {
      insert.run(randomUUID(), `Key ${index}`, '["VIEWER"]', randomBytes(32).toString('hex'));
    }
  })();
  db.close();
}

export function digestOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}

export function readKeys(folder: string): BenchKey[] {
  return JSON.parse(readFileSync(keysPath(folder), 'utf8')) as BenchKey[];
}

export const storePath = (folder: string): string => join(folder, 'keys.sqlite');
export const naivePath = (folder: string): string => join(folder, 'naive.sqlite');
const keysPath = (folder: string): string => join(folder, 'keys.json');
