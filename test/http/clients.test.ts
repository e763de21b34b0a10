import assert from 'node:assert/strict';
import { ClientError, GraphQLClient } from 'graphql-request';
import { Hono } from 'hono';
import { bearerAuth } from '../../src/index.ts';
import { openKeys } from '../../src/service/open-keys.ts';
import { authenticate, createPrincipal } from '../support/keys.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { tempStore } from '../support/temp.ts';

describe('a client by graphql-request', () => {
  let test: TestService;
  let client: GraphQLClient;
  before(async () => {
    test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    client = new GraphQLClient(`${test.url}/graphql`, { headers: { authorization: `Bearer ${secret}` } });
  });
  after(() => test.stop());

  it('queries, with variables', async () => {
    const reply = await client.request('query ($name: String) { apiKey(name: $name) { name roles } }', {
      name: 'Admin',
    });
    assert.deepEqual(reply, { apiKey: { name: 'Admin', roles: ['ADMIN'] } });
  });

  it('mutates', async () => {
    const document = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { name } } }';
    const reply = await client.request<{ createApiKey: { key: string; apiKey: object } }>(document, {
      input: { name: 'Made', roles: ['GUEST'] },
    });
    assert.deepEqual(reply.createApiKey.apiKey, { name: 'Made' });
    assert.ok('principal' in (await authenticate(test.keys, reply.createApiKey.key)));
  });

  it('gets errors that it understands', async () => {
    await assert.rejects(
      client.request('{ nonsense }'),
      (error: ClientError) => error.response.errors?.[0]?.extensions['code'] === 'GRAPHQL_VALIDATION_FAILED',
    );
    const stranger = new GraphQLClient(`${test.url}/graphql`);
    await assert.rejects(stranger.request('{ online }'), (error: ClientError) => error.response.status === 401);
  });
});

describe('bearerAuth in an app of its own', () => {
  it('guards it by a permission', async () => {
    const keys = await openKeys({ database: tempStore() });
    const may = await keys.create({ name: 'May', permissions: ['DOCKER:READ_ANY'] }, 'operator');
    const mayNot = await keys.create({ name: 'May not', roles: ['GUEST'] }, 'operator');
    const app = new Hono()
      .use(bearerAuth({ keys, permission: 'DOCKER:READ_OWN', realm: 'containers' }))
      .get('/', (c) => c.text(c.get('principal').apiKey.name));
    const ask = (secret: string) => app.request('/', { headers: { authorization: `Bearer ${secret}` } });
    assert.equal(await (await ask(may.key)).text(), 'May');
    const refused = await ask(mayNot.key);
    assert.equal(refused.status, 403);
    assert.equal(
      refused.headers.get('www-authenticate'),
      'Bearer realm="containers", error="insufficient_scope", scope="DOCKER:READ_OWN"',
    );
    assert.equal((await app.request('/')).headers.get('www-authenticate'), 'Bearer realm="containers"');
    await keys.close();
  });
});
