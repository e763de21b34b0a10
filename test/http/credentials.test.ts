import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/server.ts';

const BODY = JSON.stringify({ query: '{ online }' });
const JSON_BODY = 'Content-Type: application/json';
const REALM = 'Bearer realm="svc-api"';

describeOnEach('the Authorization header', () => {
  let test: TestService;
  let secret: string;

  before(async () => {
    test = await startTestService();
    ({ key: secret } = await test.keys.create({ name: 'Reader', roles: ['GUEST'] }, OPERATOR));
  });
  after(() => test.stop());

  const send = (headers: string[]) =>
    sendRaw(test.url, rawPost([...headers.map((line) => line.replaceAll(/\bKEY/g, secret)), JSON_BODY], BODY));

  for (const value of ['Bearer KEY', 'bearer KEY', 'BEARER KEY', 'bEaReR   KEY', 'Bearer KEY  ']) {
    it(`is accepted: ${value}`, async () => {
      const { status, body } = await send([`Authorization: ${value}`]);
      assert.deepEqual([status, body], [200, '{"data":{"online":true}}']);
    });
  }

  const none = [
    [],
    ['Authorization: Basic x'],
    ['Authorization: Digest username="a, b c", realm="r", nc = 1'],
    ['X-API-Key: KEY'],
  ];
  for (const headers of none) {
    it(`counts as no credentials: ${headers.join() || 'no header'}`, async () => {
      const { status, headers: answered, body } = await send(headers);
      assert.deepEqual([status, answered.get('www-authenticate')], [401, REALM]);
      assert.deepEqual(JSON.parse(body), {
        errors: [
          {
            message: 'Missing API key: send it as "Authorization: Bearer <API key>".',
            extensions: { code: 'UNAUTHENTICATED' },
          },
        ],
      });
      assert.deepEqual([answered.get('cache-control'), answered.get('content-type')], ['no-store', 'application/json']);
    });
  }

  const malformed = [
    ['Authorization: Bearer KEY', 'Authorization: Bearer KEY'],
    ['Authorization: Bearer KEY', 'authorization: Basic x'],
    ['Authorization: Basic x', 'Authorization: Bearer KEY'],
    ['Authorization: Basic x', 'Authorization: Basic y'],
    ['Authorization: Basic x', 'Authorization: Bearer  KEY'],
    ['Authorization: Basic x', 'Authorization:'],
    ['Authorization:', 'Authorization: Bearer KEY'],
    ['Authorization: Bearer KEY, Bearer KEY'],
    ['Authorization: Bearer'],
    ['Authorization: Bearer KEY KEY'],
    ['Authorization: Bearer\tKEY'],
    ['Authorization: BearerKEY'],
    ['Authorization: KEY'],
    ['Authorization:'],
    ['Authorization: Bearer schl\u00fcssel'],
    ['Authorization: \u00fc x'],
  ];
  for (const headers of malformed) {
    it(`is malformed: ${headers.join(' + ')}`, async () => {
      const { status, headers: answered, body } = await send(headers);
      assert.deepEqual([status, answered.get('www-authenticate')], [400, `${REALM}, error="invalid_request"`]);
      assert.deepEqual(JSON.parse(body), {
        errors: [
          {
            message: 'The Authorization header is malformed: send exactly one, as "Bearer <API key>".',
            extensions: { code: 'INVALID_REQUEST' },
          },
        ],
      });
      assert.deepEqual([answered.get('cache-control'), answered.get('content-type')], ['no-store', 'application/json']);
    });
  }

  it('is an invalid token where it is very long', async () => {
    const { status, headers } = await send([`Authorization: Bearer KEY${'a'.repeat(12_000)}`]);
    assert.deepEqual([status, headers.get('www-authenticate')], [401, `${REALM}, error="invalid_token"`]);
  });

  it('is the only place where a key is read', async () => {
    const form = new URLSearchParams({ access_token: secret });
    const requests: [string, RequestInit][] = [
      [`?access_token=${secret}&key=${secret}`, {}],
      ['', { body: JSON.stringify({ query: '{ online }', access_token: secret, key: secret }) }],
      ['', { body: form, headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
      ['', { headers: { 'content-type': 'application/json', cookie: `access_token=${secret}`, 'x-api-key': secret } }],
    ];
    for (const [search, init] of requests) {
      const response = await fetch(`${test.url}/graphql${search}`, {
        method: 'POST',
        body: BODY,
        headers: { 'content-type': 'application/json' },
        ...init,
      });
      assert.deepEqual([response.status, response.headers.get('www-authenticate')], [401, REALM]);
    }
  });

  it('is required for every method', async () => {
    for (const [method, status] of [
      ['GET', 200],
      ['HEAD', 200],
      ['PUT', 405],
      ['DELETE', 405],
      ['PATCH', 405],
      ['OPTIONS', 405],
    ] as const) {
      const address = `${test.url}/graphql?query={online}`;
      assert.equal((await fetch(address, { method })).status, 401);
      const response = await fetch(address, { method, headers: { authorization: `Bearer ${secret}` } });
      assert.equal(response.status, status);
    }
  });
});
