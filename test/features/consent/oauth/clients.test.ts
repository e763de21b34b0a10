import assert from 'node:assert/strict';
import {
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  type Client,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomState,
  None,
  processAuthorizationCodeResponse,
  processDeviceAuthorizationResponse,
  processDeviceCodeResponse,
  processDiscoveryResponse,
  processRevocationResponse,
  ResponseBodyError,
  revocationRequest,
  validateAuthResponse,
} from 'oauth4webapi';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { agree, APP, CALLBACK, openPage, startConsentService } from '../support/consent.ts';
import { describeOnEach } from '../../../support/dialects.ts';
import { createPrincipal } from '../../../support/keys.ts';
import { query, type TestService } from '../../../support/server.ts';

const INSECURE = { [allowInsecureRequests]: true };
const CLIENT: Client = { client_id: APP.id };

describeOnEach('a client of oauth4webapi', () => {
  let test: TestService;
  let approver: string;
  beforeEach(async () => {
    test = await startConsentService();
    const fields = { name: 'Anna', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'] };
    ({ secret: approver } = await createPrincipal(test.keys, fields));
  });
  afterEach(() => test.stop());

  /** Fetches the metadata (RFC 8414). */
  async function discover() {
    const issuer = new URL(test.url);
    const response = await discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE });
    return processDiscoveryResponse(issuer, response);
  }
  const whoIs = async (key: string) =>
    (await query(test.url, key, '{ me { name createdBy effectivePermissions { resource actions } } }')).body.data?.[
      'me'
    ];

  it('gets a key by a code that a person types', async () => {
    const server = await discover();
    const scope = { scope: 'DOCKER:READ_ANY role:GUEST', key_expires_in: '12h' };
    const asking = await deviceAuthorizationRequest(server, CLIENT, None(), scope, INSECURE);
    const device = await processDeviceAuthorizationResponse(server, CLIENT, asking);
    assert.deepEqual([device.expires_in, device.interval], [600, 5]);
    const poll = async () => {
      const response = await deviceCodeGrantRequest(server, CLIENT, None(), device.device_code, INSECURE);
      return processDeviceCodeResponse(server, CLIENT, response);
    };
    await assert.rejects(poll, (error: ResponseBodyError) => error.error === 'authorization_pending');
    await assert.rejects(poll, (error: ResponseBodyError) => error.error === 'slow_down');

    const page = await openPage(device.verification_uri_complete!);
    assert.match(page.text, /<h1>Grafana sync asks for an API key<\/h1>/);
    assert.equal((await agree(test.url, page.fields, approver)).status, 200);

    test.time.now += 10_000;
    const token = await poll();
    assert.deepEqual(
      [token.token_type, token.scope, token.expires_in],
      ['bearer', 'role:GUEST DOCKER:READ_ANY', 43_190],
    );
    const [anna] = (await test.keys.list({ search: 'Anna' }, OPERATOR)).keys;
    const me = (await whoIs(token.access_token)) as { name: string; createdBy: string };
    assert.match(me.name, /^Grafana sync 20300101 [B-Z]{6}$/);
    assert.equal(me.createdBy, anna!.id);

    const revoke = async () =>
      processRevocationResponse(await revocationRequest(server, CLIENT, None(), token.access_token, INSECURE));
    for (let times = 0; times < 2; times += 1) assert.equal(await revoke(), undefined);
    assert.deepEqual((await test.keys.list({ search: 'Grafana' }, OPERATOR)).keys, []);
    assert.equal((await query(test.url, token.access_token, '{ online }')).status, 401);
  });

  it('gets a key through the approval page, and learns which server gave it', async () => {
    const server = await discover();
    const [verifier, state] = [generateRandomCodeVerifier(), generateRandomState()];
    const address = new URL(server.authorization_endpoint!);
    address.search = new URLSearchParams({
      client_id: APP.id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'DOCKER:READ_ANY',
      state,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const { fields } = await openPage(address.href);
    const { status, headers } = await agree(test.url, fields, approver);
    assert.equal(status, 303);
    const back = validateAuthResponse(server, CLIENT, new URL(headers.get('location')!), state);
    const asking = await authorizationCodeGrantRequest(server, CLIENT, None(), back, CALLBACK, verifier, INSECURE);
    const token = await processAuthorizationCodeResponse(server, CLIENT, asking);
    const me = (await whoIs(token.access_token)) as { effectivePermissions: unknown };
    assert.equal(token.scope, 'DOCKER:READ_ANY');
    assert.equal(me, null, 'it may not even ask for itself');
  });
});
