import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();

/** A new empty folder, removed when the process ends. */
export function tempFolder(): string {
  if (folders.size === 0) process.once('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-api-test-')));
  folders.add(folder);
  return folder;
}

/** The path of a store that does not exist yet, in a folder of its own. */
export function tempStore(): string {
  return join(tempFolder(), 'keys.sqlite');
}
