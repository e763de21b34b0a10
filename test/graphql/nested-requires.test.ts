import assert from 'node:assert/strict';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createApp } from '../../src/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

const OPEN = '@requires(resource: WELCOME, action: READ_OWN)';
const DISK = '@requires(resource: DISK, action: READ_ANY)';
const LOGS = '@requires(resource: LOGS, action: READ_ANY)';

/** Must stay empty: a resolved value behind a guard would leak. */
let resolved: string[];
const reveal = (what: string) => {
  resolved.push(what);
  return what;
};

const extension: SchemaExtension = {
  typeDefs: `
    interface Labelled { label: String ${DISK} }
    interface Stored implements Labelled { label: String size: String ${LOGS} }
    type Disk implements Labelled & Stored { label: String size: String ${DISK} secret: String ${DISK} call: String ${DISK} open: String inner: Disk }
    type Tape implements Labelled { label: String ${LOGS} }
    union Medium = Disk | Tape
    extend type ApiKey { note: String ${DISK} }
    extend type Query { disk: Disk ${OPEN} disks: [Disk!] ${OPEN} labelled: Labelled ${OPEN} tape: Tape ${OPEN} medium: Medium ${OPEN} }
  `,
  resolvers: {
    Query: {
      disk: () => disk(),
      disks: () => [disk(), disk()],
      labelled: () => ({ kind: 'Disk', ...disk() }),
      tape: () => ({ label: () => reveal('tape') }),
      medium: () => ({ kind: 'Disk', ...disk() }),
    },
    Disk: { secret: () => reveal('secret'), inner: () => disk() },
    ApiKey: { note: () => reveal('note') },
    Labelled: { __resolveType: ({ kind }: { kind: string }) => kind, label: () => reveal('inherited') },
    Stored: { __resolveType: ({ kind }: { kind: string }) => kind },
    Medium: { __resolveType: ({ kind }: { kind: string }) => kind },
  },
};

function disk(): object {
  return { label: 'label', size: () => reveal('size'), call: () => reveal('call'), open: 'open' };
}

describe('@requires', () => {
  let test: TestKeys;
  let server: TestServer;
  let secret: string;

  beforeEach(async () => {
    resolved = [];
    test = await openTestKeys();
    server = await startServer(test.keys, { extensions: [extension] });
    ({ secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  afterEach(async () => {
    await server.stop();
    await test.store.close();
  });

  const refused: [where: string, document: string, path: (string | number)[], missing: string][] = [
    ['a nested field', '{ disk { secret } }', ['disk', 'secret'], 'DISK:READ_ANY'],
    ['a field of a list', '{ disks { open secret } }', ['disks', 0, 'secret'], 'DISK:READ_ANY'],
    [
      'a field deeper down',
      '{ disk { inner { inner { secret } } } }',
      ['disk', 'inner', 'inner', 'secret'],
      'DISK:READ_ANY',
    ],
    ['a field without a resolver', '{ disk { a: label } }', ['disk', 'a'], 'DISK:READ_ANY'],
    ['a function as a property', '{ disk { call } }', ['disk', 'call'], 'DISK:READ_ANY'],
    ['a field of an interface', '{ labelled { label } }', ['labelled', 'label'], 'DISK:READ_ANY'],
    [
      'a field of an interface, by its type',
      '{ labelled { ... on Disk { label } } }',
      ['labelled', 'label'],
      'DISK:READ_ANY',
    ],
    ['a member of a union', '{ medium { ... on Disk { secret } } }', ['medium', 'secret'], 'DISK:READ_ANY'],
    ['a field that extends a type of ours', '{ me { note } }', ['me', 'note'], 'DISK:READ_ANY'],
    ['the same in a fragment', '{ me { ...A } } fragment A on ApiKey { note }', ['me', 'note'], 'DISK:READ_ANY'],
  ];
  for (const [where, document, path, missing] of refused) {
    it(`is enforced on ${where}, by both executors`, async () => {
      for (let time = 0; time < 4; time += 1) {
        const { body } = await query(server.url, secret, document);
        const { extensions, path: found } = body.errors![0]!;
        assert.deepEqual([found, extensions], [path, { code: 'FORBIDDEN', missing: [missing] }]);
        assert.deepEqual(resolved, []);
      }
      const { secret: other } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
      for (let time = 0; time < 4; time += 1)
        assert.equal((await query(server.url, other, document)).body.errors, undefined);
    });
  }

  it('leaves the fields beside it open', async () => {
    const { body } = await query(server.url, secret, '{ disk { open secret } me { id note } }');
    assert.deepEqual(body.data?.['disk'], { open: 'open', secret: null });
    assert.deepEqual(
      body.errors?.map(({ path }) => path),
      [
        ['disk', 'secret'],
        ['me', 'note'],
      ],
    );
  });

  it('of a type and of its interfaces must all be met', async () => {
    const some = await createPrincipal(test.keys, { name: 'Some', permissions: ['WELCOME:READ_OWN', 'DISK:READ_ANY'] });
    const all = await createPrincipal(test.keys, {
      name: 'All',
      permissions: ['WELCOME:READ_OWN', 'DISK:READ_ANY', 'LOGS:READ_ANY'],
    });
    for (const document of ['{ disk { size } }', '{ tape { label } }']) {
      const { errors } = (await query(server.url, some.secret, document)).body;
      assert.deepEqual(errors?.[0]?.extensions, { code: 'FORBIDDEN', missing: ['LOGS:READ_ANY'] });
      assert.equal((await query(server.url, all.secret, document)).body.errors, undefined);
    }
  });

  const field = `a(x: Int): Int ${OPEN}`;
  const bad: [where: string, typeDefs: string | string[], says: RegExp][] = [
    [
      'a field of an input',
      `input In { a: Int ${DISK} } extend type Query { ${field} }`,
      /@requires on In\.a cannot be enforced/,
    ],
    [
      'an argument',
      `extend type Query { a(x: Int ${DISK}): Int ${OPEN} }`,
      /@requires on Query\.a\.x cannot be enforced/,
    ],
    ['an object type', `type Disk ${DISK} { a: Int } extend type Query { ${field} }`, /@requires on Disk cannot/],
    ['an interface', `interface Disk ${DISK} { a: Int } extend type Query { ${field} }`, /@requires on Disk cannot/],
    ['a union', `type A { a: Int } union U ${DISK} = A extend type Query { ${field} }`, /@requires on U cannot/],
    ['an enum', `enum E ${DISK} { A } extend type Query { ${field} }`, /@requires on E cannot/],
    ['a value of an enum', `enum E { A ${DISK} } extend type Query { ${field} }`, /@requires on E\.A cannot/],
    ['a scalar', `scalar S ${DISK} extend type Query { ${field} }`, /@requires on S cannot/],
    [
      'an extension of our types',
      `extend type ApiKey ${DISK} extend type Query { ${field} }`,
      /@requires on ApiKey cannot/,
    ],
    ['the schema', `extend schema ${DISK} extend type Query { ${field} }`, /@requires on the schema cannot/],
    ['an argument of a directive', `directive @d(x: Int ${DISK}) on FIELD_DEFINITION`, /@requires on d\.x cannot/],
    [
      'a place that the part itself allows',
      `directive @requires(resource: Resource!, action: AuthAction!) on OBJECT | FIELD_DEFINITION`,
      /@requires must not be declared again/,
    ],
    [
      'one of two declarations of a field',
      [`type Disk { a: Int ${DISK} }`, 'type Disk { a: Int }'],
      /Disk\.a must be declared only once/,
    ],
    [
      'two declarations that differ',
      [`type Disk { a: Int ${DISK} }`, `extend type Disk { a: Int ${OPEN} }`],
      /Disk\.a must be declared only once/,
    ],
    ['a nested field, twice', `type Disk { a: Int ${DISK} ${OPEN} }`, /@requires/],
    [
      'a nested field, with a resource that there is not',
      'type Disk { a: Int @requires(resource: TAPE, action: READ_ANY) }',
      /TAPE/,
    ],
  ];
  for (const [where, typeDefs, says] of bad) {
    it(`on ${where} is refused at the start`, async () => {
      const extensions = [{ typeDefs, resolvers: {} }];
      await assert.rejects(createApp({ keys: test.keys, extensions }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'SCHEMA_INVALID', String(error));
        assert.match(error.message, says);
        return true;
      });
    });
  }
});
