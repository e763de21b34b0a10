/** Below `test`, without the ending of their names. */
export const TESTS: Readonly<Record<string, readonly string[]>> = {
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
  'features/edge': ['features/edge/*', 'together/edge', 'together/resting-edge', 'together/edge-in-library'],
  'keys/operations': ['keys/service/*', 'attacks/operations'],
  'keys/repository': ['keys/service/*'],
};

/** Patterns of the tests that a folder of `src` is tried on: those of the same folder, unless others are named. */
export function testsOf(folder: string): readonly string[] {
  return TESTS[folder] ?? [`${folder}/**/*`];
}
