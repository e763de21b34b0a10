import assert from 'node:assert/strict';
import { getIntrospectionQuery } from 'graphql';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { startCounting, type WorkCounter } from '../support/work.ts';

/**
 * The maximum work for a document, relative to an introspection. Without limits it would be thousands of times as much.
 */
const MAX_RATIO = 10;

const ME = 'me { id }';
const fields = Array.from({ length: 10_000 }, (_, index) => `a${index}: online`).join(' ');
const doubling = Array.from(
  { length: 30 },
  (_, level) => `fragment F${level} on Query { ...F${level + 1} ...F${level + 1} }`,
).join(' ');
const spread = '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A online }';
const cycles = Array.from(
  { length: 90 },
  (_, index) => `fragment A${index} on Query { ...A${(index + 1) % 90} ...A${(index + 2) % 90} }`,
).join(' ');
/** Each is as deep as a document may be. */
const tower = Array.from(
  { length: 15 },
  (_, index) => `fragment T${index} on Query ${'{ ... '.repeat(90)}{ ...T${index + 1} }${'}'.repeat(90)}`,
).join(' ');
const introspect = (depth: number) =>
  `{ __schema { types { ${'fields { type { '.repeat(depth)} name ${'} } '.repeat(depth)} } } }`;

describe('a document', () => {
  let test: TestService;
  let secret: string;
  let id: string;
  /** The work for an introspection, in thousands of calls. */
  let introspection: number;
  let counter: WorkCounter;

  before(async () => {
    test = await startTestService();
    counter = await startCounting();
    const { secret: made, principal } = await createPrincipal(test.keys, { name: 'Reader', roles: ['ADMIN'] });
    secret = made;
    ({ id } = principal.apiKey);
    // The first run also loads modules.
    for (let time = 0; time < 2; time += 1)
      introspection = (await post('*/*', { query: getIntrospectionQuery() })).work;
  });
  after(async () => {
    await counter.stop();
    await test.stop();
  });
  afterEach('the server still answers', async () => {
    assert.deepEqual((await query(test.url, secret, `{ ${ME} }`)).body, { data: { me: { id } } });
  });

  async function post(accept: string, request: object) {
    const { count, result } = await counter.of(async () => {
      const response = await fetch(`${test.url}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', accept },
        body: JSON.stringify(request),
      });
      return { status: response.status, text: await response.text() };
    });
    return { ...result, work: count };
  }

  const refused: [what: string, request: object, code: string, says: RegExp][] = [
    ['with 10,000 aliases', { query: `{ ${fields} }` }, 'LIMIT_EXCEEDED', /more than 5000 tokens/],
    ['with 101 aliases', { query: `{ ${fields.split(' a101:')[0]} }` }, 'LIMIT_EXCEEDED', /more than 100 aliases/],
    ['with 1,001 fields', { query: `{ ${'online '.repeat(1001)}}` }, 'LIMIT_EXCEEDED', /more than 1000 fields/],
    [
      'with a name of 257 characters',
      { query: `{ ${'x'.repeat(257)} }` },
      'LIMIT_EXCEEDED',
      /more than 256 characters in a name/,
    ],
    [
      'nested 10,000 deep',
      { query: `${'{ me '.repeat(10_000)}${'}'.repeat(10_000)}` },
      'LIMIT_EXCEEDED',
      /more than 100 levels of nesting/,
    ],
    ['nested 21 deep', { query: introspect(10) }, 'LIMIT_EXCEEDED', /more than 20 levels of fields/],
    [
      'with lists 10,000 deep',
      { query: `{ apiKey(id: ${'['.repeat(10_000)}` },
      'LIMIT_EXCEEDED',
      /more than 100 levels of nesting/,
    ],
    [
      'with types of lists 10,000 deep',
      { query: `query($a: ${'['.repeat(10_000)}` },
      'LIMIT_EXCEEDED',
      /more than 100 levels of nesting/,
    ],
    [
      'with fragments that double',
      { query: `{ ...F0 } ${doubling} fragment F30 on Query { ${ME} }` },
      'LIMIT_EXCEEDED',
      /more than 1000 fields/,
    ],
    [
      'with 101 directives',
      { query: `{ online ${'@skip(if: false) '.repeat(101)} }` },
      'LIMIT_EXCEEDED',
      /more than 100 directives/,
    ],
    [
      'with fragments in a circle',
      { query: spread },
      'GRAPHQL_VALIDATION_FAILED',
      /Cannot spread fragment "A" within itself via "B"/,
    ],
    [
      'with fragments that nest 1,350 deep in one another',
      { query: `{ ...T0 } ${tower} fragment T15 on Query { online }` },
      'LIMIT_EXCEEDED',
      /more than 200 levels of nesting, with fragments expanded/,
    ],
    [
      'with a fragment of 1,000 fields that is not used',
      { query: `{ online } fragment A on Query { ${'online '.repeat(1000)} }` },
      'LIMIT_EXCEEDED',
      /more than 2500 pairs of fields with the same name in the same place/,
    ],
    ['that subscribes', { query: 'subscription { online }' }, 'BAD_REQUEST', /Subscriptions are not supported/],
    ['with a syntax error', { query: '{ online' }, 'GRAPHQL_PARSE_FAILED', /^Syntax Error: Expected Name, found <EOF>/],
    ['that is empty', { query: '' }, 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    ['of blanks and a comment', { query: ' # nothing ' }, 'GRAPHQL_PARSE_FAILED', /^Syntax Error/],
    [
      'with an unknown field',
      { query: '{ onlin }' },
      'GRAPHQL_VALIDATION_FAILED',
      /Cannot query field "onlin".*Did you mean "online"/,
    ],
    [
      'without the operation',
      { query: 'query A { online }', operationName: 'B' },
      'BAD_REQUEST',
      /no operation of that name/,
    ],
    ['of several operations', { query: 'query A { online } query B { online }' }, 'BAD_REQUEST', /several operations/],
    ['of fragments alone', { query: 'fragment A on Query { online }' }, '', /./],
    [
      'whose fragments contain one another in many ways',
      { query: `{ ...A0 nothing } ${cycles}` },
      'GRAPHQL_VALIDATION_FAILED',
      /Cannot spread fragment "A0" within itself/,
    ],
    ['that defines a type', { query: 'type A { b: Int } { online }' }, 'GRAPHQL_VALIDATION_FAILED', /not executable/],
    [
      'that lacks a variable',
      { query: 'query($id: ID!) { apiKey(id: $id) { id } }' },
      'GRAPHQL_VALIDATION_FAILED',
      /"\$id" of required type "ID!"/,
    ],
    [
      'with a variable of another type',
      { query: 'query($first: Int) { apiKeys(first: $first) { edges { cursor } } }', variables: { first: 'x' } },
      'GRAPHQL_VALIDATION_FAILED',
      /"\$first" got invalid value "x"/,
    ],
  ];
  for (const [what, request, code, says] of refused) {
    it(`${what} is refused, by status 400 in the newer media type, 200 in the older`, async () => {
      for (const [accept, expected] of [
        ['application/graphql-response+json', 400],
        ['application/json', 200],
      ] as const) {
        const { status, text, work } = await post(accept, request);
        const { errors, ...rest } = JSON.parse(text) as { errors: { message: string; extensions: { code: string } }[] };
        assert.match(errors[0]!.message, says);
        assert.deepEqual(
          [status, errors[0]!.extensions.code, rest],
          [expected, code || errors[0]!.extensions.code, {}],
        );
        assert.ok(work < MAX_RATIO * introspection, `${work} thousand calls, an introspection ${introspection}`);
        assert.doesNotMatch(text, /node_modules|\.js:|\.ts:| at \w/);
      }
    });
  }

  it('of many fragments on one type, as clients put together, is answered', async () => {
    const names = ['name', 'status', 'description'];
    const fragments = Array.from(
      { length: 60 },
      (_, index) =>
        `fragment F${index} on ApiKey { id ${names[index % 3]} __typename permissions { resource __typename } }`,
    );
    const document = `{ me { ${fragments.map((_, index) => `...F${index}`).join(' ')} } } ${fragments.join(' ')}`;
    const { body } = await query(test.url, secret, document);
    assert.equal(body.errors, undefined);
  });

  it('within the limits never takes long to check, whatever it contains', async () => {
    const deep = (depth: number, inner: string): string =>
      depth === 0 ? inner : `... on Query { ${deep(depth - 1, inner)} }`;
    const many = Array.from(
      { length: 240 },
      (_, index) => `fragment F${index} on Query { ...F${(index + 1) % 240} ...F${(index + 7) % 240} }`,
    );
    const documents = [
      `{ ${'online '.repeat(1000)} }`,
      `{ ${'me { id } '.repeat(500)} }`,
      `{ ${'apiKey(id: "a") { id } '.repeat(400)} }`,
      `{ ${'me { id } '.repeat(111)} }`,
      `{ ${'apiKeys { edges { node { id } } } '.repeat(79)} }`,
      `{ ${`previewPermissions(roles: [${'ADMIN '.repeat(60)}]) { resource } `.repeat(64)} }`,
      `{ ${'previewPermissions(roles: [ADMIN]) { resource } '.repeat(99)} }`,
      `{ ${'... { me { ... { id } } } '.repeat(300)} }`,
      `{ ${deep(95, 'online')} }`,
      `{ ...F0 } ${many.join(' ')}`,
      `{ ${'...A '.repeat(300)} } fragment A on Query { online me { id } }`,
      `{ ${'x '.repeat(1000)} }`,
      `query(${Array.from({ length: 900 }, (_, index) => `$v${index}: Int`).join(' ')}) { online }`,
      `{ ${'a'.repeat(500_000)} }`,
    ];
    for (const document of documents) {
      const { status, work, text } = await post('application/json', { query: document });
      assert.equal(status, 200);
      assert.ok(work < MAX_RATIO * introspection, `${work} thousand calls for ${document.slice(0, 60)}`);
      assert.ok(text.length < 1_100_000, `${text.length} characters for ${document.slice(0, 60)}`);
    }
  });

  it('is answered fast, however many of its variables are wrong', async () => {
    const wrong = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`x${index}`, 1]));
    const { text } = await post('application/json', {
      query: 'query($p: [PermissionInput!]) { previewPermissions(permissions: $p) { resource } }',
      variables: { p: [{ long: 'x'.repeat(900_000), ...wrong }] },
    });
    const { errors } = JSON.parse(text) as { errors: { message: string }[] };
    assert.match(
      errors[0]!.message,
      /^Variable "\$p" got invalid value { long: "x+….+; Field "resource" of required type "Resource!" was not provided\.$/,
    );
    assert.ok(text.length < 200_000, `${text.length} characters`);
  });

  it('gets less than 8 KB of errors, whatever is wrong with it, with the number of the others', async () => {
    const many = (count: number, part: (index: number) => string) =>
      Array.from({ length: count }, (_, index) => part(index)).join(' ');
    const texts = `"${'\u{1f511}'.repeat(900)}"`;
    const requests: Record<string, object> = {
      'unknown fields': { query: `{ ${many(300, (index) => `nothing${index}`)} }` },
      'unknown fields with long names': { query: `{ ${many(90, (index) => `n${index}${'x'.repeat(240)}`)} }` },
      'values of another type': {
        query: `{ ${many(50, (index) => `a${index}: apiKeys(first: ${texts}) { __typename }`)} }`,
      },
      'one that says all places': {
        query: `{ ${'...A '.repeat(90)} } ${many(40, () => 'fragment A on Query { online }')}`,
      },
      'fields that cannot be merged': { query: `{ ${many(60, (index) => `a: apiKey(id: "${index}") { id }`)} }` },
      'variables of another type': {
        query: 'query ($ids: [Int!]!) { me { id } apiKeys(first: $ids) { __typename } }',
        variables: { ids: Array.from({ length: 300 }, () => '\ud800'.repeat(1000)) },
      },
      'variables in a list': {
        query: 'mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted } }',
        variables: { ids: Array.from({ length: 300 }, () => ({ text: '\u0000'.repeat(1000) })) },
      },
    };
    for (const [what, request] of Object.entries(requests))
      for (const accept of ['application/json', 'application/graphql-response+json'])
        // Repeated documents are cached.
        for (let round = 0; round < 3; round += 1) {
          const response = await fetch(`${test.url}/graphql`, {
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', accept },
            body: JSON.stringify(request),
          });
          const body = await response.text();
          assert.ok(Buffer.byteLength(body) < 8192, `${what}: ${Buffer.byteLength(body)}`);
          const { errors, data } = JSON.parse(body) as {
            errors: { message: string; extensions: object }[];
            data?: null;
          };
          assert.ok(errors.length > 0 && data === undefined, `${what}: ${body}`);
          if (what !== 'unknown fields') continue;
          // graphql-js itself stops after 100.
          assert.equal(errors.at(-1)!.message, `There are ${101 - (errors.length - 1)} more errors.`);
          assert.deepEqual(errors.at(-1)!.extensions, { code: 'GRAPHQL_VALIDATION_FAILED' });
        }
  });

  it('that introspects beside other fields keeps the answers of the others', async () => {
    const guest = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    for (const document of [
      '{ __schema { queryType { name } } online info { name } }',
      '{ __type(name: "Query") { name } online info { name } }',
      '{ ... { ...A } } fragment A on Query { __typename online info { name } }',
    ]) {
      const { status, body } = await query(test.url, guest.secret, document);
      assert.deepEqual([status, body.data?.['online'], body.data?.['info']], [200, true, null]);
      assert.deepEqual(
        body.errors?.map(({ path }) => path),
        [['info']],
      );
    }
  });

  it('that holds a secret gets no error that shows it', async () => {
    for (const document of [
      `{ ${secret} }`,
      `{ apiKey(id: ${secret}) { id } }`,
      `{ online @${secret} }`,
      `{ ...${secret} }`,
    ]) {
      const { text } = await post('application/json', { query: document });
      assert.ok(text.includes(`svc_${secret.slice(4, 16)}_…`), text);
      assert.ok(!text.includes(secret.slice(17, 30)), text);
    }
  });
});
