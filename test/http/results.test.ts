import assert from 'node:assert/strict';
import { GraphQLError } from 'graphql';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const SECRET = 'hunter2';
const MAY = '@requires(resource: ME, action: READ_OWN)';

/** Fields that return a value of another type. */
const WRONG: Record<string, [type: string, value: unknown]> = {
  number: ['Int', SECRET],
  decimal: ['Float', SECRET],
  truth: ['Boolean', SECRET],
  text: ['String', { toString: null, SECRET }],
  role: ['Role', SECRET],
  date: ['DateTime', SECRET],
  list: ['[Int]', SECRET],
  entry: ['[Int]', [1, SECRET]],
  never: ['[Int!]!', [null]],
};

const typeDefs = `extend type Query {
  ${Object.entries(WRONG)
    .map(([name, [type]]) => `${name}: ${type} ${MAY}`)
    .join('\n')}
  returned: Int ${MAY}
  limited(first: Int! = 1): Int ${MAY}
}`;
const resolvers = {
  Query: {
    ...Object.fromEntries(Object.entries(WRONG).map(([name, [, value]]) => [name, () => value])),
    returned: () => new GraphQLError('There is no disk left.'),
    limited: () => 1,
  },
};

describeOnEach('a value that a host returns against its own schema', () => {
  let test: TestService;
  let secret: string;
  const { log, lines } = collectingLog();
  before(async () => {
    test = await startTestService({ extensions: [{ typeDefs, resolvers }], log });
    ({ secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => test.stop());

  for (const [name, [type]] of Object.entries(WRONG)) {
    it(`where ${type} is expected (${name}) is not shown to the client, but logged`, async () => {
      const { body } = await query(test.url, secret, `{ ${name} online }`);
      const { message, path, extensions } = body.errors![0]!;
      assert.deepEqual(
        [message, path![0], extensions['code']],
        ['Internal server error', name, 'INTERNAL_SERVER_ERROR'],
      );
      assert.doesNotMatch(JSON.stringify(body), new RegExp(SECRET));
      assert.equal(body.data?.['online'], true);
      assert.ok(
        lines.some(
          ({ level, fields }) =>
            level === 'error' && 'requestId' in fields && fields.requestId === extensions['requestId'],
        ),
      );
    });
  }

  it('keeps its text when it is an error meant for the client', async () => {
    const { body } = await query(test.url, secret, '{ returned }');
    assert.equal(body.errors![0]!.message, 'There is no disk left.');
  });

  it("is not confused with a client's violation of the schema", async () => {
    const { body } = await query(test.url, secret, 'query ($first: Int) { limited(first: $first) }', { first: null });
    assert.match(body.errors![0]!.message, /Argument "first" of non-null type "Int!" must not be null/);
    assert.equal(body.errors![0]!.extensions['code'], 'BAD_REQUEST');
  });
});
