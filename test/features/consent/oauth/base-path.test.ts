import assert from 'node:assert/strict';
import type { Server } from 'node:net';
import { once } from 'node:events';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import {
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  deviceAuthorizationRequest,
  discoveryRequest,
  generateRandomCodeVerifier,
  None,
  processAuthorizationCodeResponse,
  processDeviceAuthorizationResponse,
  processDiscoveryResponse,
  validateAuthResponse,
} from 'oauth4webapi';
import { createApp, type CreateAppOptions } from '../../../../src/service/create-app.ts';
import { APP, CALLBACK, openPage, postForm } from '../support/consent.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../../support/keys.ts';
import { freePort } from '../../../support/port.ts';

const METADATA = '/.well-known/oauth-authorization-server';
const INSECURE = { [allowInsecureRequests]: true };
const CLIENT = { client_id: APP.id };

describe('the endpoints for applications, under a path of another app', () => {
  let test: TestKeys;
  let url: string;
  let port: number;
  let server: Server | undefined;
  beforeEach(async () => {
    test = await openTestKeys({ asServer: true, consent: 'both' });
    port = await freePort();
    url = `http://127.0.0.1:${port}`;
  });
  afterEach(async () => {
    server?.close();
    await test.store.close();
  });
  /** Starts another app that contains the service. */
  async function start(host: (app: Hono, service: Hono) => void, options: Partial<CreateAppOptions> = {}) {
    const app = new Hono();
    host(app, (await createApp({ keys: test.keys, clients: [APP], ...options })) as unknown as Hono);
    // Other tests in this process need Node's own Response.
    server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false });
    await once(server.listen(port, '127.0.0.1'), 'listening');
  }
  const metadata = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url + path, { headers });
    const body: unknown = response.ok ? await response.json() : await response.text();
    return { status: response.status, body: body as Record<string, unknown> };
  };
  const addresses = (issuer: string) => ({
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
  });

  it('are named with that path, also behind a proxy that is trusted', async () => {
    await start((app, service) => app.route('/api/keys', service));
    const { body } = await metadata(`/api/keys${METADATA}`);
    assert.deepEqual({ ...body, ...addresses(`${url}/api/keys`) }, body);
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'example.org' };
    const seen = await metadata(`/api/keys${METADATA}`, forwarded);
    assert.equal(seen.body['issuer'], 'https://example.org/api/keys');
    const encoded = await metadata(`/api/%6beys${METADATA}`);
    assert.equal(encoded.body['issuer'], `${url}/api/keys`);
  });

  it('lead a client of oauth4webapi all the way, which finds them where RFC 8414 has them', async () => {
    const publicUrl = `${url}/keys`;
    await start(
      (app, service) => {
        app.route('/keys', service);
        app.get(`${METADATA}/keys`, (c) => service.fetch(c.req.raw, c.env as object));
      },
      { publicUrl },
    );
    const issuer = new URL(publicUrl);
    const found = await discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE });
    assert.equal(found.url, `${url}${METADATA}/keys`);
    const as = await processDiscoveryResponse(issuer, found);
    const asking = await deviceAuthorizationRequest(as, CLIENT, None(), { scope: 'role:GUEST' }, INSECURE);
    const device = await processDeviceAuthorizationResponse(as, CLIENT, asking);
    assert.equal(device.verification_uri, `${publicUrl}/device`);
    const typed = await openPage(device.verification_uri_complete!);
    assert.match(typed.text, /action="device"/);

    const { secret: key } = await createPrincipal(test.keys, { name: 'Anna', roles: ['ADMIN'] });
    const verifier = generateRandomCodeVerifier();
    const address = new URL(as.authorization_endpoint!);
    address.search = new URLSearchParams({
      ...CLIENT,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'DOCKER:READ_ANY',
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const page = await openPage(address.href);
    const [, action] = /<form method="post" action="([^"]*)"/.exec(page.text)!;
    const form: [string, string][] = [...page.fields, ['key', key], ['decision', 'approve']];
    const foreign = await postForm(new URL(action!, address).href, form, { origin: 'http://evil.example' });
    assert.equal(foreign.status, 403);
    const { headers } = await postForm(new URL(action!, address).href, form, { origin: url });
    const back = validateAuthResponse(as, CLIENT, new URL(headers.get('location')!));
    const exchanged = await authorizationCodeGrantRequest(as, CLIENT, None(), back, CALLBACK, verifier, INSECURE);
    assert.equal((await processAuthorizationCodeResponse(as, CLIENT, exchanged)).scope, 'DOCKER:READ_ANY');
  });

  it('are named after publicUrl where another app or a proxy takes the path away', async () => {
    const publicUrl = 'https://example.org/keys';
    await start((app, service) => app.mount('/behind', service.fetch), { publicUrl });
    for (const path of [METADATA, `${METADATA}/keys`]) {
      const { body } = await metadata(`/behind${path}`);
      assert.deepEqual({ ...body, ...addresses(publicUrl) }, body);
    }
    for (const path of ['/other', '/keys/more', '/key', '/'])
      assert.equal((await metadata(`/behind${METADATA}${path}`)).status, 404, path);
  });

  it('are nowhere else without a path', async () => {
    await start((app, service) => app.route('/', service));
    assert.equal((await metadata(METADATA)).body['issuer'], url);
    for (const path of ['/keys', '/']) assert.equal((await metadata(METADATA + path)).status, 404, path);
  });
});
