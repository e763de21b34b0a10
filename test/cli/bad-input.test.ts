import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { testCli } from '../support/cli.ts';
import { errorText, referenceOf } from '../support/errors.ts';

const LONG = 'x'.repeat(101);

/** The value of a flag, the error code, and a pattern for the message. */
type Row = readonly [value: string, code: string, says: RegExp];

const NAMES: readonly Row[] = [
  ['', 'NAME_INVALID', /^The name is empty: it needs at least one letter or digit\.$/],
  ['   ', 'NAME_INVALID', /^The name is empty/],
  [LONG, 'NAME_INVALID', /^The name is 101 characters long; at most 100 are allowed\.$/],
  ['key 🔑', 'NAME_INVALID', /may only contain letters, digits and spaces; found "🔑" \(U\+1F511\)\.$/],
  [
    'my-key_1',
    'NAME_INVALID',
    /may only contain letters, digits and spaces; found "-" \(U\+002D\) and "_" \(U\+005F\)\.$/,
  ],
  ['\u0301', 'NAME_INVALID', /may only contain letters, digits and spaces; found U\+0301\.$/],
  ['two\nlines', 'NAME_INVALID', /may only contain letters, digits and spaces; found U\+000A\.$/],
  ['\u001b[31mred', 'NAME_INVALID', /found U\+001B and "\[" \(U\+005B\)\.$/],
  ['a\u202eb', 'NAME_INVALID', /found U\+202E\.$/],
  ['\u3164', 'NAME_INVALID', /found U\+3164\.$/],
];

const DESCRIPTIONS: readonly Row[] = [
  ['two\nlines', 'DESCRIPTION_INVALID', /^The description must not contain control characters/],
  ['x'.repeat(1001), 'DESCRIPTION_INVALID', /^The description is 1001 characters long; at most 1000 are allowed\.$/],
];

const ROLES: readonly Row[] = [
  ['', 'ROLE_INVALID', /^An item of the list of roles is empty\. The roles are ADMIN, CONNECT, VIEWER and GUEST\.$/],
  ['  ', 'ROLE_INVALID', /^An item of the list of roles is empty\./],
  ['ADMIN,,VIEWER', 'ROLE_INVALID', /^An item of the list of roles is empty\./],
  ['ADMIN,', 'ROLE_INVALID', /^An item of the list of roles is empty\./],
  ['VIEWR', 'ROLE_INVALID', /^"VIEWR" is not a role\. Did you mean VIEWER\?$/],
  ['🔑', 'ROLE_INVALID', /^"🔑" is not a role\. The roles are /],
  ['AD-MIN', 'ROLE_INVALID', /^"AD-MIN" is not a role\. Did you mean ADMIN\?$/],
  ['ADMIN\nGUEST', 'ROLE_INVALID', /^"ADMIN<U\+000A>GUEST" is not a role\./],
  ['مدير', 'ROLE_INVALID', /^"مدير" is not a role\./],
  ['\u0301', 'ROLE_INVALID', /is not a role\./],
  [LONG, 'ROLE_INVALID', /^"x{60}…" is not a role\./],
];

const PERMISSIONS: readonly Row[] = [
  [
    '',
    'PERMISSION_INVALID',
    /^An item of the list of permissions is empty\. Write each as RESOURCE:ACTION, such as DASHBOARD:READ_ANY\.$/,
  ],
  ['DOCKER:READ_ANY,,VMS:READ_ANY', 'PERMISSION_INVALID', /^An item of the list of permissions is empty\./],
  ['DOCKER', 'PERMISSION_INVALID', /^"DOCKER" is not a permission\. Write RESOURCE:ACTION, such as DOCKER:READ_ANY\.$/],
  ['DOCKER:', 'PERMISSION_INVALID', /^"DOCKER:" is not a permission\. Write RESOURCE:ACTION/],
  [
    ':UPDATE_ANY',
    'PERMISSION_INVALID',
    /^":UPDATE_ANY" is not a permission\. Write RESOURCE:ACTION, such as DASHBOARD:UPDATE_ANY\.$/,
  ],
  ['DOCKER:READ_ANY:X', 'PERMISSION_INVALID', /^"DOCKER:READ_ANY:X" is not a permission\. Write RESOURCE:ACTION/],
  [
    'DOKCER:READ_ANY',
    'PERMISSION_INVALID',
    /"DOKCER" is not a resource\. Did you mean DOCKER\? Resources of your own are declared under /,
  ],
  [
    'WIKI:READ_ANY',
    'PERMISSION_INVALID',
    /"WIKI" is not a resource\. .* Resources of your own are declared under "resources" in \/.*\/svc-api\/svc-api\.yaml\.$/,
  ],
  [
    'DOCKER:*',
    'PERMISSION_INVALID',
    /^"DOCKER:\*" is not a permission: wildcards are not allowed\. List each one: DOCKER:CREATE_ANY,DOCKER:READ_ANY,DOCKER:UPDATE_ANY,DOCKER:DELETE_ANY\.$/,
  ],
  ['docker:read_*', 'PERMISSION_INVALID', /wildcards are not allowed\. List each one: DOCKER:READ_ANY\.$/],
  [
    '*:READ_ANY',
    'PERMISSION_INVALID',
    /wildcards are not allowed\. List each permission, or grant a role: VIEWER reads/,
  ],
  ['*', 'PERMISSION_INVALID', /^"\*" is not a permission: wildcards are not allowed\. .* ADMIN includes all\.$/],
  ['DOCKER:RAED_ANY', 'PERMISSION_INVALID', /"RAED_ANY" is not an action\. Did you mean READ_ANY.*\?$/],
  ['DOCKER\n:READ_ANY\u202e', 'PERMISSION_INVALID', /^"DOCKER<U\+000A>:READ_ANY<U\+202E>" is not a permission/],
  [
    '🔑:💥',
    'PERMISSION_INVALID',
    /"🔑" is not a resource\. The resources are .* "💥" is not an action\. The actions are /,
  ],
];

const CREATE = ['apikey', '--create'];
const tables: readonly (readonly [flag: string, rows: readonly Row[], args: (value: string) => string[]])[] = [
  ['--name', NAMES, (value) => [...CREATE, '--name', value, '--roles', 'GUEST']],
  [
    '--description',
    DESCRIPTIONS,
    (value) => [...CREATE, '--name', 'A key', '--roles', 'GUEST', '--description', value],
  ],
  ['--roles', ROLES, (value) => [...CREATE, '--name', 'A key', '--roles', value]],
  ['--permissions', PERMISSIONS, (value) => [...CREATE, '--name', 'A key', '--permissions', value]],
];

describe('apikey with bad values', () => {
  for (const [flag, rows, args] of tables) {
    it(`refuses each bad ${flag} with one JSON object, exit 2 and nothing written`, async () => {
      const cli = testCli();
      for (const [value, code, says] of rows) {
        const result = await cli.run([...args(value), '--json']);
        const { error } = JSON.parse(result.stdout) as { error: string };
        assert.match(error, says);
        assert.deepEqual(result, {
          stdout: `${JSON.stringify({ error, code }, null, 2)}\n`,
          stderr: '',
          code: 2,
          signal: null,
        });
        assert.ok(!existsSync(cli.database), `${JSON.stringify(value)} made a store`);
      }
    });
  }

  it('reports all issues together, one a line, with the exit code of the first', async () => {
    const cli = testCli();
    const args = [
      ...CREATE,
      '--name',
      'a-b',
      '--description',
      'a\tb',
      '--roles',
      'VIEWR,,ADMIN',
      '--permissions',
      'DOCKER',
    ];
    const [plain, nameless, grantless] = await Promise.all([
      cli.run(args),
      cli.run([...CREATE, '--roles', 'VIEWR', '--json']),
      cli.run([...CREATE, '--name', 'a-b']),
    ]);
    assert.deepEqual(plain.stderr.split('\n'), [
      'Error: The name may only contain letters, digits and spaces; found "-" (U+002D).',
      '       The description must not contain control characters, such as line breaks or tabs.',
      '       "VIEWR" is not a role. Did you mean VIEWER?',
      '       An item of the list of roles is empty. The roles are ADMIN, CONNECT, VIEWER and GUEST.',
      '       "DOCKER" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
      'Code: NAME_INVALID',
      `Reference: ${referenceOf('NAME_INVALID')}`,
      '',
    ]);
    assert.deepEqual([plain.stdout, plain.code], ['', 2]);
    assert.deepEqual(JSON.parse(nameless.stdout), {
      error:
        'The name is missing. Pass --name <name>; you can only be asked for it on a terminal, without --json and --no-input. "VIEWR" is not a role. Did you mean VIEWER?',
      code: 'USAGE',
    });
    assert.equal(nameless.code, 2);
    assert.match(grantless.stderr, /found "-" \(U\+002D\)\.\n.*at least one role or permission/);
    assert.equal(grantless.code, 2);
    assert.ok(!existsSync(cli.database));
  });

  it('asks for at least one role or permission', async () => {
    const cli = testCli();
    const [plain, asJson] = await Promise.all([
      cli.run([...CREATE, '--name', 'A']),
      cli.run([...CREATE, '--name', 'A', '--json']),
    ]);
    const error = 'An API key needs at least one role or permission. Pass --roles, --permissions or both.';
    assert.deepEqual(plain, { stdout: '', stderr: errorText('NO_GRANTS', error), code: 2, signal: null });
    assert.deepEqual([JSON.parse(asJson.stdout), asJson.stderr, asJson.code], [{ error, code: 'NO_GRANTS' }, '', 2]);
    assert.ok(!existsSync(cli.database));
  });

  it('is shown escaped where tags and owners could have terminal control characters', async () => {
    const cli = testCli();
    const [tag, owner] = ['k=v\u202ex', 'A\u202eB'];
    const shown = 'k=v<U+202E>x';
    assert.equal(
      (await cli.run([...CREATE, '--name', 'T', '--roles', 'GUEST', '--tag', tag, '--owner', owner])).code,
      0,
    );
    for (const [line, text] of [
      ['show T', shown],
      ['list --columns tags', shown],
      ['log', shown],
      ['update T --no-tags', shown],
    ] as const) {
      const { stdout, code } = await cli.run(['apikey', ...line.split(' ')]);
      assert.equal(code, 0, line);
      assert.ok(stdout.includes(text) && !stdout.includes('\u202e'), `${line}: ${stdout}`);
    }
  });
});
