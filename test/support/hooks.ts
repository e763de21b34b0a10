import { removePostgresStores, startPostgres, stopPostgres } from './postgres.ts';
import { removeTempFolders } from './temp.ts';

/** What mocha does before all tests and after all, once. */
export const mochaGlobalSetup = startPostgres;
export const mochaGlobalTeardown = stopPostgres;

/** What mocha does after the tests of each file. */
export const mochaHooks = { afterAll: [removeTempFolders, removePostgresStores] };
