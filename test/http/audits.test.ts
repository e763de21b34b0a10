import assert from 'node:assert/strict';
import { serverAudits } from 'graphql-http';
import { createPrincipal } from '../support/keys.ts';
import { startTestService, type TestService } from '../support/server.ts';

describe('GraphQL over HTTP, by the audits of graphql-http', () => {
  let test: TestService;
  let secret: string;
  before(async () => {
    test = await startTestService();
    ({ secret } = await createPrincipal(test.keys, { name: 'Audit', roles: ['GUEST'] }));
  });
  after(() => test.stop());

  const audits = serverAudits({
    url: () => `${test.url}/graphql`,
    fetchFn: (url: string, init: RequestInit = {}) => {
      const headers = new Headers(init.headers);
      headers.set('authorization', `Bearer ${secret}`);
      return fetch(url, { ...init, headers });
    },
  });
  for (const audit of audits) {
    it(`${audit.id} ${audit.name}`, async () => {
      const result = await audit.fn();
      assert.equal(result.status, 'ok', 'reason' in result ? result.reason : '');
    });
  }

  it('are all 61 of them', () => assert.equal(audits.length, 61));
});
