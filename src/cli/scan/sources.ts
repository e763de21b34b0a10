import { Buffer } from 'node:buffer';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { filesIn, type OnUnreadable } from './folder.ts';
import { filesInWorkTree, requireWorkTree } from './git.ts';

/** Something to read. Each part is good until the next one is asked for. */
export interface Source {
  path: Buffer;
  parts: Iterable<Buffer> | AsyncIterable<Buffer>;
  /** Whether it was named itself: a file that was only found may be gone when it is to be read. */
  named: boolean;
}

/** How much is read at once, in bytes. */
const CHUNK_BYTES = 256 * 1024;
const STDIN = '-';

/**
 * What stands behind paths: files, the files in folders, and stdin for `-`.
 * @throws CliError USAGE with `git`, before anything is read, when a folder is in no work tree
 */
export async function* sourcesOf(
  paths: readonly string[],
  git: boolean,
  onUnreadable: OnUnreadable,
): AsyncGenerator<Source> {
  if (git) for (const path of paths) if (path !== STDIN && isFolder(path)) await requireWorkTree(path);
  const part = Buffer.allocUnsafe(CHUNK_BYTES);
  for (const name of paths) {
    const path = Buffer.from(name);
    if (name === STDIN) yield { path, parts: process.stdin, named: true };
    else if (!isFolder(name)) yield { path, parts: partsOf(path, part), named: true };
    else {
      const files = git ? filesInWorkTree(path, onUnreadable) : filesIn(path, onUnreadable);
      for await (const file of files) yield { path: file, parts: partsOf(file, part), named: false };
    }
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Reading it says what is wrong.
  }
}

/** The bytes of a file, each part of them read into the same memory. */
function* partsOf(path: Buffer, memory: Buffer): Generator<Buffer> {
  const descriptor = openSync(path, 'r');
  try {
    for (let length = readSync(descriptor, memory); length > 0; length = readSync(descriptor, memory))
      yield memory.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
