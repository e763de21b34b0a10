import { removeTempFolders } from './temp.ts';

/** What mocha does after the tests of each file. */
export const mochaHooks = { afterAll: removeTempFolders };
