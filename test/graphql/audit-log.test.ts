import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

const LOG = `query ($first: Int, $after: String, $key: String, $actor: String) {
  auditLog(first: $first, after: $after, apiKey: $key, actor: $actor) {
    edges { node { number action keyId keyName actor { kind keyId name } address changes { field before after } } }
    pageInfo { hasNextPage endCursor }
  }
}`;

interface Entry {
  number: number;
  action: string;
  keyId: string | null;
  keyName: string | null;
  actor: { kind: string; keyId: string | null; name: string | null };
  address: string | null;
  changes: { field: string; before: string | null; after: string | null }[];
}

interface Log {
  edges: { node: Entry }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

describeOnEach('the audit log over GraphQL', () => {
  let test: TestKeys;
  let server: TestServer;
  let own: { secret: string; principal: Principal };

  beforeEach(async () => {
    test = await openTestKeys();
    server = await startServer(test.keys);
    const { principal: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    own = await createPrincipal(
      test.keys,
      {
        name: 'Own',
        permissions: ['LOGS:READ_ANY', 'API_KEY:READ_OWN', 'API_KEY:CREATE_OWN', 'API_KEY:UPDATE_ANY', 'ME:READ_OWN'],
      },
      admin,
    );
    const input = { name: 'Child', permissions: ['ME:READ_OWN'] };
    const { apiKey: child } = await test.keys.create(input, own.principal);
    const { apiKey: other } = await test.keys.create({ name: 'Other', permissions: ['ME:READ_OWN'] }, OPERATOR);
    await test.keys.update(child.id, { description: 'by the operator' }, OPERATOR);
    await test.keys.update(other.id, { description: 'by Own' }, own.principal);
    await authenticate(test.keys, 'nonsense', '192.0.2.1');
    await test.keys.finishActivity();
  });
  afterEach(async () => {
    await server.stop();
    await test.store.close();
  });

  const read = async (secret: string, variables: Record<string, unknown> = {}): Promise<Log> => {
    const { body } = await query(server.url, secret, LOG, variables);
    assert.equal(body.errors, undefined);
    return body.data!['auditLog'] as Log;
  };
  const entries = async (secret: string, variables?: Record<string, unknown>) =>
    (await read(secret, variables)).edges.map(({ node }) => node);
  const shown = ({ number, action, keyName, actor }: Entry) => [number, action, keyName, actor.kind, actor.name];

  it('shows everything to a key that may read all keys', async () => {
    const { secret } = await createPrincipal(test.keys, {
      name: 'All',
      permissions: ['LOGS:READ_ANY', 'API_KEY:READ_ANY'],
    });
    const found = await entries(secret);
    assert.deepEqual(found.slice(1).map(shown), [
      [7, 'REFUSE', null, 'REQUEST', null],
      [6, 'UPDATE', 'Other', 'KEY', 'Own'],
      [5, 'UPDATE', 'Child', 'CLI', 'tester'],
      [4, 'CREATE', 'Other', 'CLI', 'tester'],
      [3, 'CREATE', 'Child', 'KEY', 'Own'],
      [2, 'CREATE', 'Own', 'KEY', 'Admin'],
      [1, 'CREATE', 'Admin', 'CLI', 'tester'],
    ]);
    assert.equal(found[1]!.address, '192.0.2.1');
  });

  it('shows a key with READ_OWN the entries about or by its own keys, and names no others', async () => {
    const found = await entries(own.secret);
    assert.deepEqual(found.map(shown), [
      [7, 'REFUSE', null, 'REQUEST', null],
      [6, 'UPDATE', null, 'KEY', 'Own'],
      [5, 'UPDATE', 'Child', 'CLI', null],
      [3, 'CREATE', 'Child', 'KEY', 'Own'],
      [2, 'CREATE', 'Own', 'KEY', null],
    ]);
    assert.deepEqual([found[1]!.keyId, found[1]!.changes, found[4]!.actor.keyId], [null, [], null]);
    const creatorIn = ({ changes }: Entry) => changes.find(({ field }) => field === 'createdBy')!.after;
    assert.deepEqual([creatorIn(found[3]!), creatorIn(found[4]!)], [`"${own.principal.apiKey.id}"`, 'null']);
  });

  it('shows a key that may read no other keys its own creation, and what concerns no key', async () => {
    const { secret: own } = await createPrincipal(test.keys, { name: 'Reader of itself', roles: ['VIEWER'] });
    assert.deepEqual((await entries(own)).map(shown), [
      [8, 'CREATE', 'Reader of itself', 'CLI', null],
      [7, 'REFUSE', null, 'REQUEST', null],
    ]);
    const { secret } = await createPrincipal(test.keys, { name: 'Reader of logs', permissions: ['LOGS:READ_ANY'] });
    assert.deepEqual((await entries(secret)).map(shown), [[7, 'REFUSE', null, 'REQUEST', null]]);
  });

  it('pages through the visible entries', async () => {
    const numbers: number[][] = [];
    let page: Log | undefined;
    do {
      page = await read(own.secret, { first: 2, after: page?.pageInfo.endCursor });
      numbers.push(page.edges.map(({ node }) => node.number));
    } while (page.pageInfo.hasNextPage);
    assert.deepEqual(numbers, [[7, 6], [5, 3], [2]]);
  });

  it('reveals no names through filters', async () => {
    const { secret: viewer } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    for (const filter of [{ key: 'Other' }, { key: 'Admin' }, { actor: 'tester' }, { actor: 'Admin' }])
      for (const secret of [own.secret, viewer])
        assert.deepEqual(await entries(secret, filter), [], JSON.stringify(filter));
    assert.deepEqual(
      (await entries(own.secret, { key: 'Child' })).map(({ number }) => number),
      [5, 3],
    );
    assert.deepEqual(
      (await entries(own.secret, { actor: 'Own' })).map(({ number }) => number),
      [6, 3],
    );
  });
});
