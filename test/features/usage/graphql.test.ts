import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const FIELDS = '{ start accepted forbidden limited refused }';

describeOnEach('the use of a key by the hour, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let used: { secret: string; id: string };
  beforeEach(async () => {
    test = await startTestService();
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Used', roles: ['GUEST'] }, OPERATOR);
    used = { secret, id: key.id };
    for (const hours of [0, 1, 24]) {
      test.time.now = Date.UTC(2030, 0, 1, hours);
      await query(test.url, secret, '{ online }');
      if (hours === 1) await query(test.url, secret, '{ info { name } }');
    }
    await test.keys.finishActivity();
  });
  afterEach(() => test.stop());
  const usage = async (args: string, secret = admin, key = '(name: "Used")') => {
    const { body } = await query(test.url, secret, `{ apiKey${key} { name usage${args} ${FIELDS} } }`);
    const { data, errors } = body as { data: { apiKey: { name: string; usage: object[] } | null }; errors?: object[] };
    return { ...data, errors };
  };
  const at = (start: string, accepted: number, forbidden = 0) => ({
    start,
    accepted,
    forbidden,
    limited: 0,
    refused: 0,
  });

  it('is that of the last 24 hours by default', async () => {
    const { apiKey } = await usage('');
    assert.deepEqual(apiKey?.usage, [at('2030-01-01T01:00:00.000Z', 1, 1), at('2030-01-02T00:00:00.000Z', 1)]);
  });

  it('is that of hours and days from a time on, and up to another', async () => {
    for (const [args, expected] of [
      ['(from: "2030-01-01T00:30:00Z", to: "2030-01-01T01:00:00Z")', [at('2030-01-01T00:00:00.000Z', 1)]],
      ['(by: DAY)', [at('2030-01-01T00:00:00.000Z', 2, 1), at('2030-01-02T00:00:00.000Z', 1)]],
      ['(by: DAY, from: "2030-01-02T12:00:00Z", to: null)', [at('2030-01-02T00:00:00.000Z', 1)]],
      ['(by: null, from: null, to: "2029-12-31T00:00:00Z")', []],
    ] as const)
      assert.deepEqual((await usage(args)).apiKey?.usage, expected, args);
  });

  it('is refused with a code for a time that is no longer kept, and the other fields answer', async () => {
    const { apiKey, errors } = await usage('(from: "2029-01-01T00:00:00Z")');
    assert.deepEqual(apiKey, { name: 'Used', usage: null });
    assert.deepEqual(errors, [
      {
        message:
          '"2029-01-01T00:00:00Z" is too early: hours are kept for 90 days, since 2029-10-04T00:00:00.000Z. ' +
          'Ask by day, or for a later time.',
        path: ['apiKey', 'usage'],
        locations: [{ line: 1, column: 31 }],
        extensions: { code: 'INPUT_INVALID' },
      },
    ]);
  });

  it('is shown to callers that may read the key, including the key itself', async () => {
    const own = await createPrincipal(test.keys, { name: 'Own', permissions: ['ME:READ_OWN', 'API_KEY:READ_OWN'] });
    const { body } = await query(test.url, own.secret, `{ me { usage ${FIELDS} } }`);
    assert.deepEqual(body, { data: { me: { usage: [] } } });
    assert.deepEqual((await usage('', own.secret)).apiKey, null);
    assert.deepEqual((await usage('', used.secret)).apiKey, null);
  });

  it('of many keys is bounded by its cost, and by the size of the answer', async () => {
    const page = (args: string, first: number) =>
      `{ apiKeys(first: ${first}) { edges { node { usage${args} ${FIELDS} } } } }`;
    const codeOf = async (document: string) =>
      (await query(test.url, admin, document)).body.errors?.map(({ extensions }) => extensions['code']);
    assert.deepEqual(await codeOf(page('', 100)), undefined);
    assert.deepEqual(await codeOf(page('', 500)), ['COST_EXCEEDED']);
    assert.deepEqual(await codeOf(page('(from: "2029-12-01T00:00:00Z")', 25)), undefined);
    assert.deepEqual(await codeOf(page('(from: "2029-12-01T00:00:00Z")', 100)), ['COST_EXCEEDED']);
  });
});
