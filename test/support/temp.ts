import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { isPostgresUrl } from '../../src/store/postgres-address.ts';
import { currentDialect } from './dialects.ts';
import { migratedPostgresStore, migratePostgresStore, postgresStore } from './postgres.ts';
import { STORES } from './features.ts';

/** The bytes of an SQLite store without keys, once they are known. */
let migrated: Promise<Buffer> | undefined;
const folders = new Set<string>();
// Programs that tests start have no hooks.
process.once('exit', removeTempFolders);

/** A new empty folder, removed after the tests of its file. */
export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-api-test-')));
  folders.add(folder);
  return folder;
}

/** A store that does not exist yet, of the current dialect: a path in a folder of its own, or a URL. */
export function tempStore(): string {
  return currentDialect() === 'postgres' ? postgresStore() : join(tempFolder(), 'keys.sqlite');
}

/** A store of the current dialect without keys, as its first start leaves it. */
export async function migratedStore(): Promise<string> {
  if (currentDialect() === 'postgres') return migratedPostgresStore();
  const path = tempStore();
  writeFileSync(path, await (migrated ??= migrate()), { mode: 0o600 });
  return path;
}

/** Makes a store that `tempStore` has named, without keys, as its first start would, in less time; leaves one that is there. */
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
