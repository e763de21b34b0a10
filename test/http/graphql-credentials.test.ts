import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { collectingLog } from '../support/log.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/server.ts';

const BODY = JSON.stringify({ query: '{ online info { name } }' });
const JSON_BODY = 'Content-Type: application/json';

/** Header lines that select an adapter, and the client's address. */
const ADAPTERS: [adapter: string, lines: string[], address: string][] = [
  ['by the adapter for Node', [JSON_BODY], '2001:db8::1'],
  ['by that for Hono', [JSON_BODY, 'Accept: */*', 'Accept: */*'], '192.0.2.1'],
];

describe('the GraphQL endpoint', () => {
  let test: TestService;
  let secret: string;
  const { log, lines } = collectingLog();
  before(async () => {
    const app = { credentials: ['bearer', { header: 'X-Api-Key' }, 'basic'] as const, trust: ['127.0.0.1/32'] };
    test = await startTestService({ app, log });
    ({ key: secret } = await test.keys.create({ name: 'Guest', roles: ['GUEST'] }, OPERATOR));
  });
  after(() => test.stop());

  for (const [adapter, more, address] of ADAPTERS) {
    const send = (headers: string[]) => sendRaw(test.url, rawPost([...headers, ...more], BODY));

    it(`accepts a key in each configured place, ${adapter}`, async () => {
      const basic = `Authorization: Basic ${Buffer.from(`x:${secret}`).toString('base64')}`;
      for (const header of [`Authorization: Bearer ${secret}`, `x-api-KEY: ${secret}`, basic])
        assert.match((await send([header])).body, /"online":true/, header);
    });

    it(`refuses several credentials, ${adapter}`, async () => {
      const bearer = `Authorization: Bearer ${secret}`;
      for (const other of [`X-Api-Key: ${secret}`, bearer, 'Authorization: Basic eDp5'])
        for (const headers of [
          [bearer, other],
          [other, bearer],
        ]) {
          const { status, headers: answered } = await send(headers);
          const challenge = 'Bearer realm="svc-api", error="invalid_request"';
          assert.deepEqual([status, answered.get('www-authenticate')], [400, challenge], headers.join());
        }
    });

    it(`takes the one credential that has the form of a key of ours, ${adapter}`, async () => {
      const bearer = `Authorization: Bearer ${secret}`;
      for (const other of ['X-Api-Key:', 'X-Api-Key: of-the-service'])
        assert.match((await send([bearer, other])).body, /"online":true/, other);
    });

    it(`logs the client's address as a trusted proxy gives it, ${adapter}`, async () => {
      lines.length = 0;
      const forwarded = `X-Forwarded-For: 6.6.6.6, ${address}`;
      await send(['X-Api-Key: nonsense', forwarded]);
      await send([`X-Api-Key: ${secret}`, forwarded]);
      assert.deepEqual(
        lines.map(({ fields, message }) => [message, (fields as { address: string }).address]),
        [
          ['key refused', address],
          ['request forbidden', address],
        ],
      );
    });
  }

  it("writes the client's address into the audit log", async () => {
    await test.keys.finishActivity();
    const entries = await test.keys.audit.read({}, OPERATOR);
    const refused = entries.filter(({ actor }) => actor.kind === 'REQUEST');
    const addresses = new Set(refused.map(({ address }) => address));
    assert.deepEqual(addresses, new Set(ADAPTERS.map(([, , address]) => address)));
  });
});
