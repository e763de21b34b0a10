import { hash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { apiKey } from '@better-auth/api-key';
import { serve } from '@hono/node-server';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import Database from 'better-sqlite3';
import { Hono } from 'hono';
import { CONSTANT } from '../items.ts';
import { readKeys } from '../stores.ts';
import { folder, ready } from './common.ts';

const KEYS = 100_000;
const mode = process.argv[3] as 'default' | 'sqlite' | 'memory';
const inMemory = mode === 'memory';
const memory = new Map<string, string>();
const db = new Database(join(folder, `better-auth-${mode}.sqlite`));
if (mode !== 'default') db.pragma('journal_mode = wal');

// The default limit of 10 requests a day is too low. The other modes have all settings that make it fast.
const plugin =
  mode === 'default'
    ? apiKey({ rateLimit: { maxRequests: 1_000_000_000 } })
    : apiKey({
        rateLimit: { enabled: false },
        deferUpdates: true,
        storage: inMemory ? 'secondary-storage' : 'database',
      });
const auth = betterAuth({
  database: db,
  secret: randomBytes(32).toString('hex'),
  baseURL: 'http://127.0.0.1',
  logger: { disabled: true },
  telemetry: { enabled: false },
  plugins: [plugin],
  advanced: { backgroundTasks: { handler: () => {} } },
  ...(inMemory && { secondaryStorage: memoryStorage() }),
});
await (await getMigrations(auth.options)).runMigrations();
fill();

const app = new Hono();
app.use(async (c, next) => {
  const key = c.req.header('authorization')?.slice('Bearer '.length) ?? '';
  const { valid } = await auth.api.verifyApiKey({ body: { key } });
  return valid ? next() : c.json({ error: 'Unauthorized' }, 401);
});
app.get('/', (c) => c.json(CONSTANT));
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(port));

function memoryStorage() {
  const unused = () => {
    throw new Error('Not expected to be called.');
  };
  return {
    get: (key: string) => memory.get(key) ?? null,
    set: (key: string, value: string) => void memory.set(key, value),
    delete: (key: string) => void memory.delete(key),
    getAndDelete: unused,
    increment: unused,
  };
}

/** Inserts the keys like its own code. */
function fill(): void {
  const at = new Date().toISOString();
  const isLimited = mode === 'default' ? 1 : 0;
  const limit = { rateLimitEnabled: isLimited, rateLimitMax: 1_000_000_000, rateLimitTimeWindow: 86_400_000 };
  const row = { configId: 'default', createdAt: at, updatedAt: at, enabled: 1, requestCount: 0, ...limit };
  const columns = ['id', 'name', 'key', 'referenceId', ...Object.keys(row)];
  const insert = db.prepare(
    `insert into apikey (${columns.join(', ')}) values (${columns.map((column) => `@${column}`).join(', ')})`,
  );
  const put = (key: string, index: number) => {
    const entry = { ...row, id: `id-${index}`, name: `Key ${index}`, key, referenceId: `user-${index}` };
    if (!inMemory) insert.run(entry);
    else
      memory.set(
        `api-key:${key}`,
        JSON.stringify({ ...entry, enabled: true, rateLimitEnabled: false, remaining: null, expiresAt: null }),
      );
  };
  const keys = readKeys(folder);
  db.transaction(() => {
    for (const [index, { secret }] of keys.entries()) put(hash('sha256', secret, 'base64url'), index);
    for (let index = keys.length; index < KEYS; index += 1) put(randomBytes(32).toString('base64url'), index);
  })();
}
