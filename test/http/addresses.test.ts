import assert from 'node:assert/strict';
import { createPrincipal } from '../support/keys.ts';
import { startTestService, type TestService } from '../support/server.ts';

describe('the addresses of the server', () => {
  let test: TestService;
  let authorization: string;
  before(async () => {
    test = await startTestService();
    authorization = `Bearer ${(await createPrincipal(test.keys, { name: 'CI deploy', roles: ['ADMIN'] })).secret}`;
  });
  after(() => test.stop());
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(test.url + path, init);
    return { status: response.status, allow: response.headers.get('allow'), body: (await response.json()) as object };
  };
  const error = (message: string, code: string) => ({ errors: [{ message, extensions: { code } }] });

  it('show everyone that it is alive and ready, and nothing else', async () => {
    for (const path of ['/healthz', '/readyz'])
      assert.deepEqual(await ask(path), { status: 200, allow: null, body: { status: 'ok' } });
    for (const path of ['/healthz', '/readyz'])
      assert.equal((await fetch(test.url + path, { method: 'HEAD' })).status, 200);
  });

  it('serve GraphQL by POST and GET only', async () => {
    const body = error('Send GraphQL by POST. You can also send queries by GET.', 'METHOD_NOT_ALLOWED');
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      assert.deepEqual(
        await ask('/graphql?query={online}', { method, headers: { authorization } }),
        { status: 405, allow: 'GET, HEAD, POST', body },
        method,
      );
    }
  });

  it('are no others', async () => {
    const body = error('There is nothing at this address. GraphQL is at POST /graphql.', 'NOT_FOUND');
    for (const path of ['/index.html', '/graphql/', '/graphiql', '/healthz/x', '/..%2f..%2fetc/passwd']) {
      assert.deepEqual(await ask(path, { headers: { authorization } }), { status: 404, allow: null, body }, path);
    }
    assert.equal((await ask('/healthz', { method: 'POST' })).status, 404);
  });
});
