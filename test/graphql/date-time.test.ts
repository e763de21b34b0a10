import assert from 'node:assert/strict';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const VALID = [
  '2030-12-31T23:59:59Z',
  '2030-12-31T23:59:59.5Z',
  '2030-12-31T23:59:59.123456789Z',
  '2030-12-31T23:59:59+05:45',
  '2030-12-31T23:59:59-23:59',
  '2030-12-31T23:59:59-00:00',
  '2032-02-29T00:00:00Z',
  '2030-12-31t23:59:59z',
];
const INVALID = [
  '',
  'now',
  '24h',
  '1924991999',
  '2030-12-31',
  '2030-12-31T23:59:59',
  '2030-12-31T23:59Z',
  '2030-12-31 23:59:59Z',
  ' 2030-12-31T23:59:59Z',
  '2030-12-31T23:59:59Z ',
  '2030-12-31T23:59:59Z\n',
  '2030-12-31T23:59:59,5Z',
  '2030-12-31T23:59:59.Z',
  '2030-12-31T23:59:60Z',
  '2030-12-31T24:00:00Z',
  '2030-12-31T23:60:00Z',
  '2030-02-30T00:00:00Z',
  '2031-02-29T00:00:00Z',
  '2030-13-01T00:00:00Z',
  '2030-00-01T00:00:00Z',
  '2030-12-31T23:59:59+24:00',
  '2030-12-31T23:59:59+05:60',
  '2030-12-31T23:59:59+0545',
  '2030-12-31T23:59:59+05',
  '20301231T235959Z',
  '+002030-12-31T23:59:59Z',
  '２030-12-31T23:59:59Z',
];

const LITERAL = '(at: DateTime): String @requires(resource: ME, action: READ_OWN)';
const extension: SchemaExtension = {
  typeDefs: `extend type Query { echo${LITERAL} returned(value: Float): DateTime @requires(resource: ME, action: READ_OWN) }`,
  resolvers: {
    Query: {
      echo: (_: unknown, { at }: { at?: string }) => at,
      returned: (_: unknown, { value }: { value: number | null }) => value ?? new Date(0),
    },
  },
};

describe('a DateTime', () => {
  let test: TestService;
  let secret: string;
  before(async () => {
    test = await startTestService({ extensions: [extension] });
    ({ secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => test.stop());

  /** The answers with a literal and with a variable. */
  const bothWays = (at: unknown) =>
    Promise.all([
      query(test.url, secret, `{ echo(at: ${JSON.stringify(at)}) }`),
      query(test.url, secret, 'query ($at: DateTime) { echo(at: $at) }', { at }),
    ]);

  it('is one of RFC 3339', async () => {
    for (const at of VALID)
      for (const { body } of await bothWays(at)) assert.deepEqual(body, { data: { echo: at } }, at);
  });

  it('accepts nothing else, and the error says what it is', async () => {
    for (const at of [...INVALID, 1924991999, 1.5, true, [], {}]) {
      for (const { body } of await bothWays(at)) {
        const [error] = body.errors ?? [];
        assert.deepEqual([body.data, error?.extensions['code']], [undefined, 'INPUT_INVALID'], JSON.stringify(at));
        assert.match(
          error!.message,
          /A DateTime must be an RFC 3339 date and time, such as "2030-12-31T23:59:59Z"\.( There is no day \S+: .*\.)?$/,
        );
      }
    }
  });

  it('is answered in UTC, from milliseconds or a Date of a host', async () => {
    const { body } = await query(test.url, secret, '{ date: returned number: returned(value: 1924991999999) }');
    assert.deepEqual(body, { data: { date: '1970-01-01T00:00:00.000Z', number: '2030-12-31T23:59:59.999Z' } });
  });

  it('is answered by an error where RFC 3339 has no text for it', async () => {
    for (const value of [300_000_000_000_000, -70_000_000_000_000, 1e300]) {
      const { body } = await query(test.url, secret, 'query ($value: Float) { returned(value: $value) }', { value });
      assert.deepEqual([body.data, body.errors![0]!.message], [{ returned: null }, 'Internal server error']);
    }
  });
});
