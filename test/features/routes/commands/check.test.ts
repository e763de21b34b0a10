import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../../support/cli.ts';
import { configFile } from '../../../support/config-file.ts';
import { errorText } from '../../../support/errors.ts';
import { tempFolder } from '../../../support/temp.ts';

/** Runs `routes check`, which opens no store. */
function check(file: string, ...args: string[]) {
  return testCli().run(['routes', 'check', ...args], { env: { SVC_API_CONFIG: file } });
}

describe('routes check', () => {
  it('counts the routes, and the expectations about them', async () => {
    const file = configFile(`
resources: [GRAFANA]
routes:
  - { host: grafana.example.org, path: /api/**, allow: GRAFANA:READ_ANY }
  - { host: grafana.example.org, path: /public/**, allow: key }
expect:
  - GET https://grafana.example.org/api/users with GRAFANA:READ_ANY is allowed
`);
    const { stdout, stderr, code } = await check(file);
    const text = `${file}: 2 routes; 1 expectation holds\n`;
    assert.deepEqual([stdout, stderr, code], [text, '', 0]);
    const json = await check(file, '--json');
    const nothing = { unreachable: [], unusedUpstreams: [], wide: [] };
    assert.deepEqual(JSON.parse(json.stdout), { file, routes: 2, expectations: 1, ...nothing });
  });

  it('accepts a server only with --observed', async () => {
    const file = configFile('routes: [{ host: a, path: /, allow: key }]');
    const { stderr, code } = await check(file, '--server', 'http://127.0.0.1:9');
    assert.match(stderr, /--server is only used with --observed/);
    assert.equal(code, 1);
  });

  it('names the upstreams that no route names', async () => {
    const file = configFile(`upstreams: { wiki: "http://127.0.0.1:1", old: "http://127.0.0.1:2" }
routes: [{ host: a, path: /, allow: key, to: wiki }]
`);
    const { stdout, code } = await check(file);
    const lines = [`${file}: 1 route; 0 expectations hold`, `${file}: no route names the upstream "old"`, ''];
    assert.deepEqual([stdout, code], [lines.join('\n'), 0]);
    const { unusedUpstreams } = JSON.parse((await check(file, '--json')).stdout) as { unusedUpstreams: string[] };
    assert.deepEqual(unusedUpstreams, ['old']);
  });

  it('lists the routes that can never match, with their lines', async () => {
    const file = configFile(`routes:
  - { host: a, path: /b, allow: open }
  - { host: a, path: /b/*/**, allow: key }
  - { host: a, path: /b/**, allow: key }
  - { host: A, path: /%62, allow: open }
`);
    const { stdout, stderr, code } = await check(file);
    assert.deepEqual(stdout.split('\n'), [
      `${file}: 4 routes; 0 expectations hold`,
      `${file}:4: route 3 (a/b/**) can never match: route 1 (a/b) and route 2 (a/b/*/**) decide in its place`,
      `${file}:5: route 4 (a/b) can never match: route 1 (a/b) decides in its place`,
      '',
    ]);
    assert.deepEqual([stderr, code], ['', 0]);
    const { unreachable } = JSON.parse((await check(file, '--json')).stdout) as {
      unreachable: { number: number; line: number; behind: { number: number }[] }[];
    };
    const found = unreachable.map(({ number, line, behind }) => [number, line, behind.map((route) => route.number)]);
    assert.deepEqual(found, [
      [3, 4, [1, 2]],
      [4, 5, [1]],
    ]);
  });

  it('warns of routes for paths that a front controller reads as a stricter one', async () => {
    const file = configFile(`resources: [WIKI]
routes:
  - { host: a, path: /**, allow: key }
  - { host: a, path: /admin/**, allow: WIKI:UPDATE_ANY }
  - { host: a, path: /pages/*, methods: [PUT], allow: WIKI:UPDATE_ANY }
  - { host: a, path: /public/**, allow: open }
  - { host: a, path: /pages/*, methods: [GET], allow: key }
  - { host: "*.b", path: /**, allow: WIKI:UPDATE_ANY }
  - { host: "*.b", path: /x/**, allow: WIKI:UPDATE_OWN }
  - { host: c, path: /**, methods: [GET], allow: open }
  - { host: c, path: /edit, methods: [POST], allow: key }
  - { host: e, path: /**, allow: WIKI:UPDATE_ANY }
  - { host: e, path: /read/**, allow: WIKI:READ_ANY }
  - { host: d, path: /**, allow: key }
  - { host: d, path: /index.php/**, allow: WIKI:UPDATE_ANY }
  - { host: d, path: /admin, allow: WIKI:UPDATE_ANY }
  - { host: f, path: /**, methods: [GET, HEAD], allow: WIKI:READ_ANY }
  - { host: f, path: /**, allow: WIKI:UPDATE_ANY }
`);
    const { stdout, code } = await check(file);
    assert.equal(
      stdout,
      `${file}: 16 routes; 0 expectations hold\n` +
        `${file}:3: route 1 (a/**) decides about /index.php/admin/x, too: to a service with a front controller, that is ` +
        'the path of route 2 (a/admin/**) and route 3 (PUT a/pages/*), which need more\n',
    );
    assert.equal(code, 0);
    const { wide } = JSON.parse((await check(file, '--json')).stdout) as {
      wide: { number: number; reached: string; narrower: { number: number }[] }[];
    };
    assert.deepEqual(
      wide.map(({ number, reached, narrower }) => [number, reached, narrower.map((route) => route.number)]),
      [[1, '/index.php/admin/x', [2, 3]]],
    );
  });

  const FAULTS: readonly (readonly [what: string, text: string, error: string])[] = [
    [
      'an expectation does not hold',
      'routes: [{ host: a, path: /, allow: key }]\nexpect:\n  - GET https://a/ without a key is allowed\n',
      '3:5: "GET https://a/ without a key is allowed" does not hold: ' +
        'the request is refused by route 1 (a/), which requires a valid key.',
    ],
    [
      'two routes contradict one another',
      'routes:\n  - { host: a, path: /, allow: key }\n  - { host: a, path: /, allow: open }\n',
      '3:5: Routes 1 and 2 are both for a/ and say different things. Keep one of them. The other one is in line 2.',
    ],
    ['a field is misspelled', 'roots: []\n', '1:1: "roots" is not a field.'],
  ];
  for (const [what, text, error] of FAULTS) {
    it(`exits with 1 and says where it is, if ${what}`, async () => {
      const file = configFile(text);
      const { stdout, stderr, code } = await check(file);
      assert.equal(stderr.slice(0, `Error: ${file}:${error}`.length), `Error: ${file}:${error}`);
      assert.deepEqual([stdout, code], ['', 1]);
      const json = await check(file, '--json');
      const parsed = JSON.parse(json.stdout) as { error: string; code: string };
      assert.ok(parsed.error.startsWith(`${file}:${error}`));
      assert.deepEqual([parsed.code, json.stderr, json.code], ['CONFIG_INVALID', '', 1]);
    });
  }

  it('checks the file of --config, and not the one in the working folder', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'svc-api.yaml'), 'routes: []\n');
    const named = await testCli().run(['routes', 'check', '--config', 'svc-api.yaml'], { cwd: folder });
    assert.equal(named.stdout, `${folder}/svc-api.yaml: 0 routes; 0 expectations hold\n`);
    const none = await testCli().run(['routes', 'check'], { cwd: folder });
    const error = 'There is no configuration. Pass --config <path>, or set SVC_API_CONFIG.';
    assert.deepEqual([none.stdout, none.stderr, none.code], ['', errorText('CONFIG_UNAVAILABLE', error), 1]);
  });

  it('exits with 1 for a flag that it does not have, too', async () => {
    assert.equal((await check(configFile(''), '--strict')).code, 1);
  });
});
