import { Buffer } from 'node:buffer';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { filesIn, type OnUnreadable } from './folder.ts';
import { GitProgram } from './git-program.ts';
import { filesInWorkTree, requireWorkTree } from './git.ts';

/** Something to read. A chunk is valid until the next one is requested. */
export interface Source {
  path: Buffer;
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>;
  /** Whether the user named it. A file that was only found in a folder may be gone before it is read. */
  named: boolean;
}

const CHUNK_BYTES = 256 * 1024;
const STDIN = '-';

/**
 * Resolves paths: files, the files in folders, and stdin for `-`.
 * @throws CliError USAGE with `git`, before anything is read, if a folder is not in a work tree
 */
export async function* sourcesOf(
  paths: readonly string[],
  git: boolean,
  onUnreadable: OnUnreadable,
): AsyncGenerator<Source> {
  const program = git ? new GitProgram() : undefined;
  if (program) {
    await program.require();
    for (const path of paths) if (path !== STDIN && isFolder(path)) requireWorkTree(path);
  }
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (const name of paths) {
    const path = Buffer.from(name);
    if (name === STDIN) yield { path, chunks: process.stdin, named: true };
    else if (!isFolder(name)) yield { path, chunks: chunksOf(path, buffer), named: true };
    else {
      const files = program ? filesInWorkTree(path, program, onUnreadable) : filesIn(path, onUnreadable);
      for await (const file of files) yield { path: file, chunks: chunksOf(file, buffer), named: false };
    }
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Reading it will report the problem.
  }
}

/** The bytes of a file, each chunk read into the same buffer. */
function* chunksOf(path: Buffer, buffer: Buffer): Generator<Buffer> {
  const descriptor = openSync(path, 'r');
  try {
    for (let length = readSync(descriptor, buffer); length > 0; length = readSync(descriptor, buffer))
      yield buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
