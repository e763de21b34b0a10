import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { byRoutes } from '../../../src/features/guard/access.ts';
import { Discovery } from '../../../src/features/guard/discovery.ts';
import { type RunningGuard, serveGuard } from '../../../src/features/guard/guard.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { Networks } from '../../../src/keys/basics/networks.ts';
import { defaultConfig } from '../../../src/config/default-config.ts';
import { createRouter, type Route } from '../../../src/features/routes/index.ts';
import { agree, authorizeUrl, codeFor, exchange, newPkce, openPage, postJson } from '../consent/support/consent.ts';
import { connectRaw } from '../../support/raw-connection.ts';
import { createPrincipal } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { query, startServer, startTestService, type TestService } from '../../support/server.ts';

const REDIRECT = 'http://127.0.0.1:54321/done';
const AGENT = { id: 'agent', name: 'Agent', redirects: ['http://127.0.0.1/done'] };
const LASTING = { ...AGENT, id: 'lasting-agent', refreshes: true };
const part = (action: 'READ' | 'DELETE', tool: string): Route => ({
  host: '*',
  path: '/mcp',
  allow: { kind: 'all', permissions: [`DOCKER:${action}_ANY`] },
  preflightOpen: false,
  mcp: { tools: [tool], resources: [], prompts: [] },
});
const OTHER: Route = {
  host: '*',
  path: '/api/**',
  allow: { kind: 'resource', resource: 'DOCKER' },
  preflightOpen: false,
};

/** Answers like an MCP server with three tools. */
function answer(message: { id?: unknown; method?: string; params?: { name?: string } }, outgoing: ServerResponse) {
  const results: Record<string, unknown> = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
    'tools/call': { content: [{ type: 'text', text: `${message.params?.name} done` }] },
  };
  if (message.id === undefined) return outgoing.writeHead(message.method ? 202 : 405).end();
  outgoing.setHeader('content-type', 'application/json');
  return outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: results[message.method!] ?? {} }));
}

/** The state that an agent keeps, and the address to which it sends its person. */
class Agent implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT;
  kept: OAuthTokens | undefined;
  information: OAuthClientInformationMixed | undefined;
  sent: URL | undefined;
  #verifier = '';

  constructor(clientId: string | undefined) {
    this.information = clientId === undefined ? undefined : { client_id: clientId };
  }

  get clientMetadata() {
    const grants = ['authorization_code', 'refresh_token'];
    return { redirect_uris: [REDIRECT], client_name: 'An Agent (1.0)', grant_types: grants };
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information: OAuthClientInformationMixed) {
    this.information = information;
  }
  tokens() {
    return this.kept;
  }
  saveTokens(tokens: OAuthTokens) {
    this.kept = tokens;
  }
  redirectToAuthorization(url: URL) {
    this.sent = url;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

describe('an agent of the official SDK that logs in', () => {
  let service: TestService;
  let guard: RunningGuard;
  let url: URL;
  let approver: string;
  let lines: ReturnType<typeof collectingLog>['lines'];
  const upstream = createServer((incoming, outgoing) => {
    void text(incoming).then((body) => answer(body === '' ? {} : JSON.parse(body), outgoing));
  });
  before(async () => {
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => void upstream.close());
  beforeEach(async () => {
    const clients = [AGENT, LASTING];
    const { log, ...collected } = collectingLog();
    ({ lines } = collected);
    const config = { ...defaultConfig(), dynamicRegistration: true };
    service = await startTestService({ consent: 'both', app: { clients, config } });
    const address = { protocol: 'http:', host: '127.0.0.1', port: (upstream.address() as AddressInfo).port } as const;
    guard = await serveGuard(
      { forwardCredential: false, timeoutMs: 60_000, log },
      {
        keys: service.keys,
        requirements: byRoutes(createRouter([part('READ', 'read'), part('DELETE', 'delete'), OTHER])),
        credentials: ['bearer'],
        trust: new Networks([]),
        publicUrl: service.url,
        upstreams: { byName: new Map(), otherwise: { name: undefined, address, send: [], rewriteHost: false } },
      },
      { host: '127.0.0.1', port: 0, keepAliveMs: 5000 },
    );
    url = new URL(`${guard.url}/mcp`);
    const fields = { name: 'Anna', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN', 'DOCKER:DELETE_ANY'] };
    ({ secret: approver } = await createPrincipal(service.keys, fields));
  });
  afterEach(async () => {
    await guard.stop(0);
    await service.stop();
  });

  /** Signs in and approves, as the redirected person. */
  const codeAt = async (sent: URL) => {
    const { fields, text: page } = await openPage(sent.href);
    const { headers } = await agree(service.url, fields, approver);
    return { code: new URL(headers.get('location')!).searchParams.get('code')!, page };
  };
  const connect = async (agent: Agent) => {
    const transport = new StreamableHTTPClientTransport(url, { authProvider: agent });
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(transport);
    return { client, transport };
  };
  const logIn = async (agent: Agent) => {
    const first = new StreamableHTTPClientTransport(url, { authProvider: agent });
    await assert.rejects(new Client({ name: 'test', version: '1.0.0' }).connect(first), UnauthorizedError);
    const { code, page } = await codeAt(agent.sent!);
    await first.finishAuth(code);
    return { page, ...(await connect(agent)) };
  };
  const call = async (key: string, address: string) =>
    (await fetch(address, { headers: { authorization: `Bearer ${key}` } })).status;

  it('gets a key for this server alone, with the least permissions, and uses it', async () => {
    const agent = new Agent(AGENT.id);
    const { client, page } = await logIn(agent);
    assert.equal(agent.sent!.searchParams.get('scope'), 'DOCKER:READ_ANY');
    assert.equal(agent.sent!.searchParams.get('resource'), url.href);
    assert.match(page, new RegExp(`Key valid for</dt><dd><code>${url.href}</code> only`));
    assert.deepEqual((await client.callTool({ name: 'read' })).content, [{ type: 'text', text: 'read done' }]);
    const key = agent.kept!.access_token;
    assert.deepEqual([agent.kept!.refresh_token, agent.kept!.expires_in], [undefined, undefined]);
    assert.equal(await call(key, `${guard.url}/api/x`), 401);
    assert.equal((await query(service.url, key, '{ online }')).status, 401);
    const { secret } = await createPrincipal(service.keys, { name: 'Server', permissions: ['API_KEY:READ_ANY'] });
    const headers = { authorization: `Bearer ${secret}` };
    const { body } = await postJson(`${service.url}/introspect`, { token: key }, headers);
    assert.deepEqual([body['active'], body['aud']], [true, url.href]);
  });

  it('refreshes its key, also where it asks twice at once, without its person', async () => {
    const agent = new Agent(LASTING.id);
    const { client } = await logIn(agent);
    const first = agent.kept!;
    assert.equal(first.expires_in, 3600);
    service.time.now += 3_600_000;
    await Promise.all([client.callTool({ name: 'read' }), client.callTool({ name: 'read' })]);
    assert.notEqual(agent.kept!.access_token, first.access_token);
    assert.equal(await call(first.access_token, `${guard.url}/mcp`), 401, 'it lasted an hour');
    assert.equal(await call(agent.kept!.access_token, `${guard.url}/mcp`), 405);
  });

  it('requests what it lacks in addition to what it has: its former key ends', async () => {
    const agent = new Agent(AGENT.id);
    const { client, transport } = await logIn(agent);
    const former = agent.kept!.access_token;
    await assert.rejects(client.callTool({ name: 'delete' }), UnauthorizedError);
    assert.match(agent.sent!.searchParams.get('scope')!, /^DOCKER:READ_ANY key:[0-9a-f-]{36} DOCKER:DELETE_ANY$/);
    const { code, page } = await codeAt(agent.sent!);
    assert.match(page, /Replaces<\/dt><dd>its key Agent \d{8} \w{6}, which will stop working/);
    await transport.finishAuth(code);
    await client.callTool({ name: 'delete' });
    await client.callTool({ name: 'read' });
    assert.equal(await call(former, url.href), 401);
  });

  it('registers itself, and is shown with its own description', async () => {
    const agent = new Agent(undefined);
    const { client, page } = await logIn(agent);
    assert.match(page, /Calls itself An Agent 1 0, but this was not checked/);
    await client.callTool({ name: 'read' });
    assert.equal(agent.kept!.expires_in, 3600);
  });

  it('finds the authorization server from guarded addresses, and nowhere else', async () => {
    const wellKnown = `${guard.url}/.well-known/oauth-protected-resource`;
    assert.deepEqual(await (await fetch(`${wellKnown}/mcp`)).json(), {
      resource: url.href,
      authorization_servers: [service.url],
      bearer_methods_supported: ['header'],
      scopes_supported: ['DOCKER:READ_ANY', 'DOCKER:DELETE_ANY'],
    });
    const challenge = async (path: string, key = 'x') =>
      (await fetch(guard.url + path, { headers: { authorization: `Bearer ${key}` } })).headers.get('www-authenticate');
    assert.equal(
      await challenge('/mcp'),
      `Bearer realm="svc-api", error="invalid_token", scope="DOCKER:READ_ANY", resource_metadata="${wellKnown}/mcp"`,
    );
    assert.match((await challenge('/api/containers/7'))!, new RegExp(`resource_metadata="${wellKnown}/api"$`));
    const { secret } = await createPrincipal(service.keys, { name: 'Other', permissions: ['VMS:READ_ANY'] });
    assert.match(
      (await challenge('/api/x', secret))!,
      /insufficient_scope", scope="DOCKER:READ_ANY", resource_metadata/,
    );
    for (const path of ['/mcp/', '/mcp?x=1', '/mcp/?x=1'])
      assert.equal(((await (await fetch(wellKnown + path)).json()) as { resource: string }).resource, url.href, path);
    for (const path of ['', '/', '/api/containers', '/mcpx', '/other'])
      assert.equal((await fetch(wellKnown + path)).status, 404, path);
    for (const path of ['oauth-authorization-server', 'oauth-authorization-server/mcp', 'openid-configuration'])
      for (const method of ['GET', 'HEAD']) {
        const response = await fetch(`${guard.url}/.well-known/${path}`, { method });
        assert.deepEqual([response.status, response.headers.get('www-authenticate')], [404, null], path);
        if (method === 'GET') assert.ok((await response.text()).includes(service.url));
      }
    assert.equal((await fetch(`${guard.url}/.well-known/other`)).status, 403);
    const { authorization_servers: own } = (await (
      await fetch(`${service.url}/.well-known/oauth-protected-resource/graphql`)
    ).json()) as { authorization_servers: string[] };
    assert.deepEqual(own, [service.url]);
    const graphql = await fetch(`${service.url}/graphql`, { method: 'POST' });
    assert.match(
      graphql.headers.get('www-authenticate')!,
      /resource_metadata="http:\S+\/oauth-protected-resource\/graphql"$/,
    );
  });

  it('gets no key for another address than it has asked for, nor by a token of another application', async () => {
    const agent = new Agent(LASTING.id);
    await logIn(agent);
    const refresh = (more: Record<string, string>) =>
      postJson(`${service.url}/oauth/token`, {
        grant_type: 'refresh_token',
        refresh_token: agent.kept!.refresh_token!,
        client_id: LASTING.id,
        ...more,
      });
    assert.equal((await refresh({ resource: `${guard.url}/api` })).body['error'], 'invalid_target');
    assert.equal((await refresh({ client_id: AGENT.id })).body['error'], 'invalid_grant');
    assert.equal((await refresh({ resource: 'file:///etc' })).body['error'], 'invalid_target');
    assert.equal((await refresh({ refresh_token: `${agent.kept!.refresh_token}x` })).body['error'], 'invalid_grant');
    assert.equal((await refresh({})).status, 200);
    const pkce = newPkce();
    agent.sent!.searchParams.set('code_challenge', pkce.challenge);
    const { code } = await codeAt(agent.sent!);
    const other = await exchange(service.url, code, pkce.verifier, {
      client_id: LASTING.id,
      redirect_uri: REDIRECT,
      resource: `${guard.url}/api`,
    });
    assert.equal(other.body['error'], 'invalid_target');
  });

  it('learns at a host that no route names that it has to be named', async () => {
    const raw = connectRaw(guard.url);
    raw.request('GET /.well-known/oauth-protected-resource/mcp HTTP/1.1', 'Host: files.example.org');
    await raw.receives('HTTP/1.1 404 Not Found');
    await raw.receives('host: files.example.org');
    assert.match(
      JSON.stringify(lines),
      /login not offered.*host: files\.example\.org|host: files\.example\.org.*login not offered/,
    );
    raw.socket.destroy();
  });

  it('learns where keys come from at the host of the service, also where no route names it', () => {
    const routes = byRoutes(createRouter([part('READ', 'read')]));
    const discovery = new Discovery(routes, 'https://keys.example.org/keys');
    const at = (host: string) => discovery.find({ scheme: 'https', host, method: 'POST', target: '/mcp' })?.metadata;
    assert.equal(at('keys.example.org'), 'https://keys.example.org/.well-known/oauth-protected-resource/mcp');
    for (const host of ['keys.example.org.evil.example', 'keys.example.org:8443']) assert.equal(at(host), undefined);
  });

  it('is not let in by a key for another host, even if a request named that host', async () => {
    const evil = `http://evil.example/mcp`;
    const pkce = newPkce();
    const query = { client_id: AGENT.id, redirect_uri: REDIRECT, scope: 'DOCKER:READ_ANY', resource: evil };
    const { code } = await codeAt(new URL(authorizeUrl(service.url, { ...query, code_challenge: pkce.challenge })));
    const at = { client_id: AGENT.id, redirect_uri: REDIRECT };
    const { body } = await exchange(service.url, code, pkce.verifier, at);
    const raw = connectRaw(guard.url);
    raw.request('GET /mcp HTTP/1.1', 'Host: evil.example', `Authorization: Bearer ${body['access_token'] as string}`);
    await raw.receives('HTTP/1.1 401 Unauthorized');
    raw.socket.destroy();
  });

  describe('and refreshes its key', () => {
    const MINUTE = 60_000;
    let agent: Agent;
    const refresh = (token: unknown) =>
      postJson(`${service.url}/oauth/token`, {
        grant_type: 'refresh_token',
        refresh_token: token as string,
        client_id: LASTING.id,
      });
    const replays = async () =>
      (await service.keys.audit.read({ first: 100 }, OPERATOR)).filter(({ action }) => action === 'CONSENT_REPLAY');
    beforeEach(async () => {
      agent = new Agent(LASTING.id);
      await logIn(agent);
    });

    it('gets the same pair again for half an hour, however often it asks', async () => {
      const { access_token: key, refresh_token: token } = agent.kept!;
      const pairs = await Promise.all(Array.from({ length: 5 }, () => refresh(token)));
      for (const { status, body } of pairs)
        assert.deepEqual([status, body['access_token'], body['refresh_token']], [200, key, token]);
      service.time.now += 30 * MINUTE - 1;
      const { body } = await refresh(token);
      assert.deepEqual([body['access_token'], body['expires_in']], [key, 1800]);
      assert.equal(await call(key, url.href), 405);
    });

    it('has each secret for as long as was said, also after the next refresh', async () => {
      let last = agent.kept! as unknown as Record<string, unknown>;
      for (const minutes of [30, 45, 59]) {
        service.time.now += minutes * MINUTE;
        const { body } = await refresh(last['refresh_token']);
        assert.notEqual(body['access_token'], last['access_token']);
        assert.equal(body['expires_in'], 3600);
        service.time.now += (60 - minutes) * MINUTE - 1000;
        assert.equal(await call(last['access_token'] as string, url.href), 405, `${minutes}`);
        service.time.now += 1000;
        assert.equal(await call(last['access_token'] as string, url.href), 401, `${minutes}`);
        assert.equal(await call(body['access_token'] as string, url.href), 405, `${minutes}`);
        service.time.now -= (60 - minutes) * MINUTE;
        last = body;
      }
    });

    it('by a token that was replaced, has the newest pair for half an hour', async () => {
      const first = agent.kept!.refresh_token!;
      service.time.now += 40 * MINUTE;
      const newest = (await refresh(first)).body;
      service.time.now += 30 * MINUTE - 1000;
      const again = await Promise.all([refresh(first), refresh(first), refresh(newest['refresh_token'])]);
      for (const { body } of again) assert.deepEqual(body, { ...newest, expires_in: 1801 });
      service.time.now += 1000;
      assert.deepEqual([(await refresh(first)).status, (await refresh(first)).body['error']], [400, 'invalid_grant']);
      assert.equal(await call(newest['access_token'] as string, url.href), 405);
      assert.equal((await refresh(newest['refresh_token'])).status, 200);
    });

    it('keeps it where an older token comes, which is noted once a day', async () => {
      const first = agent.kept!.refresh_token!;
      const [key] = (await service.keys.list({ search: 'Lasting' }, OPERATOR)).keys;
      let { body } = await refresh(first);
      for (let times = 0; times < 2; times += 1) {
        service.time.now += 60 * MINUTE;
        ({ body } = await refresh(body['refresh_token']));
      }
      for (let times = 0; times < 3; times += 1) assert.equal((await refresh(first)).body['error'], 'invalid_grant');
      assert.equal(await call(body['access_token'] as string, url.href), 405);
      const noted = await replays();
      assert.deepEqual(
        noted.map(({ apiKey, after }) => [apiKey?.id, after?.['client']]),
        [[key!.id, LASTING.id]],
      );
      service.time.now += 25 * 60 * MINUTE;
      await refresh(first);
      assert.equal((await replays()).length, 2);
    });

    it('has as long as svc-api.yaml says, and the leeway that it says', async () => {
      const refresh = { leeway: 0, lifetime: 100 * MINUTE };
      const other = await startServer(service.keys, { clients: [LASTING], config: { ...defaultConfig(), refresh } });
      const { verifier, challenge } = newPkce();
      const at = { client_id: LASTING.id, redirect_uri: REDIRECT };
      const code = await codeFor(other.url, approver, { ...at, scope: 'DOCKER:READ_ANY', code_challenge: challenge });
      const { body: first } = await exchange(other.url, code, verifier, at);
      const again = async (token: unknown) => {
        const form = { grant_type: 'refresh_token', refresh_token: token as string, client_id: LASTING.id };
        return (await postJson(`${other.url}/oauth/token`, form)).body;
      };
      assert.equal(first['expires_in'], 3600);
      service.time.now += 50 * MINUTE;
      const second = await again(first['refresh_token']);
      assert.equal(second['expires_in'], 3000);
      assert.equal((await again(first['refresh_token']))['error'], 'invalid_grant');
      assert.equal((await again(second['refresh_token']))['access_token'], second['access_token']);
      service.time.now += 50 * MINUTE;
      assert.equal((await again(second['refresh_token']))['error'], 'invalid_grant');
      await other.stop();
    });

    it('has no key after its secret was rotated by hand, nor while it is disabled', async () => {
      const { access_token: secret, refresh_token: token } = agent.kept!;
      const [{ id } = { id: '' }] = (await service.keys.list({ search: 'Agent' }, OPERATOR)).keys;
      await service.keys.setEnabled(id, false, OPERATOR);
      assert.equal((await refresh(token)).body['error'], 'invalid_grant');
      await service.keys.setEnabled(id, true, OPERATOR);
      assert.equal((await refresh(token)).status, 200);
      await service.keys.rotate(id, { grace: '0s' }, OPERATOR);
      assert.equal(await call(secret, url.href), 401);
      for (const minutes of [0, 40]) {
        service.time.now += minutes * MINUTE;
        assert.equal((await refresh(token)).body['error'], 'invalid_grant');
      }
      assert.equal((await replays()).length, 0);
    });
  });

  it('ends its key by the refresh token, too', async () => {
    const agent = new Agent(LASTING.id);
    await logIn(agent);
    const { status } = await postJson(`${service.url}/oauth/revoke`, {
      token: agent.kept!.refresh_token!,
      client_id: LASTING.id,
    });
    assert.equal(status, 200);
    assert.equal(await call(agent.kept!.access_token, url.href), 401);
  });
});
