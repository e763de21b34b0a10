/** Tests that need PostgreSQL, with which the rules are the same, and those that take minutes once each step is counted. */
const LEFT_OUT = ['on PostgreSQL', '.* chain of 1,500 keys', '.* keeps no more than the end of what it has seen'];

/** See https://stryker-mutator.io/docs/stryker-js/configuration. */
export default {
  testRunner: 'mocha',
  plugins: ['@stryker-mutator/mocha-runner'],
  coverageAnalysis: 'perTest',
  mochaOptions: {
    'no-config': true,
    spec: (process.env['MUTANTS_TESTS'] ?? '').split(',').map((folder) => `test/${folder}/**/*.test.ts`),
    require: ['./test/support/hooks.ts'],
    grep: `^(?!${LEFT_OUT.join('|')})`,
  },
  // Most strings are the words of messages. Those that are compared change with the condition.
  mutator: { excludedMutations: ['StringLiteral'] },
  disableTypeChecks: false,
  // Stryker would rewrite TypeScript's configuration through an API that TypeScript 7 no longer has.
  ignorePatterns: ['.tmp', 'bench', 'dist', 'docs', 'examples', 'tsconfig*.json'],
  tempDirName: '.tmp/mutants',
  reporters: ['progress-append-only', 'json'],
  jsonReporter: { fileName: '.tmp/mutants.json' },
};
