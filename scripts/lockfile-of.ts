import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Package {
  gypfile?: boolean;
}

/**
 * The lockfile, with `"gypfile": false` for each package that says so itself: it brings its binaries along. npm leaves that
 * out of the lockfiles that it writes, and before version 12 `npm ci` then compiles what has a `binding.gyp`.
 */
export function lockfileOf(): string {
  const lockfile = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
    packages: Record<string, Package>;
  };
  for (const [path, entry] of Object.entries(lockfile.packages)) {
    if (packageAt(path).gypfile === false) entry.gypfile = false;
  }
  return `${JSON.stringify(lockfile, null, 2)}\n`;
}

/** What a package says of itself; nothing where it is not installed, as those for other platforms are not. */
function packageAt(path: string): Package {
  const file = `${root}${path}/package.json`;
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Package) : {};
}
