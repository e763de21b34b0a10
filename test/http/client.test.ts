import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createContext, Script } from 'node:vm';
import { transformSync } from 'esbuild';
import type { CheckedByClient, ClientCheckOptions, ClientOptions, createClient } from '../../src/client.ts';
import {
  createApp,
  listen,
  type NewKey,
  type OpenKeys,
  openKeys,
  OPERATOR,
  type RunningServer,
} from '../../src/index.ts';
import { ROOT } from '../support/process.ts';

const BUILT = readFileSync(join(ROOT, 'dist/client.js'), 'utf8');
const PROGRAM = new Script(`${transformSync(BUILT, { format: 'iife', globalName: 'client' }).code} client`);

/** The built client in a global scope like that of Workers, without Node. */
function load(more: object = {}): { createClient: typeof createClient } {
  const web = { AbortSignal, crypto, fetch, performance, Response, TextDecoder, TextEncoder, URL, URLSearchParams };
  const context = createContext({ ...web, ...more }, { codeGeneration: { strings: false, wasm: false } });
  return PROGRAM.runInContext(context) as { createClient: typeof createClient };
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
const by = { actor: OPERATOR } as const;

describe('svc-api/client', () => {
  let keys: OpenKeys;
  let server: RunningServer;
  let token: string;
  /** The requests that clients sent. */
  let sent: string[];
  before(async () => {
    keys = await openKeys({ database: ':memory:' });
    server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0 });
    token = (await keys.create({ name: 'Worker', permissions: ['API_KEY:READ_ANY'] }, by)).key;
  });
  beforeEach(() => void (sent = []));
  after(async () => {
    await server.stop(0);
    await keys.close();
  });

  const counted: ClientOptions['fetch'] = (url, init) => {
    sent.push(url);
    return fetch(url, init);
  };
  const clientOf = (options: Partial<ClientOptions> = {}, more?: object) =>
    load(more).createClient({ server: server.url, token, fetch: counted, timeoutMs: 60_000, ...options });
  const issue = (fields: Partial<NewKey> = {}) =>
    keys.create({ name: 'Caller', permissions: ['DOCKER:READ_ANY'], overwrite: true, ...fields }, by);
  const statusOf = (checked: CheckedByClient) => checked.ok || checked.status;

  it('is at most 5 KB, imports nothing, and needs nothing of Node', async () => {
    assert.ok(BUILT.length <= 5000, `${BUILT.length} bytes`);
    assert.doesNotMatch(BUILT, /\b(?:import|require|process|Buffer)\b/);
    const { key: secret } = await issue();
    assert.equal((await load().createClient({ server: server.url, token, timeoutMs: 60_000 }).verify(secret)).ok, true);
  });

  it('returns the key of a secret, and its permissions', async () => {
    const { key: secret, apiKey } = await issue({ expiresIn: '1h', metadata: { plan: 'pro' } });
    const checked = await clientOf().verify(secret);
    assert.ok(checked.ok);
    const { principal } = checked;
    const { id, name, audience, metadata, createdAt, expiresAt } = apiKey;
    assert.deepEqual(plain(principal.apiKey), {
      id,
      name,
      audience,
      metadata,
      createdAt: Math.floor(createdAt / 1000) * 1000,
      expiresAt: Math.floor(expiresAt! / 1000) * 1000,
    });
    assert.deepEqual(plain(principal.permissions()), ['DOCKER:READ_ANY', 'DOCKER:READ_OWN']);
    assert.deepEqual([principal.can('DOCKER:READ_OWN'), principal.can('DISK:READ_ANY')], [true, false]);
    assert.throws(() => principal.can('docker:read_any'), { code: 'OPTION_INVALID' });
  });

  it('answers as the library does, with a request of each kind', async () => {
    const { key: secret } = await issue();
    const client = clientOf();
    const requests: [authorization: string | undefined, required?: ClientCheckOptions][] = [
      [`Bearer ${secret}`],
      [`bearer  ${secret}`, { permission: 'DOCKER:READ_OWN' }],
      [`Bearer ${secret}`, { permission: 'DISK:READ_ANY' }],
      [`Bearer ${secret}`, { all: ['DOCKER:READ_ANY', 'DISK:READ_ANY', 'ME:READ_OWN'] }],
      [`Bearer ${secret}`, { all: ['DOCKER:READ_ANY', 'DOCKER:READ_OWN'] }],
      [`Bearer ${secret}`, { any: ['DISK:READ_ANY', 'DOCKER:READ_ANY'] }],
      [`Bearer ${secret}`, { any: ['DISK:READ_ANY', 'ME:READ_OWN'] }],
      ['Bearer nonsense', { permission: 'DOCKER:READ_ANY' }],
      [`Bearer ${secret}x`],
      [`Bearer ${secret}, Bearer ${secret}`],
      ['Bearer'],
      ['Bearer a b'],
      ['Basic YTpi'],
      [undefined],
    ];
    for (const [authorization, required] of requests) {
      const request = new Request('https://example.org/', { headers: authorization ? { authorization } : {} });
      const [own, other] = [await client.check(request, required), await keys.check(request, required as object)];
      assert.deepEqual(
        own.ok || [own.status, own.code, own.headers['www-authenticate']],
        other.ok || [other.status, other.code, other.headers['www-authenticate']],
        authorization,
      );
      if (own.ok || other.ok) continue;
      assert.deepEqual(Object.keys(own.headers), Object.keys(other.headers).toSorted());
      const response = own.response();
      assert.deepEqual(
        [response.status, await response.json()],
        [own.status, { code: own.code, message: own.message }],
      );
    }
  });

  it('refuses a secret that is missing, without a request', async () => {
    const client = clientOf();
    for (const missing of [undefined, null, '']) assert.equal(statusOf(await client.verify(missing)), 401);
    for (const odd of ['a b', 'a\n', 'ü', 'x'.repeat(5000)]) assert.equal(statusOf(await client.verify(odd)), 400);
    assert.deepEqual(sent, []);
  });

  it('asks the server each time, so a deleted key is refused at once', async () => {
    const { key: secret, apiKey } = await issue();
    const client = clientOf();
    assert.equal(statusOf(await client.verify(secret)), true);
    await keys.delete(apiKey.id, by);
    assert.equal(statusOf(await client.verify(secret)), 401);
    assert.equal(sent.length, 2);
  });

  it('holds a key to its networks, and to the address that it is for', async () => {
    const { key: secret } = await issue({ allowFrom: ['192.0.2.0/24'] });
    const client = clientOf();
    assert.equal(statusOf(await client.verify(secret, { address: '192.0.2.7' })), true);
    for (const address of [undefined, '', '198.51.100.7'])
      assert.equal(statusOf(await client.verify(secret, { address })), 401);
    assert.equal(statusOf(await client.verify(secret)), 401);

    const aud = 'https://mcp.example.org/mcp';
    const answer = { active: true, scope: 'ME:READ_OWN', sub: 'id', client_id: 'App', iat: 1, aud };
    const audienced = clientOf({ fetch: async () => Response.json(answer) });
    for (const audience of [aud, `${aud}/`, `${aud}/tools`, 'HTTPS://MCP.example.org:443/mcp'])
      assert.equal(statusOf(await audienced.verify(secret, { audience })), true, audience);
    for (const audience of ['https://mcp.example.org', `${aud}2`, 'http://mcp.example.org/mcp'])
      assert.equal(statusOf(await audienced.verify(secret, { audience })), 401, audience);
    assert.equal(statusOf(await audienced.verify(secret)), 401);
  });

  it('remembers an accepted key for as long as it is asked to, and until that expires', async () => {
    let now = 1000;
    let time = Date.now();
    class FixedDate extends Date {
      static override now = () => time;
    }
    const client = clientOf({ maxStaleMs: 5000 }, { performance: { now: () => now }, Date: FixedDate });
    const { key: secret, apiKey } = await issue({ expiresIn: '1h', metadata: { plan: 'pro' } });
    const asked = async (options?: ClientCheckOptions) => {
      const before = sent.length;
      return [statusOf(await client.verify(secret, options)), sent.length - before];
    };
    assert.deepEqual(await asked(), [true, 1]);
    assert.deepEqual(await asked({ permission: 'DISK:READ_ANY' }), [403, 0]);
    assert.deepEqual(await asked({ address: '192.0.2.7' }), [true, 1]);
    now += 4999;
    assert.deepEqual(await asked(), [true, 0]);
    time += 3_600_000;
    assert.deepEqual(await asked(), [true, 1]);
    time -= 3_600_000;
    await keys.delete(apiKey.id, by);
    assert.deepEqual(await asked(), [true, 0]);
    now += 5000;
    assert.deepEqual(
      [await asked(), await asked()],
      [
        [401, 1],
        [401, 1],
      ],
    );
  });

  it('remembers 1000 keys at most', async () => {
    const answer = { active: true, scope: '', sub: 'id', client_id: 'App', iat: 1 };
    let asked = 0;
    const client = clientOf({ maxStaleMs: 60_000, fetch: async () => (asked++, Response.json(answer)) });
    for (let index = 0; index <= 1000; index++) await client.verify(`key-${index}`);
    await client.verify('key-1');
    assert.equal(asked, 1001);
    await client.verify('key-0');
    assert.equal(asked, 1002);
  });

  describe('with a server that fails', () => {
    let broken: Server;
    let answer: RequestListener;
    let url: string;
    before(async () => {
      broken = createServer((request, response) => answer(request, response));
      await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve));
      url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    });
    after(() => {
      broken.closeAllConnections();
      broken.close();
    });
    const good = { active: true, scope: 'DOCKER:READ_ANY', sub: 'id', client_id: 'App', iat: 1 };
    const saying =
      (status: number, body: unknown, headers: Record<string, string> = {}): RequestListener =>
      (_request, response) =>
        response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    const { active: _, ...without } = good;

    const FAULTS: Readonly<Record<string, readonly [code: string, answer: RequestListener]>> = {
      'breaks off': ['SERVER_UNREACHABLE', (request) => request.socket.destroy()],
      'never answers': ['SERVER_UNREACHABLE', () => {}],
      'never ends its answer': ['SERVER_UNREACHABLE', (_request, response) => void response.writeHead(200).write('{')],
      'refuses the token': ['UNAUTHENTICATED', saying(401, {})],
      'refuses the token what it needs': ['FORBIDDEN', saying(403, {})],
      'is asked too often': ['RATE_LIMITED', saying(429, {})],
      'is not there': ['SERVER_INCOMPATIBLE', saying(404, good)],
      fails: ['SERVER_FAILED', saying(503, good)],
      'answers with another status': ['SERVER_INCOMPATIBLE', saying(201, good)],
      'answers with a page': ['SERVER_INCOMPATIBLE', saying(200, '<html>')],
      'answers with nothing': ['SERVER_INCOMPATIBLE', saying(200, '')],
      'answers null': ['SERVER_INCOMPATIBLE', saying(200, 'null')],
      'answers without "active"': ['SERVER_INCOMPATIBLE', saying(200, without)],
      'says "active" in words': ['SERVER_INCOMPATIBLE', saying(200, { ...good, active: 'true' })],
      'names no key': ['SERVER_INCOMPATIBLE', saying(200, { ...good, sub: 7 })],
      'says no scope': ['SERVER_INCOMPATIBLE', saying(200, { ...good, scope: undefined })],
      'names several audiences': ['SERVER_INCOMPATIBLE', saying(200, { ...good, aud: ['a'] })],
      'says metadata that is none': ['SERVER_INCOMPATIBLE', saying(200, { ...good, metadata: 'pro' })],
      'says a list as metadata': ['SERVER_INCOMPATIBLE', saying(200, { ...good, metadata: [] })],
      'says an end that is none': ['SERVER_INCOMPATIBLE', saying(200, { ...good, exp: 'never' })],
      'answers at length': ['SERVER_INCOMPATIBLE', saying(200, { ...good, more: 'x'.repeat(2 << 20) })],
    };
    for (const [what, [code, reply]] of Object.entries(FAULTS))
      it(`refuses a key with 503 if that ${what}`, async () => {
        answer = reply;
        const client = clientOf({ server: url, timeoutMs: code === 'SERVER_UNREACHABLE' ? 100 : 60_000 });
        const checked = await client.verify('some-key', { permission: 'DOCKER:READ_ANY' });
        assert.ok(!checked.ok);
        assert.deepEqual([checked.status, checked.code, checked.cause?.code], [503, 'SERVICE_UNAVAILABLE', code]);
        assert.equal(checked.headers['retry-after'], '1');
        const shown = checked.body + String(checked.cause);
        assert.ok(!shown.includes('some-key') && !shown.includes(token) && !checked.body.includes(url));
      });

    it('has the reason of the system why a server cannot be reached', async () => {
      const closed = createServer();
      await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
      const { port } = closed.address() as AddressInfo;
      await new Promise((resolve) => closed.close(resolve));
      for (const host of ['127.0.0.1', 'localhost']) {
        const checked = await clientOf({ server: `http://${host}:${port}` }).verify('some-key');
        assert.ok(!checked.ok);
        assert.equal(checked.cause?.code, 'SERVER_UNREACHABLE');
        assert.match(checked.cause.message, /ECONNREFUSED/);
      }
    });

    it('refuses a key with 503 if the server answers without a body', async () => {
      const checked = await clientOf({ fetch: async () => new Response(null) }).verify('some-key');
      assert.ok(!checked.ok);
      assert.deepEqual([checked.status, checked.cause?.code], [503, 'SERVER_INCOMPATIBLE']);
    });

    it('reports an expiry in the past', async () => {
      answer = saying(200, { ...good, exp: 0 });
      const checked = await clientOf({ server: url }).verify('some-key');
      assert.equal(checked.ok && checked.principal.apiKey.expiresAt, 0);
    });

    it('sends neither token nor key to where it is redirected', async () => {
      const seen: string[] = [];
      answer = (request, response) => {
        seen.push(request.url!);
        response.writeHead(307, { location: `${url}/elsewhere` }).end();
      };
      const checked = await clientOf({ server: `${url}/keys/` }).verify('some-key');
      assert.ok(!checked.ok);
      assert.deepEqual([checked.cause?.code, seen], ['SERVER_INCOMPATIBLE', ['/keys/introspect']]);
    });

    it('accepts the same answer if nothing is wrong with it', async () => {
      answer = saying(200, good);
      assert.equal((await clientOf({ server: url }).verify('some-key')).ok, true);
    });
  });

  it('refuses options that cannot be meant', async () => {
    const wrong: [options: object, names: RegExp][] = [
      [{ token: undefined }, /"token" must be/],
      [{ token: `${token}\n` }, /"token" must be/],
      [{ server: undefined }, /"server" must be/],
      [{ server: 'keys.example.org' }, /"server" must be/],
      [{ server: 'https://user:pass@keys.example.org' }, /"server" must be/],
      [{ server: 'http://keys.example.org' }, /must begin with https:/],
      [{ server: 'http://127.0.0.1.example.org' }, /must begin with https:/],
      [{ timeoutMs: 0 }, /"timeoutMs" must be/],
      [{ timeoutMs: 2500.5 }, /"timeoutMs" must be/],
      [{ timeoutMs: NaN }, /"timeoutMs" must be/],
      [{ maxStaleMs: 60_001 }, /"maxStaleMs" must be/],
      [{ maxStaleMs: -1 }, /"maxStaleMs" must be/],
      [{ insecure: 'no' }, /"insecure" must be/],
      [{ fetch: 'x' }, /"fetch" must be/],
      [{ ttl: 60 }, /"ttl" is not an option/],
      [{ constructor: 60 }, /"constructor" is not an option/],
    ];
    for (const [options, message] of wrong)
      assert.throws(() => clientOf(options), { code: 'OPTION_INVALID', message }, JSON.stringify(options));
    for (const address of ['http://[::1]:4000', 'http://localhost', 'https://keys.example.org/'])
      assert.ok(clientOf({ server: address }));
    assert.ok(clientOf({ server: 'http://svc-api:4000', insecure: true }));

    const client = clientOf();
    for (const options of [
      { permission: undefined },
      { permission: 'docker:read_any' },
      { permission: 'DOCKER' },
      { all: [] },
      { any: 'DOCKER:READ_ANY' },
      { all: ['DOCKER:READ_ANY'], any: ['DOCKER:READ_ANY'] },
      { permission: 'DOCKER:READ_ANY', all: ['DOCKER:READ_ANY'] },
      { audience: 'mcp' },
      { address: 7 },
      { resource: 'DOCKER' },
    ])
      await assert.rejects(client.verify('some-key', options as never), { code: 'OPTION_INVALID' });
    assert.deepEqual(sent, []);
  });
});
