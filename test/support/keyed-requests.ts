import { randomUUID } from 'node:crypto';
import type { McpPatterns, Route } from '../../src/features/routes/router.ts';
import type { Random } from './random.ts';
import { type StrangerRequest, strangerRequest, UNKNOWN_KEY } from './strangers.ts';

/** Credentials of senders with a valid key. */
export interface KeyHolder {
  /** The secret of a key that can do everything. */
  readonly secret: string;
  /** The secret of a key in the guard's store that can use all of the MCP server behind it. */
  readonly agent: string;
  /** The cookies of a console session, and their host. */
  readonly cookies: string;
  readonly host: string;
}

/** Routes of an MCP server with many patterns, several for each part. */
export function mcpRoutes(allow: Route['allow']): Route[] {
  const patterns = (index: number): McpPatterns => ({
    tools: ['*', `*_${index}*`, `read_${index}*_*`],
    resources: [`file:///docs/${index}/*`, `*/${index}*a*`, `https://h${index}.example/*%2f*`],
    prompts: ['*'],
  });
  const part = (mcp: McpPatterns): Route => ({ host: '*', path: '/mcp', allow, preflightOpen: false, mcp });
  const all = part({ tools: ['*'], resources: ['*'], prompts: ['*'] });
  return [all, ...Array.from({ length: 30 }, (_, index) => part({ ...patterns(index), prompts: [`p${index}*`] }))];
}

const JSON_TYPE = ['Content-Type', 'application/json'];
const FORM = ['Content-Type', 'application/x-www-form-urlencoded'];
/** The maximum size of a body, in characters. */
const MAX_BODY = 1_000_000;

/** Generates expensive requests with a valid key, for every endpoint that reads a body. */
export function keyedRequest(random: Random, holder: KeyHolder): StrangerRequest {
  return random.pick(DOORS)(random, holder);
}

type KeyedDoor = (random: Random, holder: KeyHolder) => StrangerRequest;

/** As many items as fit in a body. */
function many<Thing>(random: Random, of: (index: number) => Thing, most = MAX_BODY): Thing[] {
  const room = random.pick([most, most, most / 4, most / 50]);
  const each = JSON.stringify(of(0)).length + 1;
  return Array.from({ length: Math.max(1, Math.floor(room / (each + 3))) }, (_, index) => of(index));
}

const UNITS = ['a', 'x/', '%41', '%2f', '../', '?', '#', '//', '\\', '_1', 'ä', '%ff', '*', '{a}', ':80/'];

function uri(random: Random, length: number): string {
  const start = random.pick(['file:///docs/1/', 'https://h1.example/', 'HTTPS://h2.example:443/', 'x:', '']);
  const units = random.some(UNITS, 3).join('');
  return `${start}${units.repeat(Math.ceil(length / units.length))}`.slice(0, length);
}

/** The parameters of an MCP method, of about this many characters. */
function paramsOf(random: Random, method: string, size: number): object {
  const length = random.pick([20, 100, 500, 2048, size]);
  const uris = Array.from({ length: Math.max(1, Math.min(1000, Math.floor(size / length))) }, (_, index) =>
    `${uri(random, length - 5)}${index}`.slice(0, length),
  );
  const fields = () =>
    Object.fromEntries(Array.from({ length: Math.floor(size / 12) }, (_, index) => [`k${index}`, index]));
  switch (method) {
    case 'subscriptions/listen':
      return { notifications: { resourceSubscriptions: uris, ...(random.chance(0.3) && { taskIds: uris }) } };
    case 'tools/call':
      return { name: uri(random, Math.min(length, 2048)), arguments: random.chance(0.5) ? fields() : { uris } };
    case 'tasks/get':
      return { taskId: uris[0] };
    case 'ping':
      return random.chance(0.5) ? fields() : { list: uris.map(() => (random.chance(0.5) ? [{}] : 1)) };
    default:
      return { uri: uris[0], name: uris[0], ref: { type: 'ref/resource', uri: uris[0] } };
  }
}

const METHODS = ['subscriptions/listen', 'tools/call', 'tasks/get', 'ping', 'resources/read', 'completion/complete'];

const mcp: KeyedDoor = (random, { agent }) => {
  const count = random.pick([1, 1, 2, 10, 55, 100]);
  const size = random.pick([MAX_BODY, MAX_BODY, 100_000, 5000]) / count;
  const method = random.pick(METHODS);
  const messages = Array.from({ length: count }, (_, id) => ({
    jsonrpc: '2.0',
    id,
    method: random.chance(0.9) ? method : random.pick(METHODS),
    params: paramsOf(random, method, size),
  }));
  const headers = ['Authorization', `Bearer ${agent}`, ...JSON_TYPE];
  if (random.chance(0.2)) for (let index = 0; index < 60; index += 1) headers.push(`Mcp-Param-K${index}`, `${index}`);
  const body = random.chance(0.05) ? '[{'.repeat(MAX_BODY / 2) : JSON.stringify(count === 1 ? messages[0] : messages);
  return { to: 'mcp', method: 'POST', path: '/mcp', headers, body };
};

/** Requests without a key, sent with one. */
const withKey: KeyedDoor = (random, { secret }) => {
  const request = strangerRequest(random);
  const named = request.headers.map((value) => value.replaceAll(UNKNOWN_KEY, secret));
  const headers = named.includes('Authorization') ? named : ['Authorization', `Bearer ${secret}`, ...named];
  // A revocation would end the key for all later requests.
  if (request.path.startsWith('/oauth/revoke')) return request;
  return { ...request, headers, body: request.body?.replaceAll(UNKNOWN_KEY, secret) };
};

const json =
  (path: string, body: (random: Random) => unknown): KeyedDoor =>
  (random, { secret }) => ({
    to: 'service',
    method: 'POST',
    path,
    headers: ['Authorization', `Bearer ${secret}`, ...JSON_TYPE],
    body: JSON.stringify(body(random)),
  });

const usage = () => ({
  id: randomUUID(),
  uses: 1,
  lastUsedAt: 1,
  previousLastUsedAt: null,
  permissions: ['RESOURCE_1:READ_ANY'],
  hours: [],
});
const refusal = () => ({
  at: 1,
  actor: { kind: 'REQUEST', id: null, name: null },
  action: 'REFUSE',
  apiKey: null,
  before: null,
  after: {},
});
const lease = () => ({
  holder: 'x',
  turn: 1,
  used: 0,
  limits: Array.from({ length: 20 }, () => ({ keyId: randomUUID(), limit: '100/m', unusedAt: 1 })),
  waiting: 1,
  ahead: 1,
  lifeUs: 1000,
});
const report = (random: Random) => ({
  id: randomUUID(),
  usage: random.chance(0.5) ? many(random, usage) : [],
  activated: random.chance(0.3) ? many(random, () => ({ id: randomUUID(), publicId: 'x' }), MAX_BODY / 3) : [],
  refusals: random.chance(0.5) ? many(random, refusal, MAX_BODY / 3) : [],
});

/** The largest possible form for the console. */
const consoleForm: KeyedDoor = (random, { cookies, host }) => {
  const path = random.pick(['keys/new', 'keys/selected', 'requests/refuse', 'keys/x/edit', 'keys/x/narrow']);
  const names = ['name', 'description', 'permissions', 'roles', 'tags', 'limits', 'allowFrom', 'id', 'user_code'];
  const unit = random.pick(['a', 'RESOURCE_1:READ_ANY', '%C3%A4', '10.0.0.0/8,', '%0A', '100/m ', '%CC%81']);
  const size = random.pick([250_000, 250_000, 20_000]);
  const pair = `${random.pick(names)}=${unit.repeat(random.pick([1, 10, 1000, 50_000]))}&`;
  const body = pair.repeat(Math.max(1, Math.floor(size / pair.length))).slice(0, size);
  const origin = ['Host', host, 'Origin', `http://${host}`, 'Sec-Fetch-Site', 'same-origin'];
  return {
    to: 'service',
    method: 'POST',
    path: `/console/${path}`,
    headers: ['Cookie', cookies, ...origin, ...FORM],
    body,
  };
};

const DOORS: readonly KeyedDoor[] = [
  mcp,
  mcp,
  mcp,
  withKey,
  withKey,
  consoleForm,
  json('/feed/activity', report),
  json('/feed/leases', (random) => many(random, lease).slice(0, random.pick([100, 1000]))),
  json('/leaks/github', (random) =>
    many(random, () => ({ token: UNKNOWN_KEY, type: 'x', url: '', source: 'content' })),
  ),
  (random, { secret }) => ({
    to: 'service',
    method: 'POST',
    path: '/introspect',
    headers: ['Authorization', `Bearer ${secret}`, ...FORM],
    body: random
      .pick([`token=${UNKNOWN_KEY}&`, 'token=x&', `x=${'%41'.repeat(5000)}&`])
      .repeat(random.pick([1, 200]))
      .slice(0, 16_000),
  }),
];
