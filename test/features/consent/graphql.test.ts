import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { APP, askDevice, authorizeUrl, openPage, pollDevice, startConsentService } from './support/consent.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, type TestService } from '../../support/server.ts';

describe('requests of applications, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let helper: string;
  beforeEach(async () => {
    test = await startConsentService();
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    const permissions = ['API_KEY:CREATE_OWN', 'DOCKER:READ_ANY'];
    ({ secret: helper } = await createPrincipal(test.keys, { name: 'Helper', permissions }));
  });
  afterEach(() => test.stop());

  const FIELDS = 'requestId flow clientId clientName roles permissions { resource actions } address status keyName';
  const ask = async (key: string, document: string, variables?: Record<string, unknown>) =>
    (await query(test.url, key, document, variables)).body;
  const approve = (key: string, input: object) =>
    ask(key, `mutation ($input: ApproveConsentRequestInput!) { approveConsentRequest(input: $input) { ${FIELDS} } }`, {
      input,
    });
  const codeOf = ({ errors }: Awaited<ReturnType<typeof ask>>) => errors?.[0]?.extensions['code'];

  it('are listed for API_KEY:CREATE_ANY, without what decides on them', async () => {
    await askDevice(test.url, { scope: 'role:GUEST DOCKER:READ_ANY' });
    test.time.now += 1;
    await openPage(authorizeUrl(test.url));
    const { data } = await ask(admin, `{ consentRequests { ${FIELDS} keyExpiresIn createdAt expiresAt } }`);
    const [device, redirect] = data!['consentRequests'] as Record<string, unknown>[];
    assert.deepEqual(
      { ...device, requestId: '' },
      {
        requestId: '',
        flow: 'DEVICE',
        clientId: APP.id,
        clientName: APP.name,
        roles: ['GUEST'],
        permissions: [{ resource: 'DOCKER', actions: ['READ_ANY'] }],
        address: '127.0.0.1',
        status: 'PENDING',
        keyName: null,
        keyExpiresIn: null,
        createdAt: '2030-01-01T00:00:00.000Z',
        expiresAt: '2030-01-01T00:10:00.000Z',
      },
    );
    assert.equal(redirect!['flow'], 'CODE');
    assert.equal(
      ((await ask(admin, '{ consentRequests(first: 1) { requestId } }')).data!['consentRequests'] as []).length,
      1,
    );
    assert.equal(codeOf(await ask(helper, '{ consentRequests { requestId } }')), 'FORBIDDEN');
    assert.equal(codeOf(await ask(admin, '{ consentRequests(first: 501) { requestId } }')), 'INPUT_INVALID');
  });

  it('are shown and approved by code, by keys that may create keys, and grant no more than the key holds', async () => {
    const { user_code: userCode, device_code: deviceCode } = await askDevice(test.url, {
      scope: 'role:GUEST DOCKER:READ_ANY',
    });
    const shown = await ask(helper, `query ($code: String!) { consentRequest(userCode: $code) { ${FIELDS} } }`, {
      code: userCode,
    });
    assert.equal((shown.data!['consentRequest'] as { clientName: string }).clientName, APP.name);
    assert.equal(codeOf(await approve(helper, { userCode })), 'FORBIDDEN', 'it does not hold GUEST');
    const permissions = [{ resource: 'DOCKER', actions: ['READ_OWN'] }];
    const { data } = await approve(helper, { userCode, permissions, expiresAt: '2030-01-02T00:00:00Z' });
    const request = data!['approveConsentRequest'] as { status: string; keyName: string };
    assert.equal(request.status, 'APPROVED');
    const { body } = await pollDevice(test.url, deviceCode);
    assert.deepEqual([body['scope'], body['expires_in']], ['DOCKER:READ_OWN', 86_400]);
    const list = '{ apiKeys(search: "Grafana sync") { edges { node { name createdBy description } } } }';
    const { edges } = (await ask(admin, list)).data!['apiKeys'] as { edges: { node: Record<string, unknown> }[] };
    assert.equal(edges[0]!.node['name'], request.keyName);
    assert.equal(codeOf(await approve(helper, { userCode })), 'REQUEST_DECIDED', 'it has its key');
    assert.equal(codeOf(await approve(helper, { userCode: 'WDJB-MJHT' })), 'NOT_FOUND');
    assert.equal(codeOf(await approve(helper, { userCode, roles: null })), 'INPUT_INVALID');
  });

  it('can be approved twice by the same key with the same grants, and show the grants', async () => {
    const { user_code: userCode } = await askDevice(test.url, { scope: 'DOCKER:READ_ANY INFO:READ_ANY' });
    const input = { userCode, permissions: [{ resource: 'DOCKER', actions: ['READ_ANY'] }], expiresIn: '1d' };
    const first = await approve(helper, input);
    test.time.now += 1000;
    assert.deepEqual(await approve(helper, input), first);
    const { id } = (await test.keys.findByName('Helper', OPERATOR))!;
    for (const other of [{ expiresIn: '2d' }, { expiresIn: undefined }, { permissions: undefined }])
      assert.notEqual(codeOf(await approve(helper, { ...input, ...other })), undefined);
    assert.equal(codeOf(await approve(admin, input)), 'REQUEST_DECIDED', 'of another key');
    const { key: secret } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    assert.equal(codeOf(await approve(secret, input)), 'REQUEST_DECIDED', 'of another secret, whose word would count');
    const shown = 'grants keyName keyGrants keyExpiresAt status';
    const { data } = await ask(
      secret,
      `query ($userCode: String) { consentRequest(userCode: $userCode) { ${shown} } }`,
      {
        userCode,
      },
    );
    const { keyName, ...rest } = data!['consentRequest'] as Record<string, unknown>;
    assert.match(keyName as string, /^Grafana sync/);
    assert.deepEqual(rest, {
      grants: ['DOCKER:READ_ANY', 'INFO:READ_ANY'],
      keyGrants: ['DOCKER:READ_ANY'],
      keyExpiresAt: '2030-01-02T00:00:00.000Z',
      status: 'APPROVED',
    });
    const { edges } = (await ask(admin, '{ auditLog(action: CONSENT_APPROVE) { edges { node { number } } } }')).data![
      'auditLog'
    ] as { edges: object[] };
    assert.equal(edges.length, 1);
  });

  it('are refused by their code, or by their id for API_KEY:CREATE_ANY', async () => {
    const deny = (key: string, variables: object) =>
      ask(
        key,
        'mutation ($userCode: String, $requestId: ID) {' +
          ' denyConsentRequest(userCode: $userCode, requestId: $requestId) { requestId status } }',
        { ...variables },
      );
    const first = await askDevice(test.url);
    const second = await askDevice(test.url);
    assert.equal(codeOf(await deny(helper, { requestId: 'x', userCode: first.user_code })), 'INPUT_INVALID');
    const { data } = await deny(helper, { userCode: first.user_code });
    assert.equal((data!['denyConsentRequest'] as { status: string }).status, 'DENIED');
    assert.deepEqual((await deny(helper, { userCode: first.user_code })).data, data, 'and stay so');
    assert.equal(codeOf(await approve(helper, { userCode: first.user_code })), 'REQUEST_DECIDED');
    const open = (await ask(admin, '{ consentRequests { requestId } }')).data!['consentRequests'] as {
      requestId: string;
    }[];
    assert.equal(open.length, 1);
    assert.equal(codeOf(await deny(helper, { requestId: open[0]!.requestId })), 'FORBIDDEN');
    assert.equal(codeOf(await deny(admin, { requestId: 'x' })), 'NOT_FOUND');
    assert.equal(codeOf(await deny(admin, { requestId: open[0]!.requestId })), undefined);
    for (const { device_code: code } of [first, second])
      assert.equal((await pollDevice(test.url, code)).body['error'], 'access_denied');
  });

  it('are not found by guessing: a key has ten tries a minute, the right one among them', async () => {
    const { user_code: right } = await askDevice(test.url);
    const codes = [];
    for (let count = 0; count < 11; count += 1) codes.push(codeOf(await approve(helper, { userCode: 'BBBBBBBB' })));
    assert.deepEqual(codes, [...Array<string>(10).fill('NOT_FOUND'), 'TOO_MANY_REQUESTS']);
    assert.equal(codeOf(await approve(helper, { userCode: right })), 'TOO_MANY_REQUESTS');
    assert.equal(codeOf(await approve(admin, { userCode: right })), undefined, 'another key is not held back');
  });
});
