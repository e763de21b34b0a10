import assert from 'node:assert/strict';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createApp } from '../../src/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

/** A permission that opens nothing of ours. */
const WEAK = '@requires(resource: WELCOME, action: READ_OWN)';
const part = (typeDefs: string, resolvers = {}): SchemaExtension => ({ typeDefs, resolvers });

describe("the guards of the schema, against a host's part", () => {
  let test: TestKeys;
  let server: TestServer | undefined;

  beforeEach(async () => {
    test = await openTestKeys({ resources: ['DISK_POOL'] });
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    await test.store.close();
  });

  const refused: [what: string, extensions: SchemaExtension[], says: RegExp][] = [
    [
      'a field of ours with a weaker permission',
      [part(`extend type Query { info: Info! ${WEAK} }`)],
      /Query\.info must be declared only once/,
    ],
    ['the same in a type of the same name', [part(`type Query { info: Info! ${WEAK} }`)], /Query\.info must/],
    ['the same where it may be null', [part(`extend type Query { info: Info ${WEAK} }`)], /Query\.info must/],
    [
      'several of ours',
      [part(`extend type Query { me: ApiKey! ${WEAK} info: Info! ${WEAK} }`)],
      /Query\.me, Query\.info must/,
    ],
    [
      'a mutation of ours',
      [part(`extend type Mutation { deleteApiKeys(ids: [ID!]!): DeletedApiKeys! ${WEAK} }`)],
      /Mutation\.deleteApiKeys must/,
    ],
    [
      'a field of another host',
      [
        part('extend type Query { disks: Int @requires(resource: DISK_POOL, action: READ_ANY) }'),
        part(`extend type Query { disks: Int ${WEAK} }`),
      ],
      /Query\.disks must/,
    ],
    [
      'two permissions on one field',
      [part(`extend type Query { a: Int ${WEAK} @requires(resource: DISK, action: READ_ANY) }`)],
      /@requires/,
    ],
    [
      'a query type of its own whose fields are open',
      [part('schema { query: Open } type Open { a: Int }')],
      /Open\.a must carry @requires/,
    ],
    [
      'a subscription type of another name',
      [part(`extend schema { subscription: Events } type Events { a: Int ${WEAK} }`)],
      /subscriptions/,
    ],
  ];
  for (const [what, extensions, says] of refused) {
    it(`are not lowered by ${what}: it is refused at the start`, async () => {
      await assert.rejects(createApp({ keys: test.keys, extensions }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'SCHEMA_INVALID', String(error));
        assert.match(error.message, says);
        return true;
      });
    });
  }

  it('let several hosts share a type, and accept an empty extension', async () => {
    const shared = 'type Disk { name: String! }';
    server = await startServer(test.keys, {
      extensions: [
        part(`${shared} extend type Query { first: Disk! ${WEAK} }`, { Query: { first: () => ({ name: 'sda' }) } }),
        part(`${shared} extend type Query { second: Disk! ${WEAK} }`, { Query: { second: () => ({ name: 'sdb' }) } }),
        part(''),
        { typeDefs: [], resolvers: {} },
      ],
    });
    const { secret } = await createPrincipal(test.keys, { name: 'Weak', permissions: ['WELCOME:READ_OWN'] });
    const { body } = await query(server.url, secret, '{ first { name } second { name } }');
    assert.deepEqual(body, { data: { first: { name: 'sda' }, second: { name: 'sdb' } } });
  });

  it('open a host field to a key that was granted its resource over GraphQL, from the next request on', async () => {
    const disks = part('extend type Query { disks: Int! @requires(resource: DISK_POOL, action: READ_ANY) }', {
      Query: { disks: () => 2 },
    });
    server = await startServer(test.keys, { extensions: [disks] });
    const admin = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const { secret, principal } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    const { url } = server;
    const update = (permissions: object[]) =>
      query(url, admin.secret, 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }', {
        input: { id: principal.key.id, permissions },
      });
    const disksOf = async () => (await query(url, secret, '{ disks }')).body.data;
    assert.deepEqual(await disksOf(), { disks: null });
    assert.equal((await update([{ resource: 'DISK_POOL', actions: ['READ_ANY'] }])).body.errors, undefined);
    assert.deepEqual(await disksOf(), { disks: 2 });
    assert.equal((await update([])).body.errors, undefined);
    assert.deepEqual(await disksOf(), { disks: null });
  });

  it('leave a host type that is a Node what it is', async () => {
    const nodes = part(`type Disk implements Node { id: ID! } extend type Query { nodes: [Node!]! ${WEAK} }`, {
      Query: {
        nodes: (_: unknown, __: unknown, { principal }: { principal: { key: object } }) => [
          { __typename: 'Disk', id: 'sda' },
          principal.key,
        ],
      },
    });
    server = await startServer(test.keys, { extensions: [nodes] });
    const { secret, principal } = await createPrincipal(test.keys, { name: 'Weak', permissions: ['WELCOME:READ_OWN'] });
    assert.deepEqual((await query(server.url, secret, '{ nodes { __typename id } }')).body, {
      data: {
        nodes: [
          { __typename: 'Disk', id: 'sda' },
          { __typename: 'ApiKey', id: principal.key.id },
        ],
      },
    });
  });
});
