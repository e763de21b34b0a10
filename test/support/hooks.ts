import '../../scripts/jsx.ts';
import { join } from 'node:path';
import { closeBrowser } from './browser/launch.ts';
import { failOnLeaks, nameTest, watchForLeaks } from './leaks.ts';
import { removePostgresStores, startPostgres, stopPostgres } from './postgres.ts';
import { ROOT } from './process.ts';
import { removeTempFolders } from './temp.ts';

/** What mocha does before all tests and after all, once. */
export async function mochaGlobalSetup(): Promise<void> {
  // For mocha's workers and the programs that they start: each would strip the types of the same files again.
  process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules', '.cache', 'compile');
  await startPostgres();
}
export const mochaGlobalTeardown = stopPostgres;

/** What mocha does around the tests of each file, in the process that runs it. */
export const mochaHooks = {
  beforeAll: watchForLeaks,
  beforeEach(this: Mocha.Context): void {
    nameTest(this.currentTest!.fullTitle());
  },
  afterAll: [closeBrowser, removeTempFolders, removePostgresStores, failOnLeaks],
};
