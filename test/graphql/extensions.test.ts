import assert from 'node:assert/strict';
import { GraphQLError, parse } from 'graphql';
import type { GraphQLContext } from '../../src/graphql/context.ts';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createApp } from '../../src/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

const typeDefs = `
  "A disk."
  type Disk { "Its name." name: String! "Who asks." asker: String! }
  extend type Query { "All disks." disks: [Disk!]! @requires(resource: DISK_POOL, action: READ_ANY) }
  extend type Mutation { "Empties a disk." empty(name: String!): Boolean! @requires(resource: DISK_POOL, action: DELETE_OWN) }
`;
const emptied: string[] = [];
const resolvers = {
  Query: { disks: () => [{ name: 'sda' }] },
  Disk: {
    asker: (_: unknown, __: unknown, { principal, request }: GraphQLContext) =>
      `${principal.apiKey.name} by ${request.method}`,
  },
  Mutation: {
    empty: (_: unknown, { name }: { name: string }) => {
      if (name === 'none') throw new GraphQLError('There is no such disk.', { extensions: { code: 'NO_DISK' } });
      return emptied.push(name) > 0;
    },
  },
};

describe("a host's part of the schema", () => {
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

  it('answers keys with its permissions, beside the built-in schema', async () => {
    server = await startServer(test.keys, { extensions: [{ typeDefs, resolvers, resources: ['DISK_POOL'] }] });
    const disks = await createPrincipal(test.keys, {
      name: 'Disks',
      permissions: ['DISK_POOL:READ_ANY', 'DISK_POOL:DELETE_ANY'],
    });
    const { body } = await query(server.url, disks.secret, '{ disks { name asker } online }');
    assert.deepEqual(body.data, { disks: [{ name: 'sda', asker: 'Disks by POST' }], online: null });
    const changed = await query(server.url, disks.secret, 'mutation { a: empty(name: "sda") b: empty(name: "none") }');
    assert.deepEqual(changed.body.data, { a: true, b: null });
    assert.deepEqual(
      changed.body.errors?.map(({ message, path, extensions }) => ({ message, path, extensions })),
      [{ message: 'There is no such disk.', path: ['b'], extensions: { code: 'NO_DISK' } }],
    );
  });

  it('refuses keys without them, before its resolvers run', async () => {
    server = await startServer(test.keys, { extensions: [{ typeDefs, resolvers }] });
    emptied.length = 0;
    const guest = await createPrincipal(test.keys, {
      name: 'Guest',
      roles: ['GUEST'],
      permissions: ['DISK_POOL:READ_OWN'],
    });
    const { url } = server;
    const refusals = async (document: string) =>
      (await query(url, guest.secret, document)).body.errors?.map(({ path, extensions }) => [path, extensions]);
    assert.deepEqual(await refusals('{ disks { name } }'), [
      [['disks'], { code: 'FORBIDDEN', missing: ['DISK_POOL:READ_ANY'] }],
    ]);
    assert.deepEqual(await refusals('mutation { empty(name: "sda") }'), [
      [['empty'], { code: 'FORBIDDEN', missing: ['DISK_POOL:DELETE_OWN'] }],
    ]);
    assert.deepEqual(emptied, []);
    const viewer = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    assert.deepEqual((await query(server.url, viewer.secret, '{ disks { name } }')).body, {
      data: { disks: [{ name: 'sda' }] },
    });
  });

  it('has its resolvers loaded once, when the app is made, where they are a function', async () => {
    let loaded = 0;
    const load = async () => {
      loaded += 1;
      return resolvers;
    };
    server = await startServer(test.keys, { extensions: [{ typeDefs, resolvers: load }] });
    assert.equal(loaded, 1);
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    for (let request = 0; request < 3; request += 1) {
      assert.deepEqual(
        (await query(server.url, secret, '{ disks { name } __schema { queryType { name } } }')).body.data?.['disks'],
        [{ name: 'sda' }],
      );
    }
    assert.equal(loaded, 1);
  });

  const own = (text: string): SchemaExtension => ({ typeDefs: `extend type Query { ${text} }`, resolvers: {} });
  const bad: [what: string, extensions: SchemaExtension[], says: RegExp][] = [
    ['a root field that asks for no permission', [own('open: Int')], /Query\.open must carry @requires/],
    [
      'several of them',
      [own('open: Int wide: Int'), { typeDefs: 'extend type Mutation { do: Int }', resolvers: {} }],
      /Query\.open, Query\.wide, Mutation\.do must/,
    ],
    ['a resource that nobody named', [own('a: Int @requires(resource: TAPE, action: READ_ANY)')], /TAPE/],
    ['an action that there is not', [own('a: Int @requires(resource: DISK, action: FORMAT)')], /FORMAT/],
    ['a permission without its action', [own('a: Int @requires(resource: DISK)')], /action/],
    ['SDL that is none', [{ typeDefs: 'type {', resolvers: {} }], /Syntax Error/],
    ['a type that there is not', [own('a: Tape @requires(resource: DISK, action: READ_ANY)')], /"Tape"/],
    [
      'resolvers for a field that there is not',
      [{ typeDefs, resolvers: { Query: { tapes: () => [] } } }],
      /Query\.tapes/,
    ],
    [
      'subscriptions',
      [{ typeDefs: 'type Subscription { a: Int @requires(resource: DISK, action: READ_ANY) }', resolvers: {} }],
      /subscriptions/,
    ],
    ['a root field of ours again', [own('me: Int @requires(resource: ME, action: READ_OWN)')], /me/],
    [
      'SDL that is none, with the name of whose it is',
      [{ name: 'acme-tapes', typeDefs: 'type {' }],
      /The typeDefs of acme-tapes are invalid: Syntax Error/,
    ],
    [
      'resolvers that are a list',
      [{ typeDefs, resolvers: [resolvers] as never }],
      /resolvers of the host must be one object/,
    ],
    [
      'resolvers that do not load',
      [{ typeDefs, resolvers: () => Promise.reject(new Error('there is no such module')) }],
      /there is no such module/,
    ],
  ];
  for (const [what, extensions, says] of bad) {
    it(`is refused at the start with ${what}`, async () => {
      await assert.rejects(createApp({ keys: test.keys, extensions }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'SCHEMA_INVALID', String(error));
        assert.match(error.message, says);
        return true;
      });
    });
  }

  it('may be nothing but resources, and SDL that is parsed already', async () => {
    const extensions = [{ resources: ['DISK_POOL'] }, { typeDefs: [parse(typeDefs)], resolvers }, {}];
    server = await startServer(test.keys, { extensions });
    const { secret } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    assert.deepEqual((await query(server.url, secret, '{ disks { name } }')).body.data, { disks: [{ name: 'sda' }] });
  });
});
