import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Package {
  gypfile?: boolean;
}

/**
 * The lockfile with `"gypfile": false` for each package that declares it because it contains its binaries. npm drops
 * the field from the lockfiles it writes. Without it, `npm ci` of npm 10 and 11 compiles each package with a
 * `binding.gyp`.
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

/** A package's own manifest; empty if it is not installed, like those for other platforms. */
function packageAt(path: string): Package {
  const file = `${root}${path}/package.json`;
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Package) : {};
}
