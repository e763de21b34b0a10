import type { DialectName } from '../../src/store/connection.ts';
import { useDatabaseFor } from './postgres.ts';
import { stopRemoteStores } from './remote.ts';

const NAMES: Record<DialectName, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

let current: DialectName = 'sqlite';
let remote = false;

/** The dialect of new stores from `tempStore`. */
export function currentDialect(): DialectName {
  return current;
}

/** True while the commands of `testCli` go to a server. */
export function isRemote(): boolean {
  return remote;
}

/**
 * Runs the same tests on each dialect, and a third time through a server: there, `testCli` gives commands its address
 * and a key.
 */
export function describeOnEachAndRemotely(title: string, tests: () => void): void {
  describeOnEach(title, tests);
  again(() =>
    describe(`by a server, ${title}`, () => {
      before(() => void (remote = true));
      remote = true;
      tests();
      remote = false;
      afterEach(stopRemoteStores);
      after(() => void (remote = false));
    }),
  );
}

/** A test that needs direct access to the store. */
export function itOnStores(title: string, test: Mocha.AsyncFunc): void {
  if (!remote) it(title, test);
}

/** Runs the same tests on each dialect, which `tempStore` uses for new stores. */
export function describeOnEach(title: string, tests: (dialect: DialectName) => void): void {
  describeOn('sqlite', title, () => tests('sqlite'));
  again(() => describeOn('postgres', title, () => tests('postgres')));
}

/** The same for tests of basics, and of what depends most on the dialect: `npm test` runs them on both. */
export function describeAlwaysOnEach(title: string, tests: (dialect: DialectName) => void): void {
  for (const dialect of Object.keys(NAMES) as DialectName[]) describeOn(dialect, title, () => tests(dialect));
}

/** Runs tests on one dialect. */
export function describeOn(dialect: DialectName, title: string, tests: () => void): void {
  describe(`on ${NAMES[dialect]}, ${title}`, () => {
    before(async function () {
      use(dialect);
      // Most tests use one store.
      if (dialect === 'postgres') await useDatabaseFor(this.test!.parent!.total());
    });
    use(dialect);
    tests();
    use('sqlite');
    after(() => use('sqlite'));
  });
}

/** Repeated runs of the same tests, for `npm run test:again` only. */
function again(define: () => void): void {
  describe('again', define);
}

function use(dialect: DialectName): void {
  current = dialect;
}
