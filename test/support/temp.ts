import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentDialect } from './dialects.ts';
import { postgresStore } from './postgres.ts';

const folders = new Set<string>();

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

export function removeTempFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
