import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/config/load-config.ts';
import { additionsIn, ConfiguredServer } from '../../../src/service/configured-server.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { openKeys } from '../../../src/service/open-keys.ts';
import { serveApp } from '../../../src/service/create-app.ts';
import { configFile } from '../../support/config-file.ts';
import { createPrincipal } from '../../support/keys.ts';
import { ROUTES, startConfiguredService } from '../../support/configured-service.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../../support/server.ts';
import { migratedStore } from '../../support/temp.ts';

const ROUTE = 'number line host path methods allow permissions requires preflightOpen hiddenBy';
const LIST = `query ($first: Int, $after: String) { routes(first: $first, after: $after) {
  configured total edges { cursor node { ${ROUTE} } } pageInfo { hasNextPage endCursor } } }`;

interface Listed {
  configured: boolean;
  total: number;
  edges: { cursor: string; node: Record<string, unknown> }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

describe('routes, over GraphQL', () => {
  let test: TestService;
  let reader: string;
  before(async () => {
    test = await startConfiguredService(ROUTES);
    reader = (await createPrincipal(test.keys, { name: 'Reader', permissions: ['CONFIG:READ_ANY'] })).secret;
  });
  after(() => test.stop());

  const ask = async (key: string, document: string, variables: object = {}) =>
    (await query(test.url, key, document, variables as Record<string, unknown>)).body;
  const list = async (variables: object = {}) => {
    const { data, errors } = await ask(reader, LIST, variables);
    assert.equal(errors, undefined);
    return data!['routes'] as Listed;
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
    const numbers: unknown[] = [];
    for (let after: string | null = null; numbers.length < 9;) {
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

  it('list the methods that a key may use, and what it lacks', async () => {
    await createPrincipal(test.keys, { name: 'Boards', permissions: ['GRAFANA:READ_ANY', 'API_KEY:READ_OWN'] });
    const { apiKey: off } = await test.keys.create({ name: 'Off', roles: ['ADMIN'] }, OPERATOR);
    await test.keys.setEnabled(off.id, false, OPERATOR);
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const document = `query ($name: String) { routes(keyName: $name) { edges { passes passesAll missing } } }`;
    const accessOf = async (name: string | null) => {
      const { data } = await ask(admin.secret, document, { name });
      return (data!['routes'] as { edges: { passes: unknown; passesAll: unknown; missing: unknown }[] }).edges.map(
        ({ passes, passesAll, missing }) => [passes, passesAll, missing],
      );
    };
    const all = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
    assert.deepEqual(await accessOf('Boards'), [
      [['GET', 'HEAD'], true, []],
      [[], false, ['GRAFANA:UPDATE_ANY', 'ME:READ_OWN']],
      [all, true, []],
      [all, true, []],
      [all, true, []],
      [['PUT'], true, []],
      [['PUT'], true, []],
    ]);
    assert.deepEqual((await accessOf('Off'))[4], [[], false, []]);
    assert.deepEqual((await accessOf(null))[0], [null, null, null]);
    const { errors } = await ask(reader, document, { name: 'Boards' });
    assert.deepEqual(errors![0]!.extensions['missing'], ['API_KEY:READ_OWN']);
    assert.equal(codeOf(await ask(admin.secret, document, { name: 'Nobody' })), 'NOT_FOUND');
  });

  it('name the keys that they let pass, as far as they may be read, page by page', async () => {
    const service = await startConfiguredService(`resources: [GRAFANA]
routes:
  - { host: g, path: /**, resource: GRAFANA }
  - { host: h, path: /**, allow: GRAFANA:DELETE_ANY }
`);
    const { secret: admin } = await createPrincipal(service.keys, { name: 'Admin', roles: ['ADMIN'] });
    for (let index = 0; index < 5; index += 1) {
      const permission = index % 2 ? 'GRAFANA:UPDATE_ANY' : 'GRAFANA:READ_ANY';
      service.time.now += 1000;
      await service.keys.create({ name: `Key ${index}`, permissions: [permission] }, OPERATOR);
    }
    service.time.now += 1000;
    const own = await createPrincipal(service.keys, {
      name: 'Own',
      permissions: ['CONFIG:READ_ANY', 'API_KEY:READ_OWN', 'GRAFANA:READ_ANY'],
    });
    const document = `query ($route: Int!, $method: String, $first: Int, $after: String) {
      routeKeys(route: $route, method: $method, first: $first, after: $after) {
        edges { node { name } } pageInfo { hasNextPage endCursor } } }`;
    const answer = async (variables: object, secret = admin) =>
      (await query(service.url, secret, document, variables as Record<string, unknown>)).body;
    const names = async (variables: object, secret = admin) => {
      const found: string[][] = [];
      for (let after: string | null = null; ;) {
        const { data } = await answer({ ...variables, after }, secret);
        const { edges, pageInfo } = data!['routeKeys'] as {
          edges: { node: { name: string } }[];
          pageInfo: { hasNextPage: boolean; endCursor: string };
        };
        found.push(edges.map(({ node }) => node.name));
        if (!pageInfo.hasNextPage) return found;
        after = pageInfo.endCursor;
      }
    };
    assert.deepEqual(await names({ route: 1 }), [['Admin', 'Key 0', 'Key 1', 'Key 2', 'Key 3', 'Key 4', 'Own']]);
    assert.deepEqual(await names({ route: 1, method: 'GET', first: 2 }), [
      ['Admin', 'Key 0'],
      ['Key 2', 'Key 4'],
      ['Own'],
    ]);
    assert.deepEqual(await names({ route: 1, method: 'PATCH' }), [['Admin', 'Key 1', 'Key 3']]);
    assert.deepEqual(await names({ route: 2 }), [['Admin']]);
    assert.deepEqual(await names({ route: 1 }, own.secret), [['Own']]);
    for (const wrong of [
      { route: 3 },
      { route: 0 },
      { route: 1, first: 501 },
      { route: 1, first: -1 },
      { route: 1, after: 'x' },
    ])
      assert.equal(codeOf(await answer(wrong)), 'INPUT_INVALID', JSON.stringify(wrong));
    const { secret: config } = await createPrincipal(service.keys, { name: 'C', permissions: ['CONFIG:READ_ANY'] });
    assert.deepEqual((await answer({ route: 1 }, config)).errors![0]!.extensions['missing'], ['API_KEY:READ_OWN']);
    await service.stop();
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
});

describe('routes of a service without a configuration, over GraphQL', () => {
  it('do not exist, and let nothing pass', async () => {
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
    // The search is slow on a slow machine, and must not reach the time limit.
    test = await startConfiguredService(`routes:\n${routes.join('\n')}\n`, { limits: { timeMs: 600_000 } });
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

describe('routes of a configuration that changes, over GraphQL', () => {
  it('are those of the new one from then on, as are the limits', async () => {
    const before = await loadConfig({ file: configFile(ROUTES) });
    const keys = await openKeys({ database: await migratedStore(), ...(await additionsIn(before, {})) });
    const { key: secret } = await keys.create({ name: 'Viewer', roles: ['VIEWER'] }, OPERATOR);
    const opened = { keys, config: before, extensions: [], ofHost: {} };
    const address = { host: '127.0.0.1', port: 0 };
    const server = await ConfiguredServer.start(opened, address, serveApp({ console: false }));
    const ask = async () => {
      const document =
        '{ routes { total } limits { failedCredentials } explainRequest(url: "https://h/") { outcome } }';
      return (await query(server.service.server.url, secret, document)).body.data;
    };
    assert.deepEqual(await ask(), {
      routes: { total: 7 },
      limits: { failedCredentials: '20/m' },
      explainRequest: { outcome: 'REFUSED' },
    });
    const changed = 'limits: { failedCredentials: 3/m }\nroutes: [{ host: h, path: /, allow: open }]\n';
    await server.take(await loadConfig({ file: configFile(changed) }));
    assert.deepEqual(await ask(), {
      routes: { total: 1 },
      limits: { failedCredentials: '3/m' },
      explainRequest: { outcome: 'ALLOWED' },
    });
    await server.service.stop();
    await server.keys.close();
  });
});
