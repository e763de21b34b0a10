import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { Hono } from 'hono';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { createApp } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { rawPost } from '../support/raw-http.ts';
import { Random } from '../support/random.ts';
import { randomQuery } from '../support/random-query.ts';

const later = async <Value>(value: Value) => value;
const fail = (message: string) => {
  throw new Error(message);
};

/** The number of calls of counting resolvers. */
let calls = 0;

/**
 * A schema part with everything that resolvers do: values and promises, nulls and failures, lists, abstract types,
 * custom scalars.
 */
const extension: SchemaExtension = {
  typeDefs: `
    enum Color { RED GREEN }
    scalar Odd
    input Input { a: Int b: [Color!] = [GREEN] }
    interface Named { name: String! }
    type Cat implements Named { name: String! lives: Int! friend: Pet mood: Color }
    type Dog implements Named { name: String! tricks: [String!] owner: Named broken: Int! }
    union Pet = Cat | Dog
    extend type Query {
      echo(int: Int, color: Color, list: [Int!], input: Input, text: String = "none", odd: Odd): String @requires(resource: THING, action: READ_ANY)
      pets(count: Int = 2): [Pet] @requires(resource: THING, action: READ_ANY)
      kennel: [Dog] @requires(resource: THING, action: READ_ANY)
      named: Named! @requires(resource: THING, action: READ_OWN)
      odd: Odd @requires(resource: THING, action: READ_ANY)
      secretThing: Int! @requires(resource: THING, action: DELETE_ANY)
      asks: String @requires(resource: THING, action: READ_ANY)
      passesOn: String @requires(resource: THING, action: READ_ANY)
      counts: String @requires(resource: THING, action: READ_ANY)
      countsAndFails: String @requires(resource: THING, action: READ_ANY)
    }
    extend type Mutation { countsToo: Int @requires(resource: THING, action: READ_ANY) }`,
  resources: ['THING'],
  resolvers: {
    Query: {
      echo: (_: unknown, args: object) =>
        JSON.stringify(Object.entries(args).toSorted(([one], [other]) => one.localeCompare(other))),
      pets: async (_: unknown, { count }: { count: number | null }) =>
        Array.from({ length: Math.min(3, count ?? 0) }, (_, index) => pet(index)),
      kennel: () => Array.from({ length: 1001 }, () => pet(1)),
      named: () => later(pet(1)),
      odd: () => 7,
      secretThing: () => 1,
      counts: () => String((calls += 1)),
      countsAndFails: () => fail(`call ${(calls += 1)}`),
      asks: (_: unknown, __: unknown, { request }: { request: Request }) =>
        `${request.method} ${new URL(request.url).pathname} ${[...request.headers.keys()].join()} ${request.headers.get('x-extra')}`,
      passesOn: (_: unknown, __: unknown, context: { request: Request }) => {
        const { request, ...rest } = { ...context, loaders: 1 };
        return `${request?.method} ${Object.keys(rest).includes('principal')}`;
      },
    },
    Mutation: { countsToo: () => (calls += 1) },
    Color: { RED: 1, GREEN: 2 },
    Odd: {
      __serialize: (value: number) => (value === 9 ? fail('no nine') : value * 2),
      __parseValue: (value: unknown) => (value === 1 ? fail('no one') : value),
    },
    Pet: { __resolveType: ({ kind }: { kind: string }) => kind },
    Named: { __resolveType: ({ kind }: { kind: string }) => later(kind) },
    Cat: { friend: () => later(pet(2)), mood: ({ lives }: { lives: number }) => (lives > 8 ? 1 : 'purple') },
    Dog: { owner: () => pet(0), broken: () => later(null), tricks: () => ['sit', later('roll'), null] },
  },
};

function pet(index: number): object | null {
  return [
    { kind: 'Cat', name: 'Tom', lives: () => later(9) },
    { kind: 'Dog', name: () => later('Rex') },
    { kind: 'Cat', name: 'Kit', lives: 7 },
    null,
  ][index]!;
}

/** Fields that fail, some always and some for certain keys. Most queries have none. */
const FAILING = new Set([
  'counts',
  'countsAndFails',
  'broken',
  'kennel',
  'mood',
  'secretThing',
  'info',
  'apiKey',
  'auditLog',
  'odd',
]);

interface Answer {
  status: number | undefined;
  headers: string[];
  body: string;
}

/** Headers that differ in each answer. */
const OF_ONE_ANSWER = new Set(['Date', 'x-request-id']);

/** Posts a body. @returns the answer without its date and request ids */
function post(
  url: string,
  body: string | Buffer,
  headers: Record<string, string | string[]>,
  agent?: Agent,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/graphql`,
      {
        method: 'POST',
        headers: {
          ...('transfer-encoding' in headers ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
          ...headers,
        },
        // A server can close the connection after a refused body.
        agent: agent ?? false,
      },
      (reply) => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.on('end', () => {
          const text = Buffer.concat(chunks)
            .toString()
            .replaceAll(/,?"requestId":"[0-9a-f-]{36}"/g, '');
          resolve({
            status: reply.statusCode,
            headers: reply.rawHeaders.filter((_, index, all) => !OF_ONE_ANSWER.has(all[index - (index % 2)]!)),
            body: text,
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/**
 * An answer without the number of errors under a null field. The GraphQL specification ("Handling Execution Errors")
 * does not say which are reported, and that depends on which comes first.
 */
function withoutOrderOfErrors(answer: Answer): Answer {
  if (!answer.body.startsWith('{"errors":[{')) return answer;
  const { errors, ...body } = JSON.parse(answer.body) as { errors: { path?: (string | number)[] }[]; data?: unknown };
  const said = errors.map((error) => {
    const { path = [] } = error;
    let value: unknown = body;
    for (const [depth, step] of ['data', ...path].entries()) {
      value = (value as Record<string | number, unknown> | null | undefined)?.[step];
      if (value === null && depth < path.length) return JSON.stringify({ nullAt: path.slice(0, depth) });
    }
    return JSON.stringify(error);
  });
  const isExact = said.every((error) => !error.startsWith('{"nullAt"'));
  if (isExact) return answer;
  const headers = answer.headers.filter((_, index, all) => all[index - (index % 2)] !== 'content-length');
  return { ...answer, headers, body: JSON.stringify({ errors: [...new Set(said)].toSorted(), ...body }) };
}

describe('a request, by Node or by Hono,', () => {
  let test: TestKeys;
  let byNode: RunningServer;
  let byHono: RunningServer;
  let secret: string;

  before(async () => {
    test = await openTestKeys({ resources: ['THING'] });
    const permissions = ['THING:READ_ANY', 'ME:READ_OWN', 'ONLINE:READ_ANY', 'API_KEY:READ_ANY', 'PERMISSION:READ_ANY'];
    ({ secret } = await createPrincipal(test.keys, { name: 'Caller', permissions }));
    const app = await createApp({ keys: test.keys, extensions: [extension] });
    byNode = await listen({ app, host: '127.0.0.1', port: 0 });
    // Behind another middleware, Hono handles the request.
    const outer = new Hono().use(async (_, next) => next()).mount('/', app.fetch);
    byHono = await listen({ app: outer, host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await Promise.all([byNode.stop(0), byHono.stop(0)]);
    await test.store.close();
  });

  /**
   * Sends a request to both, and several times to Node's adapter, which prepares repeated operations. All must agree.
   */
  const compare = async (body: string | Buffer, headers: Record<string, string | string[]> = {}) => {
    const all = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers };
    const expected = await post(byHono.url, body, all);
    for (let time = 1; time <= 3; time += 1) {
      const answer = await post(byNode.url, body, all);
      assert.deepEqual(withoutOrderOfErrors(answer), withoutOrderOfErrors(expected), `${time}: ${String(body)}`);
    }
    return expected;
  };

  const SEEDS = process.env['SVC_API_TEST_SEEDS']?.split(',').map(Number) ?? [1, 2, 3];
  for (const seed of SEEDS) {
    it(`gets the same answer: 80 random queries of seed ${seed}`, async () => {
      const random = new Random(seed);
      const schema = await createSchema(
        test.keys,
        { name: 'x', version: '1', startedAt: 0 },
        { extensions: [extension] },
      );
      const accepts = [
        undefined,
        '*/*',
        'application/json',
        'application/graphql-response+json',
        'text/html',
        'application/graphql-response+json;q=0.5, application/json',
      ];
      const statuses = new Set<unknown>();
      for (let count = 0; count < 80; count += 1) {
        const query = randomQuery(schema, random, { rare: FAILING });
        if (query.query.includes('counts')) continue; // Its answers always differ.
        const accept = random.pick(accepts);
        const { status } = await compare(JSON.stringify(query), accept === undefined ? {} : { accept });
        statuses.add(status);
      }
      assert.deepEqual(statuses, new Set([200, 400, 406]));
    });
  }

  for (const [what, body, headers] of [
    ['a media type that ends like JSON', '{"query":"{ online }"}', { 'content-type': 'x-application/json' }],
    [
      'two Accept headers',
      '{"query":"{ asks }"}',
      { accept: ['application/graphql-response+json;q=0.1', 'application/json'] },
    ],
    ['two Accept headers that leave nothing', '{"query":"{ asks }"}', { accept: ['text/html', 'text/plain'] }],
    ['a byte order mark', '\ufeff{"query":"{ online }"}', {}],
    [
      'broken UTF-8',
      Buffer.from([...Buffer.from('{"query":"{ online }","operationName":"'), 0xff, ...Buffer.from('"}')]),
      {},
    ],
    ['a nested body', `{"query":"{ online }","variables":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`, {}],
    ['letters beyond ASCII', '{"query":"{ echo(text: \\"käse 日本 😀\\") }"}', {}],
    ['a long body', JSON.stringify({ query: '{ online }', variables: { text: 'x'.repeat(100_000) } }), {}],
    ['a body that is too long', JSON.stringify({ query: '{ online }', text: 'x'.repeat(1 << 20) }), {}],
    ['an own header', '{"query":"{ asks }"}', { 'x-extra': 'seen' }],
    ['a context that a resolver passes on', '{"query":"{ passesOn }"}', {}],
    ['a mutation', '{"query":"mutation { deleteApiKeys(ids: []) { deleted } }"}', {}],
    ['more errors than an answer may have', '{"query":"{ kennel { broken } }"}', {}],
    [
      'a variable with a default that is null',
      '{"query":"query ($x: Boolean = true) { online @include(if: $x) }","variables":{"x":null}}',
      {},
    ],
    ['the schema', '{"query":"{ __schema { queryType { name } } me { name } }"}', {}],
    ['a key that is a name of objects', '{"query":"{ me { __proto__: name id constructor: name } }"}', {}],
    ['a port that is none', '{"query":"{ online }"}', { host: 'x:99999' }],
    ['a high port', '{"query":"{ online }"}', { host: 'x:65535' }],
    ['a host in capitals', '{"query":"{ asks }"}', { host: 'EXAMPLE.com' }],
    ['an address as its host', '{"query":"{ asks }"}', { host: '[::1]:4000' }],
    ['a long address as its host', '{"query":"{ asks }"}', { host: '[0:0:0:0:0:0:0:1]:4000' }],
    ['a number as its host', '{"query":"{ asks }"}', { host: '2130706433' }],
    ['an underscore in its host', '{"query":"{ asks }"}', { host: 'svc_api:4000' }],
    ['a body in chunks, in capitals', '{"query":"{ online }"}', { 'transfer-encoding': 'Chunked' }],
    ['no body in chunks', '', { 'transfer-encoding': 'chunked' }],
  ] as const) {
    it(`gets the same answer with ${what}`, async () => {
      await compare(body, headers as unknown as Record<string, string | string[]>);
    });
  }

  it('takes a body that comes in parts', async () => {
    const body = Buffer.from(JSON.stringify({ query: '{ online }', variables: { text: 'x'.repeat(10_000) } }));
    const headers = [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'];
    const bytes = rawPost(headers, body);
    for (let time = 0; time < 3; time += 1) {
      const socket = connect(Number(new URL(byNode.url).port), '127.0.0.1');
      await new Promise((resolve) => {
        socket.write(bytes.subarray(0, -body.length + 1000), resolve);
      });
      socket.write(bytes.subarray(-body.length + 1000));
      assert.match(String((await once(socket, 'data'))[0]), /\{"data":\{"online":true\}\}$/);
      socket.destroy();
    }
  });

  it('counts as one use of its key, with a prepared operation or without', async () => {
    const query = 'query ($x: Int) { echo(int: $x) }';
    const ask = (x: unknown) =>
      post(byNode.url, JSON.stringify({ query, variables: { x } }), {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
      });
    const uses = async () => {
      await test.keys.finishActivity();
      return (await test.keys.useOf([(await test.keys.findByName('Caller', OPERATOR))!.id])).values().next().value!
        .uses;
    };
    const usesBefore = await uses();
    const bodies = [];
    for (const x of [1, 2, 3, 4, 'wrong']) bodies.push((await ask(x)).body);
    assert.deepEqual(
      bodies.slice(0, 4).map((text) => (JSON.parse(text) as { data: { echo: string } }).data.echo),
      [1, 2, 3, 4].map((x) => `[["int",${x}],["text","none"]]`),
    );
    assert.match(bodies[4]!, /GRAPHQL_VALIDATION_FAILED|INPUT|"errors"/);
    assert.equal((await uses()) - usesBefore, 5);
  });

  it('is executed once, with any result', async () => {
    const ask = (query: string) =>
      post(byNode.url, JSON.stringify({ query }), {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
      });
    for (const [query, answer] of [
      ['{ counts }', /"counts":"\d+"/],
      ['{ counts secretThing }', /FORBIDDEN/],
      ['{ counts countsAndFails }', /INTERNAL_SERVER_ERROR/],
      ['mutation { countsToo }', /"countsToo":\d+/],
    ] as const) {
      const before = calls;
      for (let time = 1; time <= 5; time += 1) assert.match((await ask(query)).body, answer);
      assert.equal(calls - before, query.includes('countsAndFails') ? 10 : 5, query);
    }
  });

  it('is refused once where its key lacks a permission', async () => {
    const body = '{"query":"{ online }"}';
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    for (let time = 0; time < 3; time += 1) assert.equal((await post(byNode.url, body, headers)).status, 200);
    const limited = await createPrincipal(test.keys, { name: 'Limited', permissions: ['ME:READ_OWN'] });
    const ask = () => post(byNode.url, body, { ...headers, authorization: `Bearer ${limited.secret}` });
    const refusals = async () => {
      await test.keys.finishActivity();
      const entries = await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR);
      const counts = entries
        .filter(({ actor }) => actor.name === 'Limited')
        .map(({ after }) => Number(after!['count']));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    for (let time = 1; time <= 5; time += 1) {
      assert.match((await ask()).body, /FORBIDDEN/);
      assert.equal(await refusals(), time);
    }
  });

  it('is handled by itself, however similar the previous one on its connection was', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const [one, other] = await Promise.all(
      ['One', 'Other'].map((name) =>
        createPrincipal(test.keys, { name, permissions: ['ME:READ_OWN', 'THING:READ_ANY'] }),
      ),
    );
    const ask = async (key: string, body: string) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      return (await post(byNode.url, body, headers, agent)).body;
    };
    const me = '{"query":"{ me { name } }"}';
    const echo = (text: string) =>
      JSON.stringify({ query: 'query ($text: String) { echo(text: $text) }', variables: { text } });
    for (let time = 0; time < 3; time += 1) {
      assert.equal(await ask(one!.secret, me), '{"data":{"me":{"name":"One"}}}');
      assert.equal(await ask(other!.secret, me), '{"data":{"me":{"name":"Other"}}}');
      // As long as the previous query, so that the heads are equal.
      assert.equal(
        await ask(other!.secret, '{"query":"{ echo        }"}'),
        '{"data":{"echo":"[[\\"text\\",\\"none\\"]]"}}',
      );
      assert.match(await ask(`${other!.secret.slice(0, -1)}!`, me), /UNAUTHENTICATED/);
      for (const text of ['a', 'b']) assert.match(await ask(one!.secret, echo(text)), new RegExp(`text.*${text}`));
    }
    agent.destroy();
  });

  it('is refused for one header more than the one before it had', async () => {
    const ask = async (...more: string[]) => {
      const body = '{"query":"{ online }"}';
      const headers = [
        'Host: localhost',
        `Authorization: Bearer ${secret}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        ...more,
      ];
      socket.write(['POST /graphql HTTP/1.1', ...headers, '', body].join('\r\n'));
      return String((await once(socket, 'data'))[0]).slice(0, 'HTTP/1.1 200'.length);
    };
    const socket = connect(Number(new URL(byNode.url).port), '127.0.0.1');
    for (let time = 0; time < 3; time += 1) assert.equal(await ask(), 'HTTP/1.1 200');
    assert.equal(await ask('Content-Encoding: gzip'), 'HTTP/1.1 415');
    socket.destroy();
  });

  it('is refused once its key has ended: one that is deleted, disabled, rotated or expired is refused from the next request on', async () => {
    const body = '{"query":"{ online }"}';
    const permissions = ['ONLINE:READ_ANY'];
    for (const [what, end] of [
      ['deleted', (id: string) => test.keys.delete([id], OPERATOR)],
      ['disabled', (id: string) => test.keys.setEnabled(id, false, OPERATOR)],
      ['rotated', (id: string) => test.keys.rotate(id, { grace: '0s' }, OPERATOR)],
      ['expired', async () => void (test.time.now += 3_600_000)],
    ] as const) {
      const created = await test.keys.create({ name: `Key ${what}`, permissions, expiresIn: '1h' }, OPERATOR);
      const ask = () =>
        post(byNode.url, body, { authorization: `Bearer ${created.key}`, 'content-type': 'application/json' });
      for (let time = 0; time < 3; time += 1) assert.equal((await ask()).status, 200);
      await end(created.apiKey.id);
      assert.equal((await ask()).status, 401, what);
    }
  });

  it('is refused once its grant has ended: one that is removed is missing from the next request on', async () => {
    const created = await test.keys.create({ name: 'Less', permissions: ['ONLINE:READ_ANY', 'ME:READ_OWN'] }, OPERATOR);
    const ask = () =>
      post(byNode.url, '{"query":"{ online }"}', {
        authorization: `Bearer ${created.key}`,
        'content-type': 'application/json',
      });
    for (let time = 0; time < 3; time += 1) assert.equal((await ask()).body, '{"data":{"online":true}}');
    await test.keys.update(created.apiKey.id, { permissions: ['ME:READ_OWN'] }, OPERATOR);
    assert.match((await ask()).body, /FORBIDDEN/);
  });
});
