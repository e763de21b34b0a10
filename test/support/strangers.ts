import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { sourceOf } from '../../src/keys/basics/source.ts';
import { CONSENTS, MAX_REQUESTS } from '../../src/features/consent/consent-request.ts';
import type { Route } from '../../src/features/routes/router.ts';
import { cpuTime, threadCpuTime } from './cpu.ts';
import type { KeyHolder } from './keyed-requests.ts';
import type { Random } from './random.ts';
import { route } from '../features/routes/support/routes.ts';
import { Consent } from '../../src/features/consent/consent.ts';

/**
 * A request without a valid key. `ADDRESS` in it becomes a new address each time, like that of another client behind a
 * proxy.
 */
export interface StrangerRequest {
  /** The target server. */
  to: 'service' | 'guard' | 'mcp';
  method: string;
  path: string;
  /** A flat list of names and values. */
  headers: string[];
  body?: string | undefined;
}

/** Headers in which a local proxy names the client's address. */
const FROM = ['X-Forwarded-For', 'ADDRESS'];
const FORM = ['Content-Type', 'application/x-www-form-urlencoded'];
const EXCHANGE =
  'grant_type=urn:ietf:params:oauth:grant-type:token-exchange' +
  '&subject_token_type=urn:ietf:params:oauth:token-type:access_token';
const CLIENT = 'grafana-sync';
/** Encoded for a form. */
export const DEVICE_GRANT = 'urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code';
/** A well-formed secret of no key. */
export const UNKNOWN_KEY = 'svc_q3aSmTb4xY2P_0QdPVnBzqVbTO0SjJXwqkKRMJ3zqBnb7B1jgXgTyJyL3tDEd0';
/** How many characters of a head a request can fill, beside its other headers. */
const MAX_HEAD = 14_500;
const MAX_FORM = 16_000;

/** The maximum of names and routes. */
export const RESOURCES: readonly string[] = Array.from({ length: 1000 }, (_, index) => `RESOURCE_${index}`);
/** Some routes are found directly; others overlap in each segment. */
const ROUTES: readonly Route[] = [
  ...Array.from({ length: 5000 }, (_, index) => route(`a${index % 500}.example.org/api/${index}/**`)),
  ...Array.from({ length: 1000 }, (_, index) => route(`*.example.org/v1/x${index}/*/y/*/z${index}`)),
  ...Array.from({ length: 1000 }, (_, index) => route(`wide.example.org/${overlapping(index)}/${index}`)),
];

/** Ten segments, each a text or `*`. */
function overlapping(index: number): string {
  return Array.from({ length: 10 }, (_, bit) => ((index >> bit) & 1 ? '*' : 'a')).join('/');
}

/** A request with almost no cost. */
export const TRIVIAL: StrangerRequest = { to: 'service', method: 'GET', path: '/healthz', headers: [] };

const UNITS = [
  'A |a=|a=&|&|&scope=a|;|,|=|/|/a|/../|//|%|%41|%C3%A4|%25|%ff|"|\\|x|.|*|:|[|(| |\t|\xe4|\u0301|0|-',
  'DOCKER:READ_ANY |RESOURCE_1:READ_ANY |RESOURCE_1:READ_AN |role:X |role:VIEWER |svc_api_session=x; ',
  '1.2.3.4,|::1, |for=1.2.3.4;|permission=RESOURCE_1:READ_AN&|any=DOCKER:READ_ANY&|key&|a;b="c";|gzip, |text/html;q=0.1, ',
].flatMap((units) => units.split('|'));

/** Generates expensive requests: long, repetitive and unusual. */
export function strangerRequest(random: Random): StrangerRequest {
  const asked = random.pick(DOORS)(random);
  const headers = [...FROM, ...asked.headers];
  while (random.chance(0.3)) headers.push(...header(random));
  if (random.chance(0.05)) for (let index = 0; index < 400; index += 1) headers.push(`X-${index}`, 'x');
  return { ...asked, headers: bounded(headers, MAX_HEAD - asked.path.length) };
}

/** A text of different parts, or one part many times. */
function text(random: Random, most: number): string {
  const length = random.pick([most, most, most / 2, 300, 40]);
  const units = random.some(UNITS, 3);
  const numbered = random.chance(0.2);
  // A new part each time, so that caches do not help.
  const parts = random.chance(0.5) ? ['ADDRESS'] : [];
  for (let [size, index] = [0, 0]; size < length; index += 1) {
    const part = units[index % units.length]! + (numbered ? String(index) : '');
    parts.push(part);
    size += part.length;
  }
  return parts.join('').slice(0, length);
}

/** Encoded for a path or a query. */
function inUrl(random: Random, most = MAX_HEAD): string {
  const raw = text(random, most);
  const encoded = random.chance(0.5) ? encodeURIComponent(raw) : raw.replaceAll(/[^\x21-\x7e]/g, '+');
  return encoded.slice(0, most).replaceAll('#', '');
}

function inHeader(random: Random, most: number): string {
  return text(random, most).replaceAll(/[^\t\x20-\xff]/g, '?');
}

const HEADERS = [
  'Authorization Cookie X-Forwarded-For Forwarded X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Method Origin Accept',
  'X-Forwarded-Uri X-Original-URI X-Request-Id traceparent tracestate Accept-Language Content-Encoding Content-Type',
  'Sec-Fetch-Site Referer X-Api-Key If-None-Match Access-Control-Request-Headers User-Agent Connection Range X-Auth-Key_Id',
].flatMap((names) => names.split(' '));

function header(random: Random): string[] {
  const name = random.pick(HEADERS);
  const start = name === 'Authorization' ? random.pick(['Bearer ', 'Basic ', 'bearer  ', '']) : '';
  if (random.chance(0.2) && name === 'Authorization')
    return [name, `Bearer ${UNKNOWN_KEY}`, name, `Bearer ${UNKNOWN_KEY}`];
  if (name === 'Content-Type') return [name, `${FORM[1]!}; ${inHeader(random, 3000)}`];
  return [name, `${start}${inHeader(random, random.pick([MAX_HEAD, 3000, 50]))}`];
}

/** As many of the headers as a server accepts. */
function bounded(headers: string[], most: number): string[] {
  const taken: string[] = [];
  let room = most;
  for (let index = 0; index < headers.length; index += 2) {
    const [name, value] = [headers[index]!, headers[index + 1]!.slice(0, Math.max(room - 50, 0))];
    room -= name.length + value.length + 4;
    if (room <= 0) break;
    taken.push(name, value);
  }
  return taken;
}

/** A form with long or repeated parameters. */
function form(random: Random, ...parameters: readonly string[]): string {
  const given = parameters
    .filter(() => random.chance(0.9))
    .map((name) => name.replace('TEXT', () => inUrl(random, 4000)));
  if (random.chance(0.3)) given.push(inUrl(random, MAX_FORM));
  if (random.chance(0.2)) given.push(`${random.pick(parameters)}&`.repeat(200));
  return given.join('&').slice(0, MAX_FORM);
}

type Door = (random: Random) => StrangerRequest;
const post =
  (path: string, body: (random: Random) => string): Door =>
  (random) => ({
    to: 'service',
    method: 'POST',
    path,
    headers: [...FORM, 'Sec-Fetch-Site', 'same-origin'],
    body: body(random),
  });
const get =
  (path: (random: Random) => string, headers: (random: Random) => string[] = () => []): Door =>
  (random) => ({
    to: 'service',
    method: random.pick(['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'PUT']),
    path: path(random),
    headers: headers(random),
  });
const key = (random: Random) =>
  random.pick([[], ['Authorization', `Bearer ${UNKNOWN_KEY}`], ['Authorization', `Bearer ${inHeader(random, 5000)}`]]);

const AUTHORIZE = [
  'response_type=code',
  `client_id=${CLIENT}`,
  `client_id=TEXT`,
  'redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fdone',
  'scope=TEXT',
  'scope=DOCKER%3AREAD_ANY+role%3AGUEST',
  'state=TEXT',
  `code_challenge=${'a'.repeat(43)}`,
  'code_challenge_method=S256',
  'key_expires_in=30d',
];
/** As many different scopes as fit in a form. */
const MUCH = `scope=${Array.from({ length: 700 }, (_, index) => `RESOURCE_${index}%3AREAD_ANY`).join('+')}`;
const SMALL = AUTHORIZE.filter((each) => !each.includes('TEXT'));

const DOORS: readonly Door[] = [
  (random) => ({
    to: 'service',
    method: 'POST',
    path: '/graphql',
    headers: ['Content-Type', 'application/json', ...key(random)],
    body: `{"query":"{${text(random, random.pick([100, 100_000]))}}"}`,
  }),
  get((random) => `/graphql?query=${inUrl(random)}`, key),
  post('/introspect', (random) => form(random, 'token=TEXT', `token=${UNKNOWN_KEY}`)),
  post('/oauth/device_authorization', (random) =>
    form(random, `client_id=${CLIENT}`, 'scope=TEXT', 'key_expires_in=TEXT'),
  ),
  post('/oauth/device_authorization', () => `client_id=${CLIENT}&scope=DOCKER%3AREAD_ANY`),
  post('/oauth/device_authorization', () => `client_id=${CLIENT}&${MUCH}`.slice(0, MAX_FORM)),
  post('/oauth/token', (random) =>
    form(random, `grant_type=${DEVICE_GRANT}`, `client_id=${CLIENT}`, 'device_code=TEXT'),
  ),
  post('/oauth/token', (random) =>
    form(
      random,
      'grant_type=authorization_code',
      `client_id=${CLIENT}`,
      'code=TEXT',
      'redirect_uri=TEXT',
      'code_verifier=TEXT',
    ),
  ),
  post('/oauth/token', (random) => form(random, 'grant_type=TEXT', 'client_id=TEXT')),
  post('/oauth/token', (random) => form(random, EXCHANGE, 'subject_token=TEXT', 'scope=TEXT', 'resource=TEXT')),
  post('/oauth/revoke', (random) => form(random, `client_id=${CLIENT}`, 'token=TEXT')),
  post('/oauth/revoke', () => `client_id=${CLIENT}&token=${UNKNOWN_KEY}`),
  get((random) => `/oauth/authorize?${form(random, ...AUTHORIZE)}`.slice(0, MAX_HEAD)),
  get(() => `/oauth/authorize?${SMALL.join('&')}`),
  get(() =>
    `/oauth/authorize?${SMALL.filter((each) => !each.startsWith('scope')).join('&')}&${MUCH}`.slice(0, MAX_HEAD),
  ),
  post('/oauth/authorize', (random) => form(random, 'page=TEXT', 'decision=TEXT', 'key=TEXT', 'scope=TEXT')),
  get((random) => `/device?user_code=${inUrl(random)}`),
  get(() => '/device?user_code=BCDF-GHJK'),
  post('/device', (random) => form(random, 'user_code=TEXT', 'decision=approve', 'key=TEXT')),
  post('/device', () => `user_code=BCDF-GHJK&decision=approve&key=${UNKNOWN_KEY}`),
  get((random) => `/.well-known/oauth-authorization-server${random.pick(['', '/'])}${inUrl(random)}`),
  get(
    (random) =>
      `/console/${random.pick(['', 'keys', 'keys/x', 'sign-in', 'requests', 'x/'])}${random.pick(['', '?', '/'])}${inUrl(random)}`,
    () => ['Cookie', 'svc_api_session=abc'],
  ),
  post('/console/sign-in', (random) => form(random, 'key=TEXT', `key=${UNKNOWN_KEY}`, 'next=TEXT')),
  post('/console/keys/create', (random) => text(random, 250_000)),
  get(
    (random) =>
      `/${random.pick(['', 'healthz', 'readyz', 'x', 'auth/', 'oauth/'])}${random.pick(['', '?', '/'])}${inUrl(random)}`,
  ),
  (random) => ({
    to: 'service',
    method: 'OPTIONS',
    path: '/graphql',
    headers: [
      'Origin',
      inHeader(random, 5000),
      'Access-Control-Request-Method',
      'POST',
      'Access-Control-Request-Headers',
      inHeader(random, 5000),
    ],
  }),
  (random) => proxied(random, path(random)),
  (random) => proxied(random, path(random)),
  (random) => ({
    to: 'service',
    method: 'GET',
    path: `/auth/envoy${path(random)}`,
    headers: ['Host', host(random), ...key(random)],
  }),
  (random) => ({
    to: 'guard',
    method: random.pick(['GET', 'POST', 'OPTIONS', 'DELETE']),
    path: path(random),
    headers: ['Host', host(random), ...key(random)],
  }),
  (random) => ({
    to: 'guard',
    method: 'GET',
    path: path(random),
    headers: ['Host', host(random), 'Connection', 'upgrade', 'Upgrade', 'websocket'],
  }),
];

function host(random: Random): string {
  return random.pick([
    'a1.example.org',
    'wide.example.org',
    'x.example.org',
    'b'.repeat(60),
    `${'x.'.repeat(120)}org`,
    inHeader(random, 200).replaceAll(/[^\w.]/g, 'a'),
  ]);
}

function path(random: Random): string {
  const known = [
    '/api/7/x',
    `/${'a/'.repeat(10)}1023`,
    `/${'a/'.repeat(10)}x`,
    `/${'A/'.repeat(10)}x`,
    '/v1/x7/a/y/b/z7',
  ];
  return random.chance(0.5) ? random.pick(known) : `/${inUrl(random, 6000)}`;
}

/** A request by which a proxy asks about another one. */
function proxied(random: Random, target: string): StrangerRequest {
  const query = random.chance(0.4) ? `?${inUrl(random, 6000)}` : '';
  const said = ['X-Forwarded-Host', host(random), 'X-Original-Method', 'GET', 'X-Original-URI', target];
  const forwarded = [
    'X-Forwarded-Host',
    host(random),
    'X-Forwarded-Method',
    'GET',
    'X-Forwarded-Proto',
    'https',
    'X-Forwarded-Uri',
    target,
  ];
  return random.chance(0.5)
    ? { to: 'service', method: 'GET', path: `/auth/nginx${query}`, headers: [...said, ...key(random)] }
    : {
        to: 'service',
        method: 'GET',
        path: `/auth/${random.pick(['caddy', 'traefik', 'haproxy', 'x'])}${query}`,
        headers: [...forwarded, ...key(random)],
      };
}

/** Starts every server that answers without a key, over a store that accepts no more requests of applications. */
export async function startAttacked(): Promise<{
  strangers: Strangers;
  /** The code of a request that awaits approval. */
  deviceCode: string;
  /** Valid credentials, for `keyedRequest`. */
  holder: KeyHolder;
  stop: () => Promise<void>;
}> {
  const [
    { listen },
    { createApp },
    { defaultConfig },
    { startGuarded },
    { byRoutes },
    { createRouter },
    { createPrincipal, openTestKeys },
    { mcpRoutes },
    { Visitor },
  ] = await Promise.all([
    import('../../src/http/listen.ts'),
    import('../../src/service/create-app.ts'),
    import('../../src/config/default-config.ts'),
    import('../features/guard/support/guard.ts'),
    import('../../src/features/guard/access.ts'),
    import('../../src/features/routes/router.ts'),
    import('./keys.ts'),
    import('./keyed-requests.ts'),
    import('../features/console/support/console.ts'),
  ]);
  const open = await openTestKeys({ asServer: true, resources: RESOURCES, consent: 'both' });
  const client = { id: CLIENT, name: 'Grafana sync', redirects: ['http://127.0.0.1/done'] };
  const { request, deviceCode } = await open.keys
    .feature(Consent)
    .ask({ client, roles: [], permissions: ['DOCKER:READ_ANY'] });
  await open.store.repository.write(async (writer) => {
    const consents = writer.port(CONSENTS);
    for (let index = 1; index < MAX_REQUESTS; index += 1) {
      const { source } = sourceOf(`2001:db8:${(index % 100).toString(16)}:${index}::1`);
      await consents.insert({ ...request, id: `${index}`, handleDigest: `${index}`, codeDigest: null, source });
    }
  });
  const config = { ...defaultConfig(), routes: ROUTES, clients: [client] };
  const app = await createApp({
    keys: open.keys,
    config,
    console: true,
    cors: { origins: ['https://app.example.org'] },
  });
  const service = await listen({ app, host: '127.0.0.1', port: 0 });
  const guard = await startGuarded((_, outgoing) => outgoing.end(), { requirements: byRoutes(createRouter(ROUTES)) });
  const mcp = await guard.beside({
    requirements: byRoutes(createRouter(mcpRoutes({ kind: 'all', permissions: ['DOCKER:READ_ANY'] }))),
  });
  const { secret: agent } = await createPrincipal(guard.keys, { name: 'Agent', permissions: ['DOCKER:READ_ANY'] });
  const { secret } = await createPrincipal(open.keys, { name: 'Holder', roles: ['ADMIN'] });
  const visitor = new Visitor(service.url);
  await visitor.signIn(secret);
  const holder: KeyHolder = { secret, agent, cookies: visitor.cookies, host: new URL(service.url).host };
  const portOf = (url: string) => Number(new URL(url).port);
  const strangers = Strangers.start({
    service: portOf(service.url),
    guard: portOf(guard.url),
    mcp: portOf(mcp),
  });
  const stop = async () => {
    await strangers.stop();
    await guard.stop();
    await service.stop(0);
    await open.store.close();
  };
  return { strangers, deviceCode: deviceCode!, holder, stop };
}

/** A client in another process, so that its work is not counted as the servers'. */
export class Strangers {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static start(ports: Record<StrangerRequest['to'], number>): Strangers {
    return new Strangers(fork(fileURLToPath(import.meta.url), [JSON.stringify(ports)]));
  }

  /**
   * Sends a request several times, one after the other.
   * @returns the average processor time in milliseconds of this process and of its main thread, and the last status
   */
  async cpuOf(
    asked: StrangerRequest,
    times: number,
  ): Promise<{ cpuMs: number; threadMs: number; status: number | string }> {
    await this.#send(asked, 1);
    const before = [cpuTime(), threadCpuTime()] as const;
    const status = await this.#send(asked, times);
    return { cpuMs: (cpuTime() - before[0]) / times, threadMs: (threadCpuTime() - before[1]) / times, status };
  }

  async stop(): Promise<void> {
    this.#child.disconnect();
    await once(this.#child, 'exit');
  }

  /** Sends a request once. @returns its status or error */
  send(asked: StrangerRequest): Promise<number | string> {
    return this.#send(asked, 1);
  }

  async #send(asked: StrangerRequest, times: number): Promise<number | string> {
    this.#child.send({ asked, times });
    const [status] = (await once(this.#child, 'message')) as [number | string];
    return status;
  }
}

if (process.send && process.argv[1] === fileURLToPath(import.meta.url)) {
  const ports = JSON.parse(process.argv[2]!) as Record<StrangerRequest['to'], number>;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let sent = 0;
  const send = ({ to, method, path, headers, body }: StrangerRequest) =>
    new Promise<number | string>((resolve) => {
      sent += 1;
      // Not in the same network, which would soon be throttled.
      const address = `2a0${sent % 10}:${((sent * 40_503) & 0xffff).toString(16)}:1::1`;
      const other = (text: string) => text.replaceAll('ADDRESS', address);
      const [named, text] = [headers.map(other), body && other(body)];
      if (text !== undefined) named.push('Content-Length', String(Buffer.byteLength(text)));
      if (!named.includes('Host')) named.push('Host', 'localhost');
      try {
        const options = { host: '127.0.0.1', port: ports[to], method, path: other(path), headers: named, agent };
        const asking = request(options, (reply) => {
          reply.resume().on('close', () => resolve(reply.statusCode!));
        });
        asking
          .on('error', (error) => resolve(error.message))
          .on('upgrade', (_, socket) => (socket.destroy(), resolve(101)));
        asking.end(text);
      } catch (error) {
        resolve(String(error));
      }
    });
  process.on('message', ({ asked, times }: { asked: StrangerRequest; times: number }) => {
    void (async () => {
      let status: number | string = 0;
      for (let time = 0; time < times; time += 1) status = await send(asked);
      process.send!(status);
    })();
  });
}
