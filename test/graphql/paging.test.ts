import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

interface Connection {
  edges: { node: { name: string }; cursor: string }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
}

const DOCUMENT = `query ($first: Int, $after: String, $search: String) {
  apiKeys(first: $first, after: $after, search: $search) {
    edges { node { name } cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

describeOnEach('apiKeys', () => {
  let test: TestService;
  let secret: string;

  before(async () => {
    test = await startTestService();
    ({ secret } = await createPrincipal(test.keys, { name: 'Key 0', permissions: ['API_KEY:READ_ANY'] }));
    // Some in the same millisecond, since the order must hold among them, too.
    for (let index = 1; index < 60; index += 1) {
      test.time.now += index % 2;
      await test.keys.create(
        { name: `Key ${index}`, description: index === 7 ? 'Lucky 100%_' : null, roles: ['GUEST'] },
        OPERATOR,
      );
    }
  });
  after(() => test.stop());

  const ask = (variables: Record<string, unknown>) => query(test.url, secret, DOCUMENT, variables);
  async function page(variables: Record<string, unknown>): Promise<Connection> {
    const { body } = await ask(variables);
    assert.equal(body.errors, undefined);
    return body.data!['apiKeys'] as Connection;
  }
  const names = ({ edges }: Connection) => edges.map(({ node }) => node.name);

  it('returns 50 by default, and says that more follow', async () => {
    const { edges, pageInfo } = await page({});
    assert.equal(edges.length, 50);
    assert.deepEqual(pageInfo, {
      hasNextPage: true,
      hasPreviousPage: false,
      startCursor: edges[0]!.cursor,
      endCursor: edges[49]!.cursor,
    });
  });

  it('returns each key once over all pages, in the same order for every page size', async () => {
    const all = names(await page({ first: 500 }));
    assert.deepEqual(new Set(all), new Set(Array.from({ length: 60 }, (_, index) => `Key ${index}`)));
    assert.equal(all[0], 'Key 0');
    for (const first of [1, 7, 30, 60]) {
      const found: string[] = [];
      for (let after: string | null = null, more = true; more;) {
        const next: Connection = await page({ first, after });
        found.push(...names(next));
        ({ endCursor: after, hasNextPage: more } = next.pageInfo);
      }
      assert.deepEqual(found, all);
    }
  });

  it('continues after a key that was deleted', async () => {
    const { edges } = await page({ first: 500 });
    const { apiKey: key } = await test.keys.create({ name: 'Passing', roles: ['GUEST'] }, OPERATOR);
    const { pageInfo } = await page({ search: 'Passing' });
    await test.keys.delete([key.id], OPERATOR);
    test.time.now += 1;
    await test.keys.create({ name: 'Key later', roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(names(await page({ after: pageInfo.endCursor })).at(-1), 'Key later');
    assert.equal((await page({ first: 500 })).edges.length, edges.length + 1);
  });

  it('returns an empty page for 0, and after the last key', async () => {
    const empty = { hasPreviousPage: false, startCursor: null, endCursor: null };
    assert.deepEqual(await page({ first: 0 }), { edges: [], pageInfo: { ...empty, hasNextPage: true } });
    const { pageInfo } = await page({ first: 500 });
    assert.deepEqual(await page({ after: pageInfo.endCursor }), {
      edges: [],
      pageInfo: { ...empty, hasNextPage: false },
    });
  });

  it('refuses pages of more than 500 or fewer than 0 keys, and foreign cursors', async () => {
    const bad: [variables: Record<string, unknown>, message: string][] = [
      [{ first: 501 }, '"first" is 501; a page has 0 to 500 keys.'],
      [{ first: 2_147_483_647 }, '"first" is 2147483647; a page has 0 to 500 keys.'],
      [{ first: -1 }, '"first" is -1; a page has 0 to 500 keys.'],
      ...['x', '0', 'MTox', 'A'.repeat(5000)].map((after): [Record<string, unknown>, string] => [
        { after },
        '"after" is not a cursor of this list. Use an endCursor that it returned.',
      ]),
      [{ search: 'Key\0' }, '"Key<U+0000>" must not contain U+0000.'],
    ];
    for (const [variables, message] of bad) {
      const { body } = await ask(variables);
      assert.deepEqual(
        body.errors?.map((error) => [error.message, error.path, error.extensions]),
        [[message, ['apiKeys'], { code: 'INPUT_INVALID' }]],
      );
      assert.deepEqual(body.data, { apiKeys: null });
    }
  });

  it('finds a part of the name or the description, case-insensitively, and takes no character as a pattern', async () => {
    assert.deepEqual(names(await page({ search: 'key 11' })), ['Key 11']);
    assert.deepEqual(names(await page({ search: 'LUCKY' })), ['Key 7']);
    assert.deepEqual(names(await page({ search: '100%_' })), ['Key 7']);
    for (const search of ['%', '_']) assert.deepEqual(names(await page({ search })), ['Key 7']);
    for (const search of ["' OR 1=1 --", 'Key*', '\\']) assert.deepEqual(names(await page({ search })), [], search);
    assert.equal((await page({ search: '' })).edges.length, 50);
  });
});
