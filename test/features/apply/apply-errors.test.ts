import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type TestApply, testApply } from '../../support/apply.ts';
import { workOf } from '../../support/work.ts';
import { errorText } from '../../support/errors.ts';
import { ROOT } from '../../support/process.ts';

/** Invalid texts, with the place of the fault and a part of the message. */
const FAULTS: readonly (readonly [what: string, text: string, place: string, message: RegExp])[] = [
  ['no text at all', '', '1:1', /must be a map with the field "keys"/],
  ['comments alone', '# none\n', '1:1', /must be a map/],
  ['a list', '- name: A', '1:1', /must be a map/],
  ['no keys', '{}', '1:1', /"keys" is missing/],
  ['keys that are no list', 'keys:\n  A: {}', '2:3', /"keys" must be a list/],
  [
    'an unknown field',
    'keys: []\nversion: 1',
    '2:1',
    /"version" is not a field\. The fields here are keys and \$schema/,
  ],
  ['a broken list', 'keys: [\n', '2:1', /end with a \]/],
  ['a tab', 'keys:\n\t- name: A', '2:1', /Tabs/],
  ['a field twice', 'keys: []\n"keys": []', '2:1', /The field "keys" is given more than once/],
  ['a second document', 'keys: []\n---\nkeys: []', '2:1', /A second document/],
  ['an unknown tag', 'keys: !secret []', '1:7', /Unresolved tag/],
  ['an alias of nothing', 'keys:\n  - *A', '2:5', /no anchor "&A"/],
  ['a key that is no map', 'keys:\n  - A', '2:5', /must be a map with the field "name"/],
  ['an unknown field of a key', key('rolls: [GUEST]'), '4:5', /"rolls" is not a field\. Did you mean "roles"\?/],
  ['a merged map', key('<<: {enabled: true}'), '4:5', /"<<" is not a field/],
  ['no name', 'keys:\n  - roles: [GUEST]', '2:5', /"name" is missing/],
  ['an empty name', 'keys:\n  - {name: " ", roles: [GUEST]}', '2:12', /name is empty/],
  ['a bad name', 'keys:\n  - {name: a-b, roles: [GUEST]}', '2:12', /found "-"/],
  ['a name that is a number', 'keys:\n  - {name: 12, roles: [GUEST]}', '2:12', /"name" must be text\. Quote/],
  [
    'a name twice',
    'keys:\n  - {name: é, roles: [GUEST]}\n  - {name: " e\u0301", roles: [GUEST]}',
    '3:12',
    /"é" is declared more than once/,
  ],
  ['a description that is a map', key('description: {a: 1}'), '4:18', /"description" must be text/],
  ['a description of two lines', key('description: |\n      a\n      b'), '4:18', /control characters/],
  ['roles that are no list', 'keys:\n  - name: A\n    roles: GUEST', '3:12', /"roles" must be a list/],
  ['an empty list of roles', 'keys:\n  - name: A\n    roles: []', '2:5', /at least one role or permission/],
  ['no grants', 'keys:\n  - name: A', '2:5', /at least one role or permission/],
  [
    'an unknown role',
    'keys:\n  - name: A\n    roles: [GUEST, GEST]',
    '3:20',
    /"GEST" is not a role\. Did you mean GUEST\?/,
  ],
  [
    'a role that is nothing',
    'keys:\n  - name: A\n    roles:\n    - GUEST\n    -',
    '5:6',
    /An item of this list is empty/,
  ],
  [
    'a bad permission',
    key('permissions:\n      - DOCKER:READ_ANY\n      - DOCKER:FLY'),
    '6:9',
    /"FLY" is not an action/,
  ],
  ['an unknown resource', key('permissions: [DOKER:READ_ANY]'), '4:19', /Did you mean DOCKER/],
  ['an end that is no date', key('expiresAt: tomorrow'), '4:16', /not an RFC 3339 date and time/],
  ['an end that is a number', key('expiresAt: 2030'), '4:16', /"expiresAt" must be text/],
  ['an end on no day', key('expiresAt: 2030-02-30T00:00:00Z'), '4:16', /not an RFC 3339 date and time/],
  ['an end in the past', key('expiresAt: 2020-01-01T00:00:00Z'), '4:16', /in the past/],
  ['an end that is far away', key('expiresAt: 2099-01-01T00:00:00Z'), '4:16', /more than ten years/],
  ['enabled as text', key('enabled: yes'), '4:14', /true or false/],
  [
    'a list through an alias',
    `${key('description: &d text')}\n  - {name: B, roles: *d}`,
    '5:22',
    /"roles" must be a list/,
  ],
];

/** A declaration with one key, which has this field in its fourth line. */
function key(field: string): string {
  return `keys:\n  - name: A\n    roles: [GUEST]\n    ${field}`;
}

describe('a file that apply refuses', () => {
  let test: TestApply;
  beforeEach(() => {
    test = testApply();
  });

  for (const [what, text, place, message] of FAULTS) {
    it(`is named with line and column: ${what}`, async () => {
      test.declare(text);
      const args = ['apikey', 'apply', '-f', test.file, '--dry-run'];
      const { stdout, stderr, code } = await test.cli.run(args);
      const first = stderr.split('\n')[0]!;
      assert.ok(first.startsWith(`Error: ${test.file}:${place}: `), stderr);
      assert.match(first, message);
      assert.deepEqual([stdout, code], ['', 1]);
    });
  }

  it('ends with 2, but with 1 where that would say that there are changes', async () => {
    for (const [text, ...args] of [['keys: {}'], ['keys: []', '--nonsense']] as const) {
      test.declare(text);
      const codes = await Promise.all([
        test.apply(args),
        test.apply([...args, '--dry-run']),
        test.apply([...args, '--dry-run', '--json']),
      ]);
      assert.deepEqual(
        codes.map(({ code }) => code),
        [2, 1, 1],
      );
    }
  });

  it('has all its issues reported together, in the order of the file, without a store being made', async () => {
    test.declare(
      'others: 1\nkeys:\n  - {name: a-b, roles: [BOSS], colour: red}\n  - {name: A, permissions: [], enabled: 1}\n',
    );
    const { error, code } = await test.json('--secrets-dir', test.secrets);
    const places = Array.from(String(error).matchAll(/keys\.yaml:(\d+:\d+): /g), ([, place]) => place);
    assert.deepEqual([code, places], ['DECLARATION_INVALID', ['1:1', '3:12', '3:25', '3:32', '4:5', '4:41']]);
    assert.equal(existsSync(test.cli.database), false);
  });

  it('has the first 20 issues shown, and the others counted', async () => {
    test.declare(`keys:\n${'  - {name: A, roles: [GUEST]}\n'.repeat(31)}`);
    const { stderr } = await test.apply();
    const lines = stderr.slice(0, stderr.indexOf('\nCode: DECLARATION_INVALID\n')).split('\n');
    assert.deepEqual([lines.length, lines.at(-1)!.trim()], [21, '10 more not shown.']);
  });

  it('has no secrets or control characters repeated, wherever they are', async () => {
    const { text: secret } = createSecret(randomBytes);
    const texts = [
      `keys: [{name: ${secret}, roles: [GUEST]}]`,
      `keys: [{name: A, roles: [${secret}]}]`,
      `keys: [{name: A, permissions: [${secret}]}]`,
      `keys: [{name: A, roles: [GUEST], ${secret}: 1}]`,
      `keys: [{name: A, roles: [GUEST], expiresAt: ${secret}}]`,
      `keys: *${secret}`,
      `keys: !${secret} []`,
      `%${secret}\n---\nkeys: []`,
      `"\\e[31m": 1\nkeys: []`,
    ];
    for (const text of texts) {
      test.declare(text);
      for (const args of [[], ['--json']]) {
        const { stdout, stderr, code } = await test.apply(args);
        assert.equal(code, 2, text);
        assert.equal(`${stdout}${stderr}`.includes(secret.slice(17)), false, `${stdout}${stderr}`);
        assert.doesNotMatch(`${stdout}${stderr}`, /[^\P{Cc}\n]/u);
      }
    }
  });

  it('is refused at little cost where it is made to take long', async () => {
    const apply = (text: string) => {
      test.declare(text);
      return workOf(() => test.apply());
    };
    const many = Array.from({ length: 1000 }, (_, index) => `  - {name: Key ${index}, roles: [GUEST]}\n`);
    const valid = await apply(`keys:\n${many.join('')}`);
    assert.match(valid.result.stderr, /1000 keys are new/);
    const levels = Array.from(
      { length: 30 },
      (_, level) => `&a${level} [${level === 0 ? 'x' : `*a${level - 1}, `.repeat(9)}]`,
    );
    const bombs = {
      'aliases of aliases': [`keys: [${levels.join(', ')}]`, 'The aliases expand to too much'],
      'deep nesting': [`keys: ${'['.repeat(20_000)}`, 'nested too deeply'],
      'deep nesting of another kind': ['- '.repeat(20_000), 'nested too deeply'],
      'many fields': [Array.from({ length: 15_000 }, (_, index) => `k${index}: 1`).join('\n'), 'is not a field'],
      'too much text': [`keys: []\n#${'x'.repeat(8 * 1024 * 1024)}`, 'is larger than 8 MiB'],
    };
    for (const [what, [text, message]] of Object.entries(bombs)) {
      const { count, result } = await apply(text!);
      assert.equal(result.code, 2, what);
      assert.ok(result.stderr.includes(message!), result.stderr.slice(0, 300));
      assert.ok(count < 10 * valid.count, `${what}: ${count} thousand calls, a thousand keys ${valid.count}`);
    }
  });

  it('is refused where it is no text that can be read', async () => {
    const folder = ROOT.replace(/\/$/, '');
    const missing = join(folder, 'missing.yaml');
    const binary = `${test.file}.bin`;
    writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x6b, 0]));
    const expected = {
      [missing]: `The file ${missing} could not be read (ENOENT). Check the path.`,
      [folder]: `The file ${folder} could not be read (EISDIR). Check the path.`,
      [binary]: `The file ${binary} is not UTF-8 text. Save it as UTF-8.`,
    };
    for (const [path, message] of Object.entries(expected)) {
      const { stdout, stderr, code } = await test.cli.run(['apikey', 'apply', '-f', path]);
      assert.deepEqual({ stdout, stderr, code }, { stdout: '', stderr: errorText('INPUT_INVALID', message), code: 2 });
    }
  });

  it('is asked for where it is not given', async () => {
    for (const args of [[], ['-f', ''], ['-f', 'x', '--secrets-dir', '']]) {
      const { stderr, code } = await test.cli.run(['apikey', 'apply', ...args]);
      assert.match(stderr, /^Error: The (file|folder for the secrets) is (missing|empty)\. Pass /);
      assert.equal(code, 2);
    }
  });
});
