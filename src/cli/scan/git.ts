import { Buffer } from 'node:buffer';
import { realpathSync } from 'node:fs';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { entriesOf, GIT, type OnUnreadable, pathIn } from './folder.ts';
import { GitMirror } from './git-mirror.ts';
import type { GitProgram } from './git-program.ts';
import { findRepository, type Repository, repositoryAt } from './repository.ts';

/** Requires that a folder is in the work tree of a repository. @throws CliError USAGE */
export function requireWorkTree(folder: string): void {
  if (findRepository(Buffer.from(folder))) return;
  throw new CliError(
    'USAGE',
    `--git: ${printable(folder, 300)} is not in a git work tree. Leave --git out to scan all files.`,
  );
}

/**
 * The files below a folder that git does not ignore, including those of nested repositories. Links are skipped. No
 * setting of a repository is used: see docs/decisions/scan-git.md.
 */
export async function* filesInWorkTree(
  folder: Buffer,
  git: GitProgram,
  onUnreadable: OnUnreadable,
): AsyncGenerator<Buffer> {
  let mirror: GitMirror | undefined;
  try {
    const repository = findRepository(folder)!;
    mirror = new GitMirror(git, repository);
    yield* filesOf(repository, { folder, mirror, git, onUnreadable });
  } catch (error) {
    onUnreadable(folder, error);
  } finally {
    mirror?.remove();
  }
}

interface Walk {
  folder: Buffer;
  mirror: GitMirror;
  git: GitProgram;
  onUnreadable: OnUnreadable;
}

/** Level by level: git is asked once for each, and ignored folders are not read. Names are relative to the top. */
async function* filesOf({ top }: Repository, { folder, mirror, git, onUnreadable }: Walk): AsyncGenerator<Buffer> {
  const tracked = new Set(await mirror.tracked());
  const trackedFolders = foldersAbove(tracked);
  const start = nameBelow(top, folder);
  for (const name of foldersAbove([start])) mirror.addRules(pathIn(top, Buffer.from(name, 'latin1')), name);
  let level = [{ path: folder, name: start }];
  while (level.length > 0) {
    const entries = level.flatMap(({ path, name }) => {
      mirror.addRules(path, name);
      return entriesIn(path, name, onUnreadable);
    });
    const ignored = await mirror.ignored(entries.map(({ name }) => name));
    level = [];
    for (const { path, name, isFile } of entries) {
      const isIncluded = !ignored.has(name);
      if (isFile) {
        if (isIncluded || tracked.has(name)) yield path;
      } else if (repositoryAt(path)) {
        if (isIncluded || tracked.has(name.slice(0, -1))) yield* filesInWorkTree(path, git, onUnreadable);
      } else if (isIncluded || trackedFolders.has(name)) level.push({ path, name });
    }
  }
}

/** The files and folders in a folder; the name of a folder ends with a slash. */
function entriesIn(
  folder: Buffer,
  above: string,
  onUnreadable: OnUnreadable,
): { path: Buffer; name: string; isFile: boolean }[] {
  return entriesOf(folder, onUnreadable)
    .filter((entry) => (entry.isFile() || entry.isDirectory()) && !entry.name.equals(GIT))
    .map((entry) => ({
      path: pathIn(folder, entry.name),
      name: `${above}${entry.name.toString('latin1')}${entry.isFile() ? '' : '/'}`,
      isFile: entry.isFile(),
    }));
}

/** All folders in which these names are, with a slash at the end; the top is empty. */
function foldersAbove(names: Iterable<string>): Set<string> {
  const folders = new Set(['']);
  for (const name of names) {
    let end = name.lastIndexOf('/');
    while (end >= 0 && !folders.has(name.slice(0, end + 1))) {
      folders.add(name.slice(0, end + 1));
      end = name.lastIndexOf('/', end - 1);
    }
  }
  return folders;
}

function nameBelow(top: Buffer, folder: Buffer): string {
  const below = realpathSync(folder, { encoding: 'buffer' }).subarray(top.length).toString('latin1');
  const name = below.replace(/^\//, '');
  return name === '' ? '' : `${name}/`;
}
