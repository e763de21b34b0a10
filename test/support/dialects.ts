import type { DialectName } from '../../src/store/connection.ts';
import { useDatabaseFor } from './postgres.ts';
import { stopRemoteStores } from './remote.ts';

const NAMES: Record<DialectName, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

let current: DialectName = 'sqlite';
let remote = false;

/** The dialect of the stores that `tempStore` names now. */
export function currentDialect(): DialectName {
  return current;
}

/** True if `testCli` works on stores by a server now. */
export function isRemote(): boolean {
  return remote;
}

/**
 * Runs the same tests on each dialect, and a third time by a server, in a `describe` in which `testCli` gives commands
 * its address and a key.
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

/** A test of what is so with a store at hand alone. */
export function itOnStores(title: string, test: Mocha.AsyncFunc): void {
  if (!remote) it(title, test);
}

/** Runs the same tests on each dialect, in a `describe` in which `tempStore` names stores of that dialect. */
export function describeOnEach(title: string, tests: (dialect: DialectName) => void): void {
  describeOn('sqlite', title, () => tests('sqlite'));
  again(() => describeOn('postgres', title, () => tests('postgres')));
}

/** The same for what everything else rests on, and what depends on the dialect most: `npm test` has both runs. */
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

/** Further runs of the same tests: `npm test` leaves them to `npm run test:again`, which runs nothing else. */
function again(define: () => void): void {
  describe('again', define);
}

function use(dialect: DialectName): void {
  current = dialect;
}
