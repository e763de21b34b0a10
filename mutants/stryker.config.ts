/** Tests that need PostgreSQL, with which the rules are the same, or a build, or minutes once each step is counted. */
const LEFT_OUT = [
  '(again )?on PostgreSQL',
  'the command line',
  '.* chain of 1100 keys',
  '.* keeps only the end of the input',
  '.* for every character of Unicode',
];

/** See https://stryker-mutator.io/docs/stryker-js/configuration. */
export default {
  testRunner: 'mocha',
  plugins: ['@stryker-mutator/mocha-runner'],
  coverageAnalysis: 'perTest',
  mochaOptions: {
    'no-config': true,
    spec: (process.env['MUTANTS_TESTS'] ?? '').split(',').map((pattern) => `test/${pattern}.test.ts`),
    require: ['./test/support/hooks.ts'],
    grep: `^(?!${LEFT_OUT.join('|')})`,
  },
  // What runs only while its module is loaded can't be changed in a process that has loaded it: each such mutant would
  // cost a new process and a run of all tests. Most are in tables and patterns, which tests compare entry by entry.
  ignoreStatic: true,
  // Most strings are the words of messages. Those that are compared change with the condition.
  mutator: { excludedMutations: ['StringLiteral'] },
  disableTypeChecks: false,
  // Stryker would rewrite TypeScript's configuration through an API that TypeScript 7 no longer has.
  ignorePatterns: ['.tmp', 'bench', 'dist', 'docs', 'examples', 'tsconfig*.json'],
  tempDirName: '.tmp/mutants',
  reporters: ['progress-append-only', 'json'],
  jsonReporter: { fileName: '.tmp/mutants.json' },
};
