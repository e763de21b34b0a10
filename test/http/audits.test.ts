import assert from 'node:assert/strict';
import { serverAudits } from 'graphql-http';
import { createPrincipal } from '../support/keys.ts';
import { startTestService, type TestService } from '../support/server.ts';

/** GET may be refused: these audits of a MAY are notices then. */
const ABOUT_GET = new Set(['5A70', 'D6D5', '6A70']);

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
      const expected = ABOUT_GET.has(audit.id) ? 'notice' : 'ok';
      assert.equal(result.status, expected, 'reason' in result ? result.reason : '');
    });
  }
});
