import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();

/** A new empty folder, removed when the tests of its file have ended. */
export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-api-test-')));
  folders.add(folder);
  return folder;
}

/** The path of a store that does not exist yet, in a folder of its own. */
export function tempStore(): string {
  return join(tempFolder(), 'keys.sqlite');
}

export function removeTempFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
