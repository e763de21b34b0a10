import type { DialectName } from '../../src/store/connection.ts';

const NAMES: Record<DialectName, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

let current: DialectName = 'sqlite';

/** The dialect of the stores that `tempStore` names now. */
export function currentDialect(): DialectName {
  return current;
}

/** Runs the same tests on each dialect, in a `describe` in which `tempStore` names stores of that dialect. */
export function describeOnEach(title: string, tests: (dialect: DialectName) => void): void {
  for (const dialect of Object.keys(NAMES) as DialectName[]) describeOn(dialect, title, () => tests(dialect));
}

/** Runs tests on one dialect. */
export function describeOn(dialect: DialectName, title: string, tests: () => void): void {
  describe(`on ${NAMES[dialect]}, ${title}`, () => {
    before(() => use(dialect));
    use(dialect);
    tests();
    use('sqlite');
    after(() => use('sqlite'));
  });
}

function use(dialect: DialectName): void {
  current = dialect;
}
