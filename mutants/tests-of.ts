/** Below `test`, without the ending of their names. */
const TESTS: Record<string, string[]> = {
  http: ['http/**/*', 'graphql/**/*'],
  graphql: ['graphql/**/*', 'http/**/*'],
  'keys/service': [
    'keys/service/*',
    'keys/changes/*',
    'keys/audit/*',
    'keys/authentication/activity',
    'keys/authentication/identify',
    'keys/authorization/*',
    'keys/key/expiry',
    'attacks/escalation',
  ],
  'keys/audit': ['keys/audit/**/*', 'attacks/blinding'],
  'keys/authorization': ['keys/authorization/**/*', 'keys/key/expiry', 'attacks/escalation'],
  'keys/changes': [
    'keys/changes/**/*',
    'keys/authorization/**/*',
    'keys/audit/audit-log',
    'attacks/escalation',
    'attacks/names',
  ],
  'keys/key': [
    'keys/key/**/*',
    'keys/changes/rotation',
    'keys/changes/update',
    'keys/authentication/rotated-secrets',
    'keys/permissions/grants',
    'attacks/names',
  ],
  'keys/feed': ['keys/feed/**/*', 'notices/**/*'],
  'keys/repository': ['keys/consent/*', 'keys/authentication/sessions', 'keys/service/*'],
};

/** Patterns of the tests that a folder of `src` is tried on: those of the same folder, unless others are named. */
export function testsOf(folder: string): readonly string[] {
  return TESTS[folder] ?? [`${folder}/**/*`];
}
