import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client/core';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { Client, fetchExchange } from '@urql/core';
import { persistedExchange } from '@urql/exchange-persisted';
import { createPrincipal } from '../support/keys.ts';
import { startTestService, type TestService } from '../support/server.ts';

const QUERY = 'query Find($name: String) { apiKey(name: $name) { id name } }';

describe('a client that first asks by the hash of its query', () => {
  let test: TestService;
  let headers: { authorization: string };
  /** The method of each request, and whether it contained a query. */
  let sent: string[];

  before(async () => {
    test = await startTestService();
    headers = {
      authorization: `Bearer ${(await createPrincipal(test.keys, { name: 'Page', roles: ['ADMIN'] })).secret}`,
    };
  });
  beforeEach(() => (sent = []));
  after(() => test.stop());

  const observed: typeof fetch = async (url, init) => {
    const isInUrl = new URL(url).searchParams.has('query');
    const hasQuery = isInUrl || (init?.body as string | undefined)?.includes('"query"');
    sent.push(`${init?.method} ${hasQuery ? 'query' : 'hash'}`);
    return fetch(url, init);
  };

  for (const useGETForHashedQueries of [true, false]) {
    it(`by Apollo Client, hashes by ${useGETForHashedQueries ? 'GET' : 'POST'}, sends it whole then, and never asks so again`, async () => {
      const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
      const http = new HttpLink({ uri: `${test.url}/graphql`, headers, fetch: observed });
      const link = new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(http);
      const client = new ApolloClient({ link, cache: new InMemoryCache() });
      for (const name of ['Page', 'Nobody']) {
        const { data } = await client.query({ query: gql(QUERY), variables: { name } });
        assert.equal((data as { apiKey: { name: string } | null }).apiKey?.name, name === 'Page' ? 'Page' : undefined);
      }
      const first = useGETForHashedQueries ? 'GET hash' : 'POST hash';
      assert.deepEqual(sent, [first, 'POST query', 'POST query']);
      client.stop();
    });
  }

  it('by urql sends it whole then', async () => {
    const client = new Client({
      url: `${test.url}/graphql`,
      exchanges: [persistedExchange({ preferGetForPersistedQueries: true }), fetchExchange],
      fetchOptions: { headers },
      fetch: observed,
    });
    const { data, error } = await client.query(QUERY, { name: 'Page' }).toPromise();
    assert.deepEqual([error, (data as { apiKey: { name: string } }).apiKey.name], [undefined, 'Page']);
    assert.deepEqual(sent, ['GET hash', 'GET query']);
  });

  it('gets an error by GET and POST, in both media types', async () => {
    const extensions = { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } };
    const search = new URLSearchParams({ operationName: 'Find', extensions: JSON.stringify(extensions) }).toString();
    for (const [accept, status] of [
      ['application/json', 200],
      ['application/graphql-response+json', 400],
    ] as const) {
      const init = { headers: { ...headers, accept, 'content-type': 'application/json' } };
      const body = JSON.stringify({ extensions });
      for (const response of [
        await fetch(`${test.url}/graphql?${search}`, init),
        await fetch(`${test.url}/graphql`, { ...init, method: 'POST', body }),
      ]) {
        const code = 'PERSISTED_QUERY_NOT_SUPPORTED';
        assert.deepEqual(
          [response.status, await response.json()],
          [status, { errors: [{ message: 'PersistedQueryNotSupported', extensions: { code } }] }],
        );
      }
    }
  });
});

describe('a client by urql', () => {
  it('queries by GET unless configured otherwise, and mutates by POST', async () => {
    const test = await startTestService();
    const { secret } = await createPrincipal(test.keys, { name: 'Page', roles: ['ADMIN'] });
    const methods: unknown[] = [];
    const client = new Client({
      url: `${test.url}/graphql`,
      exchanges: [fetchExchange],
      fetchOptions: { headers: { authorization: `Bearer ${secret}` } },
      fetch: (url, init) => {
        methods.push(init?.method);
        return fetch(url, init);
      },
    });
    const read = await client.query(QUERY, { name: 'Page' }).toPromise();
    assert.equal((read.data as { apiKey: { name: string } }).apiKey.name, 'Page');
    const removed = await client.mutation('mutation { deleteApiKeys(ids: []) { deleted } }', {}).toPromise();
    assert.deepEqual([removed.error, methods], [undefined, ['GET', 'POST']]);
    await test.stop();
  });
});
