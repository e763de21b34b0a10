import assert from 'node:assert/strict';
import { GraphQLScalarType } from 'graphql';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createApp } from '../../src/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

/** A permission that our own fields do not accept. */
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
      /the host declares the schema itself, whose root types are Query and Mutation/,
    ],
    [
      'a query type of its own in an extension of the schema',
      [part('extend schema { mutation: Open } type Open { a: Int }')],
      /the host declares the schema itself/,
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

  /** Fields that a host's part replaces, with its SDL and resolvers. */
  const replacing: [what: string, typeDefs: string, resolvers: object][] = [
    ['Query.me', '', { Query: { me: () => null } }],
    ['Mutation.deleteApiKeys', '', { Mutation: { deleteApiKeys: () => null } }],
    ['Query.__isTypeOf', '', { Query: { __isTypeOf: () => true } }],
    ['ApiKey.name', '', { ApiKey: { name: () => 'another' } }],
    ['ApiKey.permissions', '', { ApiKey: { permissions: { resolve: () => [] } } }],
    ['ApiKey.__isTypeOf', '', { ApiKey: { __isTypeOf: () => false } }],
    ['Node.__resolveType', '', { Node: { __resolveType: () => 'ApiKey' } }],
    ['Node.id', '', { Node: { id: () => 'x' } }],
    ['DateTime', '', { DateTime: new GraphQLScalarType({ name: 'DateTime', serialize: () => 'never' }) }],
    ['String', '', { String: { serialize: () => 'taken' } }],
    ['Resource', '', { Resource: { DISK: 'another value' } }],
    ['Role', '', { Role: { ADMIN: 'GUEST' } }],
    ['CreateApiKeyInput.name', '', { CreateApiKeyInput: { name: () => 'x' } }],
    ['ApiKey', 'type ApiKey { name: Int }', {}],
    ['ApiKey', 'type ApiKey { other: Int }', {}],
    ['ApiKey.name', 'extend type ApiKey { name: String! }', {}],
    ['ApiKey.name', 'extend type ApiKey { other: Int name: String! }', {}],
    ['ApiKey', `interface Named { name: String! ${WEAK} } extend type ApiKey implements Named`, {}],
    ['ApiKey', 'directive @hidden on OBJECT extend type ApiKey @hidden', {}],
    ['Node', 'interface Node { id: ID! }', {}],
    ['Node', 'extend interface Node { other: Int }', {}],
    ['Node', 'union Node = ApiKey', {}],
    ['Role', 'extend enum Role { ROOT }', {}],
    ['Role', 'enum Role { ADMIN ROOT }', {}],
    ['Resource', 'extend enum Resource { DISK_POOL }', {}],
    ['DateTime', 'scalar DateTime', {}],
    ['DateTime', 'extend scalar DateTime @specifiedBy(url: "https://example.org")', {}],
    ['Int', 'scalar Int', {}],
    ['CreateApiKeyInput', 'extend input CreateApiKeyInput { other: Int }', {}],
    ['PermissionInput', 'input PermissionInput { other: Int }', {}],
    ['@skip', 'directive @skip(if: Boolean!) on FIELD', {}],
    ['@deprecated', 'directive @deprecated(reason: String) on FIELD_DEFINITION', {}],
  ];
  for (const [what, typeDefs, resolvers] of replacing) {
    const how = typeDefs === '' ? 'resolvers' : `"${typeDefs}"`;
    it(`are not replaced: ${what} by ${how} is refused at the start, with the name of whose part it is`, async () => {
      const extensions = [{ ...part(typeDefs, resolvers), name: 'acme' }];
      await assert.rejects(createApp({ keys: test.keys, extensions }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'SCHEMA_INVALID', String(error));
        assert.match(error.message, new RegExp(`acme (declares|has a resolver of) ${what}, which is built in`));
        return true;
      });
    });
  }

  it('let a host add fields to a type of ours, with permissions of their own', async () => {
    const typeDefs = `
      type Backup { of: String! }
      extend type ApiKey { backups: [Backup!]! secretly: Int @requires(resource: DISK_POOL, action: READ_ANY) }
    `;
    const resolvers = { ApiKey: { backups: ({ name }: { name: string }) => [{ of: name }], secretly: () => 7 } };
    server = await startServer(test.keys, { extensions: [part(typeDefs, resolvers)] });
    const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    const { body } = await query(server.url, secret, '{ me { name backups { of } secretly } }');
    assert.deepEqual(body.data, { me: { name: 'Guest', backups: [{ of: 'Guest' }], secretly: null } });
    assert.deepEqual(
      body.errors?.map(({ path, extensions }) => [path, extensions['code']]),
      [[['me', 'secretly'], 'FORBIDDEN']],
    );
  });

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
        input: { id: principal.apiKey.id, permissions },
      });
    const disksOf = async () => (await query(url, secret, '{ disks }')).body.data;
    assert.deepEqual(await disksOf(), { disks: null });
    assert.equal((await update([{ resource: 'DISK_POOL', actions: ['READ_ANY'] }])).body.errors, undefined);
    assert.deepEqual(await disksOf(), { disks: 2 });
    assert.equal((await update([])).body.errors, undefined);
    assert.deepEqual(await disksOf(), { disks: null });
  });

  it('do not change a host type that implements Node', async () => {
    const nodes = part(`type Disk implements Node { id: ID! } extend type Query { nodes: [Node!]! ${WEAK} }`, {
      Query: {
        nodes: (_: unknown, __: unknown, { principal }: { principal: { apiKey: object } }) => [
          { __typename: 'Disk', id: 'sda' },
          principal.apiKey,
        ],
      },
    });
    server = await startServer(test.keys, { extensions: [nodes] });
    const { secret, principal } = await createPrincipal(test.keys, { name: 'Weak', permissions: ['WELCOME:READ_OWN'] });
    assert.deepEqual((await query(server.url, secret, '{ nodes { __typename id } }')).body, {
      data: {
        nodes: [
          { __typename: 'Disk', id: 'sda' },
          { __typename: 'ApiKey', id: principal.apiKey.id },
        ],
      },
    });
  });
});
