import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { MAX_SEARCH_LENGTH } from '../../src/http/graphql-parameters.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { query } from '../support/server.ts';

const NEWER = 'application/graphql-response+json';

describe('a query by GET', () => {
  let test: TestKeys;
  let servers: RunningServer[];
  let secret: string;

  before(async () => {
    test = await openTestKeys();
    ({ secret } = await createPrincipal(test.keys, { name: 'Reader', roles: ['ADMIN'] }));
    const app = await createApp({ keys: test.keys });
    // Behind another middleware, Hono handles the request.
    const outer = new Hono().use(async (_, next) => next()).mount('/', app.fetch);
    servers = await Promise.all([app, outer].map((served) => listen({ app: served, host: '127.0.0.1', port: 0 })));
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop(0)));
    await test.store.close();
  });

  /** Sends the request with both adapters, twice each because a repeated operation is prepared. All must agree. */
  async function get(parameters: Record<string, string> | string, init: RequestInit = {}) {
    const search = typeof parameters === 'string' ? parameters : new URLSearchParams(parameters).toString();
    const answers = [];
    for (const { url } of [...servers, ...servers]) {
      const headers = { authorization: `Bearer ${secret}`, ...(init.headers as Record<string, string>) };
      const response = await fetch(`${url}/graphql?${search}`, { ...init, headers });
      const text = await response.text();
      answers.push({
        status: response.status,
        allow: response.headers.get('allow'),
        type: response.headers.get('content-type'),
        body: (text === '' ? null : JSON.parse(text)) as {
          data?: object;
          errors?: { message: string; extensions: { code: string } }[];
        } | null,
      });
    }
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    return answers[0]!;
  }

  it('is answered as by POST, with variables, an operation and extensions', async () => {
    const parameters = {
      query: 'query A { online } query B($name: String) { apiKey(name: $name) { name } }',
      operationName: 'B',
      variables: '{"name":"Reader"}',
      extensions: '{"trace":1}',
    };
    assert.deepEqual(await get(parameters), {
      status: 200,
      allow: null,
      type: 'application/json; charset=utf-8',
      body: { data: { apiKey: { name: 'Reader' } } },
    });
    const { type } = await get({ query: '{ online }' }, { headers: { accept: NEWER } });
    assert.equal(type, `${NEWER}; charset=utf-8`);
  });

  it('may omit or leave empty optional parameters, and encode its query in any way', async () => {
    const answers = [
      'query={online}',
      'query=%7b+online%20%7D&variables=&operationName=&extensions=',
      'variables=null&query=%23+K%C3%A4se%0A{online}&other=%22',
      'query={%20online%20}&query2=x&Query=y&&',
      'qu%65ry={online}',
    ];
    for (const search of answers) assert.deepEqual((await get(search)).body, { data: { online: true } }, search);
    for (const { url } of servers) {
      const bytes = `GET /graphql?query={online}#query={ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n\r\n`;
      assert.deepEqual(JSON.parse((await sendRaw(url, bytes)).body), { data: { online: true } });
    }
  });

  it('is not answered by HEAD otherwise, but for the body', async () => {
    assert.deepEqual(
      [await get('query={online}', { method: 'HEAD' }), (await get('query=', { method: 'HEAD' })).status],
      [{ status: 200, allow: null, type: 'application/json; charset=utf-8', body: null }, 400],
    );
  });

  it('takes nothing from a body', async () => {
    for (const { url } of servers) {
      const bytes = rawPost([`Authorization: Bearer ${secret}`, 'Content-Type: application/json'], '{"query":"{"}');
      const request = bytes.toString().replace('POST /graphql', 'GET /graphql?query={online}');
      assert.deepEqual(JSON.parse((await sendRaw(url, request)).body), { data: { online: true } });
    }
  });

  it('cannot change anything: a mutation gets 405, also one that was prepared by POST', async () => {
    const mutation = 'mutation Make { createApiKey(input: { name: "By GET", roles: [GUEST] }) { key } }';
    const twoOperations = `${mutation} query Read { online }`;
    for (let time = 0; time < 3; time += 1) {
      await query(servers[0]!.url, secret, mutation);
      await test.keys.delete([(await test.keys.findByName('By GET', OPERATOR))!.id], OPERATOR);
    }
    const asked: Record<string, string>[] = [{ query: mutation }, { query: twoOperations, operationName: 'Make' }];
    for (const parameters of asked) {
      for (const accept of ['application/json', NEWER]) {
        assert.deepEqual(await get(parameters, { headers: { accept } }), {
          status: 405,
          allow: 'POST',
          type: `${accept}; charset=utf-8`,
          body: {
            errors: [{ message: 'Send mutations by POST.', extensions: { code: 'METHOD_NOT_ALLOWED' } }],
          },
        });
      }
    }
    assert.ok(!(await test.keys.findByName('By GET', OPERATOR)));
    const read = await get({ query: twoOperations, operationName: 'Read' });
    assert.deepEqual(read.body, { data: { online: true } });
  });

  it('is refused without a key, which the URL never holds', async () => {
    for (const method of ['GET', 'HEAD', 'POST']) {
      for (const name of ['access_token', 'key', 'authorization', 'apiKey', 'Authorization']) {
        const search = new URLSearchParams({ query: '{ online }', [name]: secret }).toString();
        for (const { url } of servers)
          assert.equal((await fetch(`${url}/graphql?${search}`, { method })).status, 401, `${method} ${name}`);
      }
    }
  });

  const rows: [what: string, search: string, message: string][] = [
    ['no query', '', '"query" must be a string with a GraphQL document.'],
    ['an empty query', 'query=', '"query" must be a string with a GraphQL document.'],
    ['two queries', 'query={online}&query={me{id}}', '"query" is in the URL twice.'],
    ['two sets of variables', 'query={online}&variables={}&variables={}', '"variables" is in the URL twice.'],
    ['variables that are not JSON', 'query={online}&variables={', '"variables" in the URL is not valid JSON.'],
    ['variables in an array', 'query={online}&variables=[]', '"variables" must be an object.'],
    ['extensions that are no object', 'query={online}&extensions=1', '"extensions" must be an object.'],
    [
      'variables that nest deeply',
      `query={online}&variables=${'['.repeat(70)}`,
      '"variables" in the URL nests deeper than 64 levels, which is the most that is allowed.',
    ],
    ['half an encoding', 'query={online}%2', "The URL's query is not valid percent-encoded UTF-8."],
    ['an encoding that is not UTF-8', 'query={online}%23%fc', "The URL's query is not valid percent-encoded UTF-8."],
  ];
  for (const [what, search, message] of rows) {
    it(`gets 400 with ${what}`, async () => {
      const { status, body } = await get(search);
      assert.deepEqual([status, body], [400, { errors: [{ message, extensions: { code: 'BAD_REQUEST' } }] }]);
    });
  }

  it('gets 414 when it is longer than 8192 characters', async () => {
    const search = (length: number) => `query={online}%23`.padEnd(length - '?'.length, 'x');
    assert.equal((await get(search(MAX_SEARCH_LENGTH))).status, 200);
    const { status, body } = await get(search(MAX_SEARCH_LENGTH + 1));
    assert.deepEqual([status, body!.errors![0]!.extensions.code], [414, 'URL_TOO_LONG']);
  });

  it('has the same limits as by POST', async () => {
    const aliases = Array.from({ length: 101 }, (_, index) => `a${index}:online`).join(' ');
    for (const [document, code] of [
      [`{ ${aliases} }`, 'LIMIT_EXCEEDED'],
      [`{ ${'a { '.repeat(21)} b ${'}'.repeat(21)} }`, 'LIMIT_EXCEEDED'],
      [`{ ${'a { '.repeat(101)} b`, 'LIMIT_EXCEEDED'],
      [
        '{ a: apiKeys(search: "a") { __typename } b: apiKeys(search: "b") { __typename } c: apiKeys(search: "c") { __typename } }',
        'COST_EXCEEDED',
      ],
      ['{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['subscription { online }', 'BAD_REQUEST'],
      ['{ online', 'GRAPHQL_PARSE_FAILED'],
    ] as const) {
      const posted = await query(servers[0]!.url, secret, document);
      const { body } = await get({ query: document });
      assert.deepEqual(body, posted.body);
      assert.equal(body?.errors?.[0]?.extensions.code, code);
    }
  });
});
