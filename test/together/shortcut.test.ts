import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { mock } from 'node:test';
import { Hono } from 'hono';
import { defaultConfig } from '../../src/config/default-config.ts';
import type { Reply } from '../../src/http/replies.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { shortcutOf } from '../../src/http/shortcut.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createApp } from '../../src/service/create-app.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { ALL_PROXIES, type Asked, ASKING, routeTo } from '../features/guard/support/forward-auth.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { until } from '../support/until.ts';

/** The keys of the requests. */
const KEYS = {
  good: {},
  other: { permissions: ['ME:READ_OWN'], roles: [] },
  limited: { limits: ['1/h'] },
  limitedToo: { limits: ['2/h', '5/d'] },
  here: { allowFrom: ['127.0.0.0/8'] },
  elsewhere: { allowFrom: ['192.0.2.0/24'] },
  expired: { expiresIn: '1h' },
  disabled: {},
  deleted: {},
} as const;
type KeyName = keyof typeof KEYS;
type Secrets = Readonly<Record<KeyName, string>>;

interface Sent {
  readonly method?: string;
  readonly target?: string;
  /** Header lines. */
  readonly lines?: readonly string[];
  readonly key?: KeyName;
  readonly body?: string | Buffer;
  /** The announced length; if larger, the client ends within the body. Default: the real length. */
  readonly length?: number | 'unsaid';
  readonly host?: readonly string[];
}

/** The server that answers: ours refuses requests that it cannot pass on. */
type Way = 'shortcut' | 'Hono' | 'server';

/** A case's name, its requests on one connection, the statuses of the answers, and who gives them. */
type Row = readonly [what: string, sent: Sent | readonly Sent[], statuses: readonly number[], way: Way];

const ONLINE = '{"query":"{ online }"}';
const JSON_TYPE = 'Content-Type: application/json';
const CHUNKED = 'Transfer-Encoding: chunked';
const inChunks = (body: string) => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const post = (lines: readonly string[] = [], body: Sent['body'] = ONLINE, more: Sent = {}): Sent => ({
  lines: [JSON_TYPE, ...lines],
  key: 'good',
  body,
  ...more,
});
const by = (key: KeyName, lines: readonly string[] = []): Sent => post(lines, ONLINE, { key });
const asked = (query: object) => JSON.stringify(query);
const get = (search: string, more: Sent = {}): Sent => ({
  method: 'GET',
  target: `/graphql${search}`,
  key: 'good',
  ...more,
});

const GRAPHQL: readonly Row[] = [
  ['a good key', post(), [200], 'shortcut'],
  ['no key', { lines: [JSON_TYPE], body: ONLINE }, [401], 'shortcut'],
  ['a wrong key', { lines: [JSON_TYPE, 'Authorization: Bearer wrong'], body: ONLINE }, [401], 'shortcut'],
  ['a scheme that is not read', { lines: [JSON_TYPE, 'Authorization: Basic eDp5'], body: ONLINE }, [401], 'shortcut'],
  ['two credentials', post(['Authorization: Bearer another']), [400], 'shortcut'],
  ['an expired key', by('expired'), [401], 'shortcut'],
  ['a disabled key', by('disabled'), [401], 'shortcut'],
  ['a deleted key', by('deleted'), [401], 'shortcut'],
  ['a key that lacks the permission', by('other'), [200], 'shortcut'],
  ['a key for this network', by('here'), [200], 'shortcut'],
  ['a key for another network', by('elsewhere'), [403], 'shortcut'],
  ['a key for the network of the client', by('elsewhere', ['X-Forwarded-For: 192.0.2.7']), [200], 'shortcut'],
  [
    'a key for a network, by a proxy that contradicts itself',
    by('elsewhere', ['X-Forwarded-For: 192.0.2.7', 'Forwarded: for=198.51.100.1']),
    [403],
    'shortcut',
  ],
  ['more requests than a limit lets pass', [by('limited'), by('limited')], [200, 429], 'shortcut'],
  ['two limits', [by('limitedToo'), by('limitedToo'), by('limitedToo')], [200, 200, 429], 'shortcut'],
  ['an origin that is allowed', post(['Origin: https://a.example']), [200], 'shortcut'],
  ['another origin', post(['Origin: https://b.example']), [200], 'shortcut'],
  ['an origin and no key', { lines: [JSON_TYPE, 'Origin: https://a.example'], body: ONLINE }, [401], 'shortcut'],
  [
    'a preflight',
    { method: 'OPTIONS', lines: ['Origin: https://a.example', 'Access-Control-Request-Method: POST'] },
    [204],
    'Hono',
  ],
  ['OPTIONS', { method: 'OPTIONS', key: 'good' }, [405], 'Hono'],
  ['HEAD', get('?query={online}', { method: 'HEAD' }), [200], 'Hono'],
  ['HEAD without a key', { method: 'HEAD', target: '/graphql?query={online}' }, [401], 'Hono'],
  ['PUT', post([], ONLINE, { method: 'PUT' }), [405], 'Hono'],
  ['DELETE', post([], '', { method: 'DELETE' }), [405], 'Hono'],
  ['no type', { key: 'good', body: ONLINE }, [415], 'shortcut'],
  ['another type', { lines: ['Content-Type: text/plain'], key: 'good', body: ONLINE }, [415], 'shortcut'],
  ['two types', post([JSON_TYPE]), [415], 'shortcut'],
  ['a charset', { lines: [`${JSON_TYPE}; charset=UTF-8`], key: 'good', body: ONLINE }, [200], 'shortcut'],
  ['another charset', { lines: [`${JSON_TYPE}; charset=latin1`], key: 'good', body: ONLINE }, [415], 'shortcut'],
  ['a compressed body', post(['Content-Encoding: gzip']), [415], 'shortcut'],
  ['a body that is too large', post([], asked({ query: '{ online }', x: 'x'.repeat(1 << 20) })), [413], 'shortcut'],
  ['no body', post([], ''), [400], 'shortcut'],
  ['no body and no length', post([], '', { length: 'unsaid' }), [400], 'shortcut'],
  ['a body that is cut off', post([], ONLINE, { length: 100 }), [400], 'shortcut'],
  ['malformed JSON', post([], '{"query":'), [400], 'shortcut'],
  ['JSON of another form', post([], '"{ online }"'), [400], 'shortcut'],
  ['a batch', post([], `[${ONLINE}]`), [400], 'shortcut'],
  ['a document that is not valid', post([], asked({ query: '{ nothing }' })), [200], 'shortcut'],
  ['a syntax error', post([], asked({ query: '{' })), [200], 'shortcut'],
  [
    '@include',
    [true, false].map((on) =>
      post([], asked({ query: 'query ($on: Boolean!) { online me @include(if: $on) { name } }', variables: { on } })),
    ),
    [200, 200],
    'shortcut',
  ],
  ['Unicode', post([], '{"query":"{ \\u006fnline }","operationName":null}'), [200], 'shortcut'],
  ['a body that is not UTF-8', post([], Buffer.from([0x7b, 0xff, 0x7d])), [400], 'shortcut'],
  ['a body in chunks', post([CHUNKED], inChunks(ONLINE), { length: 'unsaid' }), [200], 'shortcut'],
  [
    'a body in chunks that is too large',
    post([CHUNKED], inChunks(asked({ query: '{ online }', x: 'x'.repeat(1 << 20) })), { length: 'unsaid' }),
    [413],
    'shortcut',
  ],
  ['another transfer coding', post(['Transfer-Encoding: gzip, chunked'], '', { length: 'unsaid' }), [400], 'Hono'],
  ['a transfer coding twice', post([CHUNKED, CHUNKED], '', { length: 'unsaid' }), [400], 'server'],
  ['Expect', post(['Expect: 100-continue']), [100, 200], 'shortcut'],
  ['Expect and no key', { lines: [JSON_TYPE, 'Expect: 100-continue'], body: ONLINE }, [401], 'shortcut'],
  ['another Expect', post(['Expect: more']), [417], 'server'],
  ['a query in the URL', get('?query={online}'), [200], 'shortcut'],
  ['a query in the URL with a body', get('?query={online}', { body: ONLINE }), [200], 'shortcut'],
  ['a mutation in the URL', get('?query=mutation{deleteApiKeys(ids:[]){deleted}}'), [405], 'shortcut'],
  ['a parameter twice', get('?query={online}&query={online}'), [400], 'shortcut'],
  ['variables in the URL', get('?query={online}&variables=%7B%22a%22%3A1%7D'), [200], 'shortcut'],
  ['percent-encoding that is not UTF-8', get('?query=%ff'), [400], 'shortcut'],
  ['a long URL', get(`?query={online}&x=${'x'.repeat(9000)}`), [414], 'shortcut'],
  ['no query in the URL', get(''), [400], 'shortcut'],
  ['GET without a key', { method: 'GET', target: '/graphql?query={online}' }, [401], 'shortcut'],
  ['a fragment', get('?query={online}#x'), [200], 'Hono'],
  ['Accept', post(['Accept: application/graphql-response+json']), [200], 'shortcut'],
  ['Accept, for what is not valid', post(['Accept: application/graphql-response+json'], '{}'), [400], 'shortcut'],
  ['Accept twice', post(['Accept: application/graphql-response+json;q=0.5', 'Accept: text/html']), [200], 'shortcut'],
  ['Accept of nothing that there is', post(['Accept: text/html']), [406], 'shortcut'],
  ['an encoded path', post([], ONLINE, { target: '/graph%71l' }), [200], 'Hono'],
  ['an encoded slash', post([], ONLINE, { target: '/graphql%2f' }), [404], 'Hono'],
  ['a path that is not UTF-8', post([], ONLINE, { target: '/graphql%ff' }), [400], 'Hono'],
  ['a slash at the end', post([], ONLINE, { target: '/graphql/' }), [404], 'Hono'],
  ['two slashes', post([], ONLINE, { target: '//graphql' }), [404], 'Hono'],
  ['dot segments', post([], ONLINE, { target: '/x/../graphql' }), [400], 'Hono'],
  ['capitals', post([], ONLINE, { target: '/GraphQL' }), [404], 'Hono'],
  ['a whole URL', post([], ONLINE, { target: 'http://localhost/graphql' }), [200], 'Hono'],
  ['two hosts', post([], ONLINE, { host: ['Host: localhost', 'Host: localhost'] }), [400], 'Hono'],
  ['no host', post([], ONLINE, { host: [] }), [400], 'Hono'],
  ['a host that is none', post([], ONLINE, { host: ['Host: a b'] }), [400], 'Hono'],
  [
    'several requests',
    [post(), by('expired'), get('?query={online}'), post([], '{')],
    [200, 401, 200, 400],
    'shortcut',
  ],
];

const toProxy = (proxy: (typeof ALL_PROXIES)[number], asking: Asked, more: Sent = {}, query = ''): Sent => {
  const { headers, ...rest } = ASKING[proxy](asking, query);
  const [host, lines] = [/^host:/i, /^(?!host:)/i].map((form) => headers.filter((line) => form.test(line)));
  return { method: 'GET', ...rest, ...more, lines: [...lines!, ...(more.lines ?? [])], host: host! };
};
const FORWARD_AUTH: readonly Row[] = ALL_PROXIES.flatMap((proxy): Row[] => {
  const limited = proxy === 'nginx' ? 403 : 429;
  const named = (what: string): string => `${what}, asked by ${proxy}`;
  return [
    [named('an open route'), toProxy(proxy, { target: '/public/x' }), [200], 'shortcut'],
    [named('a good key'), toProxy(proxy, { target: '/any/x?y=1' }, { key: 'good' }), [200], 'shortcut'],
    [
      named('cookies'),
      toProxy(proxy, { target: '/any/x' }, { key: 'good', lines: ['Cookie: a=b'] }),
      [200],
      'shortcut',
    ],
    [named('no key'), toProxy(proxy, { target: '/any/x' }), [401], 'shortcut'],
    [named('a wrong key'), toProxy(proxy, { target: '/any/x' }, { key: 'deleted' }), [401], 'shortcut'],
    [
      named('two credentials'),
      toProxy(proxy, { target: '/any/x' }, { key: 'good', lines: ['Authorization: Bearer x'] }),
      [401],
      'shortcut',
    ],
    [
      named('a key that lacks the permission'),
      toProxy(proxy, { target: '/api/x' }, { key: 'good' }),
      [403],
      'shortcut',
    ],
    [named('a key for another network'), toProxy(proxy, { target: '/any/x' }, { key: 'elsewhere' }), [403], 'shortcut'],
    [
      named('more requests than a limit lets pass'),
      [1, 2].map(() => toProxy(proxy, { target: '/any/x' }, { key: 'limited' })),
      [200, limited],
      'shortcut',
    ],
    [named('another method'), toProxy(proxy, { method: 'POST', target: '/any/x' }, { key: 'good' }), [200], 'shortcut'],
    [named('HEAD'), toProxy(proxy, { method: 'HEAD', target: '/any/x' }, { key: 'good' }), [200], 'shortcut'],
    [named('no route'), toProxy(proxy, { target: '/other' }, { key: 'good' }), [403], 'shortcut'],
    [named('an encoded slash'), toProxy(proxy, { target: '/public%2fx' }, { key: 'good' }), [403], 'shortcut'],
    [
      named('a permission in the URL'),
      toProxy(proxy, { target: '/x' }, { key: 'good' }, '?permission=GRAFANA:READ_ANY'),
      [403],
      'shortcut',
    ],
    [
      named('an identity header'),
      toProxy(proxy, { target: '/any/x' }, { lines: ['X_Auth_Roles: ADMIN'] }),
      [403],
      'shortcut',
    ],
  ];
}).concat([
  ['no endpoint', { method: 'GET', target: '/auth/other', key: 'good' }, [403], 'shortcut'],
  ['no name of a proxy', { method: 'GET', target: '/auth?key', key: 'good' }, [403], 'shortcut'],
  ['a proxy that sends a body', { target: '/auth/nginx', key: 'good', body: 'x' }, [403], 'shortcut'],
]);

const OTHERS: readonly Row[] = [
  ['/healthz', { method: 'GET', target: '/healthz' }, [200], 'Hono'],
  ['/readyz', { method: 'GET', target: '/readyz' }, [200], 'Hono'],
  ['/', { method: 'GET', target: '/' }, [200], 'Hono'],
  ['/feed', { method: 'GET', target: '/feed', key: 'good' }, [403], 'Hono'],
  ['/introspect', { target: '/introspect', key: 'good' }, [403], 'Hono'],
  ['/.well-known', { method: 'GET', target: '/.well-known/oauth-authorization-server' }, [200], 'Hono'],
  ['an address like /auth', { method: 'GET', target: '/author' }, [404], 'Hono'],
];

/** The result of the shortcut for each request of a way. */
const TAKEN: Readonly<Record<Way, readonly boolean[]>> = { shortcut: [true], Hono: [false], server: [] };

/** Headers that differ in each answer. */
const OF_ONE_ANSWER = /^(?:date|x-request-id): .*\r\n/gim;
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/** How many complete answers a text contains. */
function countAnswers(text: string, toHead: boolean): number {
  const [head, status] = /^HTTP\/1\.1 (\d+) [^]*?\r\n\r\n/.exec(text) ?? [];
  if (head === undefined) return 0;
  const hasBody = !toHead && status !== '100' && status !== '204';
  const end = head.length + (hasBody ? Number(/\r\ncontent-length: (\d+)/i.exec(head)![1]) : 0);
  return text.length < end ? 0 : 1 + countAnswers(text.slice(end), toHead);
}

/** Answers without the variable parts, with sorted headers. */
function normalized(answers: string): string {
  const same = answers
    .replaceAll(OF_ONE_ANSWER, '')
    .replaceAll(/(?<= of |%20of%20)[01]\b/g, 'N')
    .replaceAll(UUID, 'ID');
  return same.replaceAll(/(?<=HTTP\/1\.1 .*\r\n)(?:\S+: .*\r\n)+/g, (lines) =>
    lines
      .split(/(?<=\r\n)/)
      .toSorted()
      .join(''),
  );
}

describe('a request, by the shortcut or by Hono,', () => {
  let test: TestKeys;
  /** The shortcut's result for each request: true if it answered. */
  let taken: boolean[] = [];
  const servers: { server: RunningServer; secrets: Secrets }[] = [];

  before(async () => {
    test = await openTestKeys({ resources: ['GRAFANA'] });
    const routes = [
      routeTo('/public/**', { kind: 'open' }),
      routeTo('/any/**', { kind: 'key' }),
      routeTo('/api/**', { kind: 'all', permissions: ['GRAFANA:READ_ANY'] }),
    ];
    const app = await createApp({
      keys: test.keys,
      config: { ...defaultConfig(), routes },
      cors: { origins: ['https://a.example'] },
      failedCredentials: false,
    });
    const { shortcut } = app;
    const watched = (incoming: IncomingMessage, outgoing: ServerResponse) => {
      taken.push(shortcut(incoming, outgoing));
      return taken.at(-1)!;
    };
    const served = [
      Object.assign(app, { shortcut: watched }),
      // Inside another app, Hono answers.
      new Hono().all('*', (c) => app.fetch(c.req.raw, c.env as object)),
    ];
    for (const [index, each] of served.entries())
      servers.push({
        server: await listen({ app: each as never, host: '127.0.0.1', port: 0 }),
        secrets: await createKeys(`of ${index}`),
      });
    test.time.now += 2 * 3_600_000;
  });
  after(async () => {
    await Promise.all(servers.map(({ server }) => server.stop(0)));
    await test.store.close();
  });

  async function createKeys(suffix: string): Promise<Secrets> {
    const secrets: Partial<Record<KeyName, string>> = {};
    for (const [name, fields] of Object.entries(KEYS) as [KeyName, object][]) {
      const { key, apiKey } = await test.keys.create(
        { name: `${name} ${suffix}`, roles: ['GUEST'], ...fields },
        OPERATOR,
      );
      if (name === 'disabled') await test.keys.setEnabled(apiKey.id, false, OPERATOR);
      if (name === 'deleted') await test.keys.delete([apiKey.id], OPERATOR);
      secrets[name] = key;
    }
    return secrets as Secrets;
  }

  /** Sends requests one after another on a connection. @returns the expected number of answers, or what arrived */
  async function send(all: readonly Sent[], { url }: RunningServer, secrets: Secrets, count: number): Promise<string> {
    const socket = await connectTo(url);
    const answers = readToEnd(socket);
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (countAnswers(received, all[0]!.method === 'HEAD') === count) socket.destroy();
    });
    for (const one of all) {
      const { method = 'POST', target = '/graphql', lines = [], key, body = '' } = one;
      const { length = Buffer.byteLength(body) } = one;
      const isSaid = length !== 'unsaid' && (method !== 'GET' || body !== '');
      const head = [
        `${method} ${target} HTTP/1.1`,
        ...(one.host ?? ['Host: localhost']),
        ...lines.filter((line) => !/^content-length:/i.test(line)),
        ...(key === undefined ? [] : [`Authorization: Bearer ${secrets[key]}`]),
        ...(isSaid ? [`Content-Length: ${length}`] : []),
      ];
      socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]));
      if (one.length !== undefined && one.length !== 'unsaid') socket.end();
    }
    return normalized(await answers);
  }

  for (const [what, sent, statuses, way] of [...GRAPHQL, ...FORWARD_AUTH, ...OTHERS])
    it(`gets the same answer: ${what}`, async () => {
      // Resets the limits.
      test.time.now += 24 * 3_600_000;
      const answers = [];
      for (const { server, secrets } of servers) {
        taken = [];
        answers.push(await send([sent].flat(), server, secrets, statuses.length));
        if (answers.length === 1) assert.deepEqual(new Set(taken), new Set(TAKEN[way]));
      }
      assert.deepEqual(
        Array.from(answers[0]!.matchAll(/HTTP\/1\.1 (\d+) /g), ([, status]) => Number(status)),
        statuses,
        answers[0],
      );
      assert.equal(answers[0], answers[1]);
    });

  it('gets its own answer, however many are answered at a time', async () => {
    const [{ server, secrets }] = servers as [(typeof servers)[0]];
    const ask = async (number: number) => {
      const sent = post([], asked({ query: `{ n${number}: online }` }));
      assert.match(await send([sent], server, secrets, 1), new RegExp(`\\{"data":\\{"n${number}":true\\}\\}$`));
    };
    await Promise.all(Array.from({ length: 200 }, (_, number) => ask(number)));
  });
});

describe('the answers of one turn of the event loop', () => {
  let server: Server;
  let now = 0;
  /** The received requests, with a function to answer each. */
  const received: { outgoing: ServerResponse; answer: (reply: Reply) => void }[] = [];
  before(async () => {
    mock.method(performance, 'now', () => now);
    let answer: (reply: Reply) => void;
    const auth = () => new Promise<Reply>((resolve) => (answer = resolve));
    const shortcut = shortcutOf({ auth, graphql: undefined });
    server = createServer((incoming, outgoing) => {
      shortcut(incoming, outgoing);
      received.push({ outgoing, answer });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => {
    mock.restoreAll();
    server.closeAllConnections();
    server.close();
  });

  /** Sends requests on separate connections, and waits until they have arrived. */
  async function ask(count: number): Promise<typeof received> {
    received.length = 0;
    const { port } = server.address() as AddressInfo;
    for (let number = 1; number <= count; number += 1) {
      const socket = await connectTo(`http://127.0.0.1:${port}`);
      socket.write('GET /auth HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await until(() => received.length === number);
    }
    return [...received];
  }
  /** Answers requests within one turn of the event loop. */
  async function answer(requests: typeof received): Promise<void> {
    for (const request of requests) request.answer({ status: 200, text: 'ready' });
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  const written = (requests: typeof received) => requests.map(({ outgoing }) => outgoing.headersSent);

  it('are written together at its end', async () => {
    const requests = await ask(3);
    const [first, ...others] = requests;
    await answer([first!]);
    const end = setImmediate();
    await answer(others);
    assert.deepEqual(written(requests), [false, false, false]);
    await end;
    assert.deepEqual(written(requests), [true, true, true]);
  });

  it('are written before its end once the first has waited for a millisecond', async () => {
    const requests = await ask(3);
    const [first, second, third] = requests;
    await answer([first!]);
    now += 0.5;
    await answer([second!]);
    assert.deepEqual(written(requests), [false, false, false]);
    now += 0.5;
    await answer([third!]);
    assert.deepEqual(written(requests), [true, true, true]);
  });

  it('are not written to clients that have gone, before or after they were made', async () => {
    const requests = await ask(3);
    const [first, second] = requests;
    first!.outgoing.destroy();
    await answer(requests);
    second!.outgoing.destroy();
    await setImmediate();
    assert.deepEqual(written(requests), [false, false, true]);
  });
});
