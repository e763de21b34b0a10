import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { isPostgresUrl } from '../../src/store/postgres-address.ts';
import { currentDialect } from './dialects.ts';
import { migratedPostgresStore, migratePostgresStore, postgresStore } from './postgres.ts';
import { STORES } from './features.ts';

/** The bytes of an SQLite store without keys, after the first use. */
let migrated: Promise<Buffer> | undefined;
const folders = new Set<string>();
// Programs that tests start have no mocha hooks.
process.once('exit', removeTempFolders);

/** A new empty folder, removed after the tests of its file. */
export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-api-test-')));
  folders.add(folder);
  return folder;
}

/** A new store's location in the current dialect: a path in a new folder, or a URL. */
export function tempStore(): string {
  return currentDialect() === 'postgres' ? postgresStore() : join(tempFolder(), 'keys.sqlite');
}

/** A store of the current dialect without keys, as after its first start. */
export async function migratedStore(): Promise<string> {
  if (currentDialect() === 'postgres') return migratedPostgresStore();
  const path = tempStore();
  writeFileSync(path, await (migrated ??= migrate()), { mode: 0o600 });
  return path;
}

/** Creates an empty store at a location from `tempStore`, faster than a first start. An existing one stays. */
export async function makeStore(location: string): Promise<void> {
  if (isPostgresUrl(location)) return migratePostgresStore(location);
  if (!folders.has(dirname(location)) || existsSync(location)) return;
  writeFileSync(location, await (migrated ??= migrate()), { mode: 0o600, flag: 'wx' });
}

async function migrate(): Promise<Buffer> {
  const path = join(tempFolder(), 'keys.sqlite');
  const store = await openStore({ database: path }, { features: STORES });
  await store.close();
  return readFileSync(path);
}

export function removeTempFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
