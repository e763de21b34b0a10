import { hash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { ApiKey } from '../src/keys/key/api-key.ts';
import { formatCursor } from '../src/keys/service/management.ts';
import { createSecret } from '../src/keys/secret/secret.ts';
import { openKeys } from './svc-api.ts';

/** A key for requests. */
export interface BenchKey {
  id: string;
  name: string;
  roles: string[];
  secret: string;
}

/** The sizes of stores. */
export interface StoreSizes {
  size: number;
  /** How many keys the requests use in turn. */
  live: number;
}

/** The host's resource for its list. */
export const RESOURCES = ['ITEM'];

/** Creates a temporary folder for the duration of `work`. */
export async function withFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-api-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Creates the stores of all rows in a temporary folder, for the duration of `work`. */
export function withStores<Result>(
  { size, live }: StoreSizes,
  work: (keys: BenchKey[], folder: string) => Promise<Result>,
): Promise<Result> {
  return withFolder(async (folder) => work(await makeStores(folder, size, live), folder));
}

async function makeStores(folder: string, size: number, live: number): Promise<BenchKey[]> {
  const keys = await makeStore(storePath(folder), size, live);
  makeNaiveStore(naivePath(folder), keys, size);
  writeFileSync(keysPath(folder), JSON.stringify(keys));
  return keys;
}

/**
 * Creates a key store by SQL, since creating a million keys would take an hour.
 * @returns `known` keys, evenly spread; the secrets of the others are unknown
 */
export async function makeStore(database: string, size: number, known: number): Promise<BenchKey[]> {
  await (await openKeys({ database })).close();
  const db = new Database(database);
  db.pragma('synchronous = off');
  db.pragma('cache_size = -2000000');
  const insert = db.prepare(
    `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at, managed, short_text)
     values (:id, :name, '["VIEWER"]', '["ITEM:UPDATE_ANY"]', :publicId, :digest, :at, 0, upper(:name))`,
  );
  const keys: BenchKey[] = [];
  const step = Math.floor(size / known);
  const start = Date.now() - size * 1000;
  db.transaction(() => {
    for (let index = 0; index < size; index += 1) {
      const [id, name, at] = [randomUUID(), `Key ${index}`, start + index * 1000];
      const random = randomBytes(32).toString('hex');
      let [publicId, digest] = [random.slice(0, 12), Buffer.from(random, 'hex').toString('base64url')];
      if (index % step === 0 && keys.length < known) {
        const secret = createSecret(randomBytes);
        [publicId, digest] = [secret.publicId, secret.digest];
        keys.push({ id, name, roles: ['VIEWER'], secret: secret.text });
      }
      insert.run({ id, name, publicId, digest, at });
    }
  })();
  db.pragma('wal_checkpoint(truncate)');
  db.close();
  return keys;
}

/** The cursor before the last `count` keys of a store. */
export function cursorBeforeLast(database: string, count: number): string {
  const db = new Database(database, { readonly: true });
  const select = db.prepare<[number], ApiKey>(
    'select id, created_at as createdAt from api_keys order by created_at desc, id desc limit 1 offset ?',
  );
  const key = select.get(count)!;
  db.close();
  return formatCursor(key);
}

function makeNaiveStore(path: string, keys: readonly BenchKey[], size: number): void {
  const db = new Database(path);
  db.pragma('journal_mode = wal');
  db.exec(
    'create table keys (id text primary key, name text not null, roles text not null, digest text not null unique)',
  );
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
/** The file with the URL of the store's PostgreSQL copy. */
export const postgresPath = (folder: string): string => join(folder, 'postgres-url');
export const naivePath = (folder: string): string => join(folder, 'naive.sqlite');
const keysPath = (folder: string): string => join(folder, 'keys.json');
