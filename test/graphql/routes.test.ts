import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { testCli } from '../support/cli.ts';
import { createPrincipal } from '../support/keys.ts';
import { startConfiguredService } from '../support/routed-service.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';

const CONFIG = `resources: [GRAFANA]
routes:
  - { host: g.example, path: /api/boards/**, methods: [GET, HEAD], allow: GRAFANA:READ_ANY }
  - { host: g.example, path: /api/**, allow: [GRAFANA:UPDATE_ANY, ME:READ_OWN], preflight: open }
  - { host: "*", path: /**, allow: { any: [GRAFANA:READ_ANY, DOCKER:READ_ANY] } }
  - { host: "*", path: /public/**, allow: open }
  - { host: "*", path: /, allow: key }
  - { host: g.example, path: /api/**, methods: [PUT], allow: key }
  - { host: g.example, path: /api/**, methods: [PUT], allow: key }
`;
const ROUTE = 'number line host path methods allow permissions requires preflightOpen hiddenBy';
const LIST = `query ($first: Int, $after: String) { routes(first: $first, after: $after) {
  configured total edges { cursor node { ${ROUTE} } } pageInfo { hasNextPage endCursor } } }`;
const EXPLAIN = `query ($method: String, $url: String!, $preflight: Boolean, $keyId: ID, $keyName: String) {
  explainRequest(method: $method, url: $url, preflight: $preflight, keyId: $keyId, keyName: $keyName) {
    outcome reason request { method host path } preflightFor route { number requires } used missing
    otherCaseOf { number } after { route { number } because } otherMethods { number } key { id name status } } }`;

interface Listed {
  configured: boolean;
  total: number;
  edges: { cursor: string; node: Record<string, unknown> }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

describe('routes, over GraphQL', () => {
  let test: TestService & { file: string };
  let reader: string;
  let bare: string;
  before(async () => {
    test = await startConfiguredService(CONFIG);
    const permissions = ['CONFIG:READ_ANY', 'API_KEY:READ_ANY'];
    reader = (await createPrincipal(test.keys, { name: 'Reader', permissions })).secret;
    bare = (await createPrincipal(test.keys, { name: 'Bare', permissions: ['CONFIG:READ_ANY'] })).secret;
  });
  after(() => test.stop());

  const ask = async (key: string, document: string, variables: object = {}) =>
    (await query(test.url, key, document, variables as Record<string, unknown>)).body;
  const list = async (variables: object = {}) => {
    const { data, errors } = await ask(reader, LIST, variables);
    assert.equal(errors, undefined);
    return data!['routes'] as Listed;
  };
  const explain = async (url: string, variables: object = {}) => {
    const { data, errors } = await ask(reader, EXPLAIN, { url, ...variables });
    assert.equal(errors, undefined);
    return data!['explainRequest'] as Record<string, unknown> & { reason: string; outcome: string };
  };
  const codeOf = ({ errors }: GraphQLReply['body']) => errors?.[0]?.extensions['code'];

  it('are listed in their order, with all that they have', async () => {
    const { configured, total, edges, pageInfo } = await list();
    assert.deepEqual([configured, total, edges.length, pageInfo.hasNextPage], [true, 7, 7, false]);
    const [first, second, third, fourth, fifth, , last] = edges.map(({ node }) => node);
    assert.deepEqual(first, {
      number: 1,
      line: 3,
      host: 'g.example',
      path: '/api/boards/**',
      methods: ['GET', 'HEAD'],
      allow: 'ALL',
      permissions: ['GRAFANA:READ_ANY'],
      requires: 'GRAFANA:READ_ANY',
      preflightOpen: false,
      hiddenBy: [],
    });
    assert.deepEqual(
      [second!['methods'], second!['requires'], second!['preflightOpen']],
      [null, 'GRAFANA:UPDATE_ANY and ME:READ_OWN', true],
    );
    assert.deepEqual([third!['allow'], third!['requires']], ['ANY', 'GRAFANA:READ_ANY or DOCKER:READ_ANY']);
    assert.deepEqual([fourth!['allow'], fourth!['permissions'], fourth!['requires']], ['OPEN', [], 'no key']);
    assert.deepEqual([fifth!['allow'], fifth!['requires']], ['KEY', 'a valid key']);
    assert.deepEqual([last!['number'], last!['hiddenBy']], [7, [6]]);
  });

  it('come in pages of a size that is bounded', async () => {
    const numbers = [];
    for (let after: string | null = null; ;) {
      const { edges, pageInfo }: Listed = await list({ first: 3, after });
      numbers.push(edges.map(({ node }) => node['number']));
      after = pageInfo.endCursor;
      if (!pageInfo.hasNextPage) break;
    }
    assert.deepEqual(numbers, [[1, 2, 3], [4, 5, 6], [7]]);
    assert.deepEqual((await list({ first: 0 })).edges, []);
    for (const variables of [{ first: 501 }, { first: -1 }, { after: 'x' }, { after: btoa('route:-1') }])
      assert.equal(codeOf(await ask(reader, LIST, variables)), 'INPUT_INVALID', JSON.stringify(variables));
    const beyond = await list({ after: Buffer.from('route:999999999999999').toString('base64url') });
    assert.deepEqual([beyond.edges, beyond.pageInfo.hasNextPage], [[], false]);
  });

  it('require CONFIG:READ_ANY', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    const { data, errors } = await ask(secret, '{ routes { total } explainRequest(url: "https://h/") { outcome } }');
    assert.deepEqual(data, { routes: null, explainRequest: null });
    assert.deepEqual(
      errors!.map(({ extensions }) => extensions['missing']),
      [['CONFIG:READ_ANY'], ['CONFIG:READ_ANY']],
    );
  });

  it('explain which of them decides about a request, and why others do not', async () => {
    assert.deepEqual(await explain('https://G.example:443/%61pi/boards/7/?q'), {
      outcome: 'REFUSED',
      reason: 'it has no valid key',
      request: { method: 'GET', host: 'g.example', path: '/api/boards/7' },
      preflightFor: null,
      route: { number: 1, requires: 'GRAFANA:READ_ANY' },
      used: [],
      missing: [],
      otherCaseOf: null,
      after: [
        { route: { number: 2 }, because: 'segment 2, boards, is more specific than **' },
        { route: { number: 3 }, because: 'g.example is more specific than *' },
      ],
      otherMethods: [{ number: 6 }],
      key: null,
    });
    const open = await explain('https://h/public/x.css', { method: 'POST' });
    assert.deepEqual([open.outcome, open.reason], ['ALLOWED', 'it requires no key']);
    const upper = await explain('https://g.example/API/x');
    assert.deepEqual([upper.outcome, upper['route'], upper['otherCaseOf']], ['FORBIDDEN', null, { number: 2 }]);
    const preflight = await explain('https://g.example/api/x', { method: 'POST', preflight: true });
    assert.deepEqual(
      [preflight.outcome, preflight.reason, preflight['preflightFor']],
      ['ALLOWED', 'a preflight for POST needs no key here', 'POST'],
    );
  });

  it('explain whether a key may pass, and why not', async () => {
    const { key } = await test.keys.create({ name: 'Board bot', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const allowed = await explain('https://g.example/api/boards/7', { keyId: key.id });
    assert.deepEqual(
      [allowed.outcome, allowed.reason, allowed['used'], allowed['key']],
      [
        'ALLOWED',
        'the key has GRAFANA:READ_ANY',
        ['GRAFANA:READ_ANY'],
        { id: key.id, name: 'Board bot', status: 'ACTIVE' },
      ],
    );
    const lacking = await explain('https://g.example/api/x', { keyName: 'Board bot' });
    assert.deepEqual(
      [lacking.outcome, lacking.reason, lacking['missing']],
      ['FORBIDDEN', 'the key lacks GRAFANA:UPDATE_ANY and ME:READ_OWN', ['GRAFANA:UPDATE_ANY', 'ME:READ_OWN']],
    );
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const disabled = await explain('https://g.example/api/boards/7', { keyName: 'Board bot' });
    assert.deepEqual([disabled.outcome, disabled.reason], ['REFUSED', 'API key "Board bot" is DISABLED']);
    const open = await explain('https://h/public/x', { keyName: 'Board bot' });
    assert.equal(open.outcome, 'ALLOWED', 'an open route needs no key');
  });

  it('tell nothing of keys that the caller may not read, not even whether there are any', async () => {
    const url = 'https://g.example/api/x';
    const forbidden = await ask(bare, EXPLAIN, { url, keyName: 'Reader' });
    assert.equal(codeOf(forbidden), 'FORBIDDEN');
    assert.deepEqual(forbidden.errors![0]!.extensions['missing'], ['API_KEY:READ_OWN']);
    const permissions = ['CONFIG:READ_ANY', 'API_KEY:READ_OWN'];
    const { secret } = await createPrincipal(test.keys, { name: 'Own only', permissions });
    const [others, unknown] = [
      await ask(secret, EXPLAIN, { url, keyName: 'Reader' }),
      await ask(secret, EXPLAIN, { url, keyName: 'Nobody' }),
    ];
    assert.deepEqual([codeOf(others), codeOf(unknown)], ['NOT_FOUND', 'NOT_FOUND']);
    assert.equal(others.errors![0]!.message.replace('Reader', 'Nobody'), unknown.errors![0]!.message);
    const own = await ask(secret, EXPLAIN, { url, keyName: 'Own only' });
    assert.equal((own.data!['explainRequest'] as { outcome: string }).outcome, 'FORBIDDEN');
    const both = await ask(reader, EXPLAIN, { url, keyName: 'Reader', keyId: 'x' });
    assert.equal(codeOf(both), 'INPUT_INVALID');
    assert.equal(codeOf(await ask(reader, EXPLAIN, { url, keyId: '\0'.repeat(100_000) })), 'INPUT_INVALID');
  });

  it('explain the same as the command does, in the same words', async () => {
    await test.keys.create({ name: 'Docker bot', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    const cli = testCli(test.database);
    const env = { SVC_API_CONFIG: test.file };
    const asked = [
      ['GET', 'https://g.example/api/boards/7'],
      ['PUT', 'https://g.example/api/boards/7'],
      ['DELETE', 'https://g.example/api//x'],
      ['POST', 'https://g.example/x', '--key', 'Docker bot'],
      ['POST', 'https://g.example/api/x', '--key', 'Docker bot'],
      ['POST', 'https://g.example/api/x', '--preflight'],
    ];
    for (const [method, url, flag, keyName] of asked) {
      const args = ['routes', 'explain', method!, url!, ...(flag ? [flag] : []), ...(keyName ? [keyName] : [])];
      const explained = await explain(url!, { method, keyName, preflight: flag === '--preflight' });
      const [line] = (await cli.run(args, { env })).stdout.split('\n');
      const json = JSON.parse((await cli.run([...args, '--json'], { env })).stdout) as Record<string, never[]>;
      assert.ok(line!.endsWith(` is ${explained.outcome.toLowerCase()}: ${explained.reason}`), line);
      const numbers = (routes: { number: number }[]) => routes.map(({ number }) => number);
      assert.deepEqual(
        [explained['request'], explained['used'], explained['missing'], explained['preflightFor']],
        [json['request'], json['used'], json['missing'], json['preflightFor']],
      );
      assert.deepEqual(
        (explained['after'] as { route: { number: number }; because: string }[]).map(({ route, because }) => ({
          number: route.number,
          because,
        })),
        json['after']!.map(({ number, because }) => ({ number, because })),
      );
      assert.deepEqual(numbers(explained['otherMethods'] as []), numbers(json['otherMethods']!));
    }
  });

  const NOT_CANONICAL: Record<string, string> = {
    'https://g.example/api//x': 'the path has an empty segment',
    'https://g.example/public/../api': 'the path has a "." or ".." segment',
    'https://g.example/public/%2e%2e/api': 'the path has an encoded dot',
    'https://g.example/api%2fboards': 'the path has an encoded slash',
    'https://g.example/api;x': 'the path has a ";"',
    'https://g.example/%2561pi': 'the path has double encoding',
    'https://g.example/%ff': 'the path has encoded bytes that are not UTF-8',
    'https://g.example/x?a#b': 'the query has a "#", a space or a control character',
    'https://g.example/\ud800': 'the path has bytes that are not ASCII',
  };
  for (const [url, reason] of Object.entries(NOT_CANONICAL))
    it(`say that ${JSON.stringify(url)} is forbidden for its form`, async () => {
      const { outcome, reason: given, request, route } = await explain(url);
      assert.deepEqual([outcome, given, request, route], ['FORBIDDEN', reason, null, null]);
    });

  const NOT_REQUESTS: Record<string, object> = {
    'without a scheme': { url: 'g.example/x' },
    'of another scheme': { url: 'javascript:alert(1)' },
    'without a host': { url: 'https:///x' },
    'of a host with a user': { url: 'https://a@g.example/x' },
    'of a host that is a number': { url: 'https://0x7f000001/' },
    'that is empty': { url: '' },
    'with control characters': { url: 'https://\r\n\u202e/' },
    'of a method in lower case': { url: 'https://h/', method: 'get' },
    'of a method with a space': { url: 'https://h/', method: 'GET /x' },
    'of a method that is too long': { url: 'https://h/', method: 'A'.repeat(101) },
    'that is too long': { url: `https://h/${'a'.repeat(8192)}` },
    'that is much too long': { url: `https://h/${'ä'.repeat(300_000)}` },
  };
  for (const [what, variables] of Object.entries(NOT_REQUESTS))
    it(`refuse a request ${what}`, async () => {
      const { data, errors } = await ask(reader, EXPLAIN, variables);
      assert.deepEqual(data, { explainRequest: null });
      assert.equal(errors![0]!.extensions['code'], 'INPUT_INVALID');
      assert.ok(errors![0]!.message.length < 600, errors![0]!.message);
      assert.doesNotMatch(errors![0]!.message, /[\r\n\u202e]/);
    });
});

describe('routes of a service without a configuration, over GraphQL', () => {
  it('are none, and nothing is let pass', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    const { body } = await query(
      test.url,
      secret,
      `{ routes { configured total edges { cursor } pageInfo { endCursor } }
        explainRequest(url: "https://h/") { outcome reason route { number } } }`,
    );
    await test.stop();
    assert.deepEqual(body, {
      data: {
        routes: { configured: false, total: 0, edges: [], pageInfo: { endCursor: null } },
        explainRequest: { outcome: 'FORBIDDEN', reason: 'no route matches', route: null },
      },
    });
  });
});

describe('ten thousand routes, over GraphQL', () => {
  let test: TestService;
  let secret: string;
  before(async () => {
    // Every request for /a/a/… matches all of them.
    const paths = Array.from({ length: 10_000 }, (_, index) =>
      Array.from({ length: 14 }, (__, bit) => ((index >> bit) & 1 ? '*' : 'a')).join('/'),
    );
    const routes = paths.map((path) => `  - { host: h, path: /${path}, methods: [GET], allow: key }`);
    test = await startConfiguredService(`routes:\n${routes.join('\n')}\n`);
    ({ secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] }));
  });
  after(() => test.stop());

  it('are listed page by page, and a request costs too much that asks for many pages', async () => {
    const page = `edges { cursor node { ${ROUTE} } }`;
    const one = await query(test.url, secret, `{ routes(first: 500) { total ${page} } }`);
    assert.equal(one.body.errors, undefined);
    const { total, edges } = one.body.data!['routes'] as Listed;
    assert.deepEqual([total, edges.length, edges.at(-1)!.node['number']], [10_000, 500, 500]);
    const pages = ['a', 'b', 'c', 'd', 'e'].map((alias) => `${alias}: routes(first: 500) { ${page} }`);
    const many = await query(test.url, secret, `{ ${pages.join(' ')} }`);
    assert.equal(many.body.errors?.[0]?.extensions['code'], 'COST_EXCEEDED');
  });

  it('are named twenty at most where a request matches all of them', async () => {
    const explain = async (method: string) => {
      const url = `https://h/${Array.from({ length: 14 }, () => 'a').join('/')}`;
      const document = `query ($url: String!) { explainRequest(method: "${method}", url: $url) {
        route { number } after { route { number } } otherMethods { number } } }`;
      const { body } = await query(test.url, secret, document, { url });
      return body.data!['explainRequest'] as { route: object | null; after: object[]; otherMethods: object[] };
    };
    const { route, after, otherMethods } = await explain('GET');
    assert.deepEqual([route, after.length, otherMethods.length], [{ number: 1 }, 20, 0]);
    const other = await explain('PUT');
    assert.deepEqual([other.route, other.after.length, other.otherMethods.length], [null, 0, 20]);
  });

  it('are searched for 24 requests at most at a time', async () => {
    const explain = async (count: number) => {
      const url = `https://h/${Array.from({ length: 14 }, () => 'a').join('/')}`;
      const fields = Array.from({ length: count }, (_, index) => `a${index}: explainRequest(url: $url) { outcome }`);
      return (await query(test.url, secret, `query ($url: String!) { ${fields.join(' ')} }`, { url })).body;
    };
    assert.equal((await explain(24)).errors, undefined);
    assert.equal((await explain(25)).errors?.[0]?.extensions['code'], 'COST_EXCEEDED');
  });
});
