import '../../scripts/jsx.ts';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { closeBrowser } from './browser/launch.ts';
import { failOnLeaks, nameTest, watchForLeaks } from './leaks.ts';
import { removePostgresStores, startPostgres, stopPostgres } from './postgres.ts';
import { ROOT } from './process.ts';
import { removeTempFolders } from './temp.ts';

/** Mocha's global set-up and tear-down. */
export async function mochaGlobalSetup(): Promise<void> {
  // For mocha's workers and the programs that they start, which otherwise strip the same types again.
  process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules', '.cache', 'compile');
  requireOneDriver();
  await startPostgres();
}

/**
 * Refuses a checkout that was copied together with its build. A test that loads both sources and build would have two
 * copies of SQLite in one process, and closing a file in one drops the locks of the other (POSIX.1, fcntl). The build
 * links the binary, so that both use one.
 */
function requireOneDriver(): void {
  const installed = join(ROOT, 'node_modules', 'better-sqlite3', 'prebuilds');
  for (const name of globSync('*.node', { cwd: installed })) {
    const [one, other] = [installed, join(ROOT, 'dist', 'better-sqlite3', 'prebuilds')].map((folder) =>
      statSync(join(folder, name), { throwIfNoEntry: false }),
    );
    if (other && one?.ino !== other.ino)
      throw new Error(
        `${name} in dist/better-sqlite3 is not the file that node_modules/better-sqlite3 has, as after "cp -r": there ` +
          'would be two copies of SQLite in one process, which break the locks of each other. Run "npm run build" first.',
      );
  }
}
export const mochaGlobalTeardown = stopPostgres;

/** Mocha's hooks for each file, in the process that runs it. */
export const mochaHooks = {
  beforeAll: watchForLeaks,
  beforeEach(this: Mocha.Context): void {
    nameTest(this.currentTest!.fullTitle());
  },
  afterAll: [closeBrowser, removeTempFolders, removePostgresStores, failOnLeaks],
};
