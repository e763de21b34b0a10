import { Buffer } from 'node:buffer';
import { lstatSync, realpathSync } from 'node:fs';
import { readPlainFile } from '../input/plain-file.ts';
import { GIT, pathIn } from './folder.ts';

/** The longest pointer from a work tree to its repository, in bytes. */
const MAX_POINTER_BYTES = 8192;
const SLASH = 0x2f;

/** A repository and its work tree, found without git: each path is real, and its bytes are those of the disk. */
export interface Repository {
  /** The top folder of the work tree. */
  top: Buffer;
  /** Holds the index. */
  gitDir: Buffer;
  /** Holds `info/exclude`: for a linked work tree it is that of the main one, otherwise the same as `gitDir`. */
  commonDir: Buffer;
}

/** The repository in whose work tree a folder is; undefined if it is in none. @throws an error of the file system */
export function findRepository(folder: Buffer): Repository | undefined {
  let top = realpathSync(folder, { encoding: 'buffer' });
  for (;;) {
    const end = top.lastIndexOf(SLASH);
    if (top.subarray(end + 1).equals(GIT)) return undefined;
    const found = repositoryAt(top);
    if (found || end < 0 || top.length === 1) return found;
    top = top.subarray(0, Math.max(end, 1));
  }
}

/** The repository whose work tree has this top folder; undefined if there is none. */
export function repositoryAt(top: Buffer): Repository | undefined {
  const entry = pathIn(top, GIT);
  const pointer = readPlainFile(entry, MAX_POINTER_BYTES)?.toString('latin1');
  const [, target] = /^gitdir: (.+?)[\r\n]*$/s.exec(pointer ?? '') ?? [];
  if (pointer !== undefined && target === undefined) return undefined;
  const gitDir = target === undefined ? entry : resolve(top, target);
  if (!exists(pathIn(gitDir, Buffer.from('HEAD')))) return undefined;
  const common = readPlainFile(pathIn(gitDir, Buffer.from('commondir')), MAX_POINTER_BYTES)
    ?.toString('latin1')
    .trim();
  return { top, gitDir, commonDir: common ? resolve(gitDir, common) : gitDir };
}

function exists(path: Buffer): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function resolve(folder: Buffer, target: string): Buffer {
  const path = Buffer.from(target, 'latin1');
  return path[0] === SLASH ? path : pathIn(folder, path);
}
