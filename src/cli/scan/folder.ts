import { Buffer } from 'node:buffer';
import { type Dirent, readdirSync } from 'node:fs';

/** Called for each path that can't be read. */
export type OnUnreadable = (path: Buffer, error: unknown) => void;

const SEPARATOR = Buffer.from('/');
/** The name of a repository's folder. */
export const GIT = Buffer.from('.git');

/** A path in a folder. Paths are bytes: file names need not be UTF-8. */
export function pathIn(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat(folder.at(-1) === SEPARATOR[0] ? [folder, name] : [folder, SEPARATOR, name]);
}

/** The files below a folder, sorted by name. Links are not followed, and folders named .git are skipped. */
export function* filesIn(folder: Buffer, onUnreadable: OnUnreadable): Generator<Buffer> {
  for (const entry of entriesOf(folder, onUnreadable)) {
    const path = pathIn(folder, entry.name);
    if (entry.isFile()) yield path;
    else if (entry.isDirectory() && !entry.name.equals(GIT)) yield* filesIn(path, onUnreadable);
  }
}

/** What is in a folder, sorted by name. */
export function entriesOf(folder: Buffer, onUnreadable: OnUnreadable): Dirent<Buffer>[] {
  try {
    const entries: Dirent<Buffer>[] = readdirSync(folder, { withFileTypes: true, encoding: 'buffer' });
    return entries.toSorted((one, other) => Buffer.compare(one.name, other.name));
  } catch (error) {
    onUnreadable(folder, error);
    return [];
  }
}
