import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { testCli, type TestCli } from '../../../support/cli.ts';
import { configFile } from '../../../support/config-file.ts';
import { describeOnEach } from '../../../support/dialects.ts';
import { errorText } from '../../../support/errors.ts';

const ROUTES = `resources: [GRAFANA]
routes:
  - { host: g.example, path: /api/boards/**, methods: [GET, HEAD], allow: GRAFANA:READ_ANY }
  - { host: g.example, path: /api/**, allow: [GRAFANA:UPDATE_ANY, ME:READ_OWN], preflight: open }
  - { host: g.example, path: /**, allow: { any: [GRAFANA:READ_ANY, DOCKER:READ_ANY] } }
  - { host: "*", path: /public/**, allow: open }
  - { host: "*", path: /, allow: key }
`;

/** Runs `explain` with the routes above. @returns its lines, with FILE for the path of the routes */
async function explain(line: string, cli: TestCli = testCli()): Promise<string[]> {
  const file = configFile(ROUTES);
  const { stdout, stderr, code } = await cli.run(argsOf(line), { env: { SVC_API_CONFIG: file } });
  assert.deepEqual([stderr, code], ['', 0], line);
  return stdout.replaceAll(file, 'FILE').trimEnd().split('\n');
}

async function explainJson(line: string, cli: TestCli = testCli()): Promise<Record<string, unknown>> {
  const env = { SVC_API_CONFIG: configFile(ROUTES) };
  const { stdout, stderr, code } = await cli.run([...argsOf(line), '--json'], { env });
  assert.deepEqual([stderr, code], ['', 0], line);
  return JSON.parse(stdout) as Record<string, unknown>;
}

function argsOf(line: string): string[] {
  return ['explain', ...Array.from(line.matchAll(/"([^"]*)"|\S+/g), ([word, quoted]) => quoted ?? word)];
}

describe('explain METHOD URL', () => {
  it('explains by a file whose expectations do not hold, and warns of that', async () => {
    const cli = testCli();
    await cli.run(['apikey', 'create', '--name', 'CI', '--permissions', 'DOCKER:READ_ANY']);
    const file = configFile(`${ROUTES}expect:\n  - GET https://g.example/api/boards/7 without a key is allowed\n`);
    for (const key of [[], ['--key', 'CI']]) {
      const args = [...argsOf('GET https://g.example/api/boards/7'), ...key];
      const { stdout, stderr, code } = await cli.run(args, { env: { SVC_API_CONFIG: file } });
      assert.match(stdout, key.length > 0 ? /is forbidden: / : /is refused: /);
      const [first, second, ...others] = stderr.trimEnd().split('\n');
      assert.equal(first, 'Warning: Servers refuse this file, because these expectations fail:');
      assert.ok(second!.startsWith(`${file}:9:5: `), stderr);
      assert.deepEqual([others, code], [[], 0]);
    }
    const { code } = await cli.run(['routes', 'check'], { env: { SVC_API_CONFIG: file } });
    assert.equal(code, 1);
  });

  it('says who may connect to an MCP server: users of any part of it', async () => {
    const part = (tool: string, permission: string) =>
      `  - { host: a, path: /mcp, mcp: { tools: [${tool}] }, allow: ${permission} }\n`;
    const file = configFile(`routes:\n${part('read', 'DOCKER:READ_ANY')}${part('stop', 'DOCKER:UPDATE_ANY')}`);
    const env = { SVC_API_CONFIG: file };
    const explained = async (permission: string) =>
      (await testCli().run(argsOf(`POST http://a/mcp --permissions ${permission}`), { env })).stdout.split('\n');
    assert.deepEqual((await explained('DOCKER:UPDATE_ANY')).slice(0, 2), [
      'POST a/mcp is allowed: the key has DOCKER:UPDATE_ANY',
      `${file}:2: route 1 (a/mcp) decides, and requires DOCKER:READ_ANY or DOCKER:UPDATE_ANY`,
    ]);
    const [forbidden] = await explained('DISK:READ_ANY');
    assert.equal(forbidden, 'POST a/mcp is forbidden: the key lacks DOCKER:READ_ANY or DOCKER:UPDATE_ANY');
  });

  it('says which upstream a request goes to', async () => {
    const file = configFile(`upstreams: { wiki: "http://127.0.0.1:1" }
routes: [{ host: a, path: /, allow: open, to: wiki }]
`);
    const { stdout } = await testCli().run(argsOf('GET http://a/'), { env: { SVC_API_CONFIG: file } });
    const line = `${file}:2: route 1 (a/) decides, and requires no key, and its requests go to the upstream "wiki"`;
    assert.deepEqual(stdout.split('\n').slice(1), [line, '']);
  });

  it('says which route decides, where it is, and why it comes before the next', async () => {
    assert.deepEqual(await explain('GET https://G.example:443/%61pi/boards/7/?q --permissions grafana:read_any'), [
      'GET g.example/api/boards/7 is allowed: the key has GRAFANA:READ_ANY',
      'FILE:3: route 1 (GET, HEAD g.example/api/boards/**) decides, and requires GRAFANA:READ_ANY',
      'FILE:4: route 2 (g.example/api/**) comes after that: segment 2, boards, is more specific than **',
      'FILE:5: route 3 (g.example/**) comes after that: segment 1, api, is more specific than **',
    ]);
  });

  const FIRST_LINES: Record<string, string> = {
    'GET https://g.example/api/boards/7': 'GET g.example/api/boards/7 is refused: it has no valid key',
    'POST https://g.example/api/boards/7 --permissions GRAFANA:READ_ANY':
      'POST g.example/api/boards/7 is forbidden: the key lacks GRAFANA:UPDATE_ANY and ME:READ_OWN',
    'GET https://g.example/x --permissions ME:READ_ANY':
      'GET g.example/x is forbidden: the key lacks GRAFANA:READ_ANY or DOCKER:READ_ANY',
    'GET https://h/public/x.css': 'GET h/public/x.css is allowed: it requires no key',
    'GET https://h --permissions ME:READ_OWN': 'GET h/ is allowed: it requires a valid key',
    'GET https://h/x': 'GET h/x is forbidden: no route matches',
    'GET https://g.example/api//x': 'GET https://g.example/api//x is forbidden: the path has an empty segment',
    'PUT https://g.example/api/x --preflight':
      'OPTIONS g.example/api/x is allowed: a preflight for PUT needs no key here',
    'PUT https://g.example/x --preflight': 'OPTIONS g.example/x is refused: it has no valid key',
  };
  for (const [line, first] of Object.entries(FIRST_LINES)) {
    it(`says what comes of ${line}`, async () => {
      assert.equal((await explain(line))[0], first);
    });
  }

  it('names the route from which a path differs only by case', async () => {
    assert.deepEqual(await explain('GET https://g.example/API/x --permissions GRAFANA:READ_ANY'), [
      'GET g.example/API/x is forbidden: the path differs from a route only by case, or by how Unicode writes a character',
      'FILE:4: route 2 (g.example/api/**) differs from it only by case, or by how Unicode writes a character',
    ]);
  });

  it('does so where Unicode writes a character of the path in another form', async () => {
    const path = configFile(
      'routes:\n  - { host: w, path: /**, allow: open }\n  - { host: w, path: "/caf\\u00e9/**", allow: key }\n',
    );
    for (const url of ['http://w/cafe\u0301/x', 'http://w/cafe%CC%81/x']) {
      const { stdout } = await testCli().run(['explain', 'GET', url, '--config', path]);
      assert.match(stdout, /^GET w\/cafe%CC%81\/x is forbidden: the path differs from a route only .*Unicode/);
      assert.match(stdout, /:3: route 2 \(w\/caf.*\) differs from it/);
    }
  });

  it('names what a route for a resource requires, by the method', async () => {
    const path = configFile(
      'resources: [WIKI]\nroutes:\n  - { host: w.example, path: /**, resource: wiki, cross-site: allowed }\n',
    );
    const cli = testCli();
    const { stdout } = await cli.run(['explain', 'PATCH', 'https://w.example/x', '--config', path]);
    assert.match(stdout, /^PATCH w\.example\/x is refused: it has no valid key\n/);
    assert.match(stdout, /decides, and requires READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on WIKI, by the method/);
    const json = async (method: string, permissions: string) => {
      const args = ['explain', method, 'https://w.example/x', '--config', path, '--permissions', permissions];
      return JSON.parse((await cli.run([...args, '--json'])).stdout) as Record<string, unknown>;
    };
    const { outcome, used, route } = await json('PATCH', 'WIKI:UPDATE_ANY');
    assert.deepEqual([outcome, used], ['allowed', ['WIKI:UPDATE_ANY']]);
    const { allow, resource, crossSite } = route as Record<string, unknown>;
    assert.deepEqual([allow, resource, crossSite], [null, 'WIKI', 'allowed']);
    const lacking = await json('DELETE', 'WIKI:UPDATE_ANY');
    assert.deepEqual([lacking['outcome'], lacking['missing']], ['forbidden', ['WIKI:DELETE_ANY']]);
    const unknown = await json('PURGE', 'WIKI:UPDATE_ANY');
    assert.deepEqual([unknown['refusal'], unknown['route']], ['no permission on WIKI covers PURGE', route]);
  });

  it('names the routes that are for other methods', async () => {
    const lines = await explain('DELETE https://g.example/api/boards/7');
    assert.equal(lines.at(-1), 'FILE:3: route 1 (GET, HEAD g.example/api/boards/**) is for other methods');
  });

  it('is JSON, too', async () => {
    const { file, ...json } = await explainJson('POST https://g.example/api/boards/7 --permissions GRAFANA:UPDATE_ANY');
    assert.match(String(file), /svc-api\.yaml$/);
    assert.deepEqual(json, {
      outcome: 'forbidden',
      request: { method: 'POST', host: 'g.example', path: '/api/boards/7' },
      preflightFor: null,
      refusal: null,
      route: {
        number: 2,
        line: 4,
        methods: null,
        host: 'g.example',
        path: '/api/**',
        allow: ['GRAFANA:UPDATE_ANY', 'ME:READ_OWN'],
        resource: null,
        to: null,
        mcp: null,
        crossSite: null,
        preflight: 'open',
        observe: false,
        cost: null,
        limit: null,
      },
      used: [],
      missing: ['ME:READ_OWN'],
      otherCaseOf: null,
      after: [
        {
          number: 3,
          line: 5,
          methods: null,
          host: 'g.example',
          path: '/**',
          allow: { any: ['GRAFANA:READ_ANY', 'DOCKER:READ_ANY'] },
          resource: null,
          to: null,
          mcp: null,
          crossSite: null,
          preflight: null,
          observe: false,
          cost: null,
          limit: null,
          because: 'segment 1, api, is more specific than **',
        },
      ],
      otherMethods: [
        {
          number: 1,
          line: 3,
          methods: ['GET', 'HEAD'],
          host: 'g.example',
          path: '/api/boards/**',
          allow: ['GRAFANA:READ_ANY'],
          resource: null,
          to: null,
          mcp: null,
          crossSite: null,
          preflight: null,
          observe: false,
          cost: null,
          limit: null,
        },
      ],
      apiKey: null,
    });
    const refused = await explainJson('GET https://h/a//b');
    assert.deepEqual([refused['request'], refused['route']], [null, null]);
    assert.equal(refused['refusal'], 'the path has an empty segment');
    assert.equal((await explainJson('PUT https://g.example/api/x --preflight'))['preflightFor'], 'PUT');
    const otherCase = (await explainJson('GET https://g.example/API'))['otherCaseOf'] as { number: number };
    assert.equal(otherCase.number, 2);
  });

  const WRONG: readonly (readonly [line: string, code: string, error: string])[] = [
    ['get https://h/', 'INPUT_INVALID', '"get" is not a method: write it in capital letters, as GET.'],
    ['GET h/x', 'INPUT_INVALID', '"h/x" is not a URL. Write it as https://example.org/path.'],
    [
      'GET https://h/ --permissions WIKI',
      'PERMISSION_INVALID',
      '"WIKI" is not a permission. Write RESOURCE:ACTION, such as GRAFANA:READ_ANY.',
    ],
    [
      'GET https://h/ --permissions ME:READ_OWN --key CI',
      'USAGE',
      'Both --key and --permissions are given. Leave one of them out.',
    ],
  ];
  for (const [line, code, error] of WRONG) {
    it(`refuses ${line}, without a store`, async () => {
      const cli = testCli();
      const env = { SVC_API_CONFIG: configFile(ROUTES) };
      const result = await cli.run(argsOf(line), { env });
      assert.deepEqual([result.stdout, result.stderr, result.code], ['', errorText(code, error, 'explain'), 2]);
      assert.ok(!existsSync(cli.database));
    });
  }

  it('refuses a configuration that is invalid, and to explain nothing', async () => {
    const cli = testCli();
    const file = configFile('routes: [7]\n');
    const invalid = await cli.run(argsOf('GET https://h/'), { env: { SVC_API_CONFIG: file } });
    assert.match(invalid.stderr, /^Error: \/.*svc-api\.yaml:1:10: A route must be a map.*\nCode: CONFIG_INVALID\n/);
    assert.equal(invalid.code, 2);
    const none = await cli.run(argsOf('GET https://h/'));
    assert.match(none.stderr, /^Error: There is no configuration\. .*\nCode: CONFIG_UNAVAILABLE\n/);
    assert.equal(none.code, 1);
  });
});

describeOnEach('explain METHOD URL with a key', () => {
  it("depends on the key's permissions", async () => {
    const cli = testCli();
    const { id } = await cli.given('CI deploy', { roles: ['VIEWER'] });
    assert.equal(
      (await explain('GET https://g.example/x --key "CI deploy"', cli))[0],
      'GET g.example/x is allowed: the key has GRAFANA:READ_ANY',
    );
    assert.equal(
      (await explain('PUT https://g.example/api/x --key "CI deploy"', cli))[0],
      'PUT g.example/api/x is forbidden: the key lacks GRAFANA:UPDATE_ANY',
    );
    const json = await explainJson('PUT https://g.example/api/x --key "CI deploy"', cli);
    assert.deepEqual(
      [json['missing'], json['apiKey']],
      [['GRAFANA:UPDATE_ANY'], { id, name: 'CI deploy', status: 'ACTIVE' }],
    );
  });

  it('says that the key is refused, where one is required', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    await cli.run(['apikey', 'disable', 'CI deploy']);
    const of = async (url: string) => (await explain(`GET ${url} --key "CI deploy"`, cli))[0];
    assert.equal(await of('https://g.example/x'), 'GET g.example/x is refused: API key "CI deploy" is DISABLED');
    assert.equal(await of('https://h/public/x'), 'GET h/public/x is allowed: it requires no key');
  });

  it('says that there is no such key', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    const env = { SVC_API_CONFIG: configFile(ROUTES) };
    const { stderr, code } = await cli.run(argsOf('GET https://h/ --key Nobody'), { env });
    assert.match(stderr, /^Error: There is no API key named "Nobody"\. .*\nCode: NOT_FOUND\n/);
    assert.equal(code, 1);
  });
});
