import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const HELD = { limits: ['100/m', '5/month'], allowFrom: ['10.0.0.0/8', '2001:db8::/32'] };

describe('limits and networks over GraphQL', () => {
  let test: TestService;
  let admin: string;
  before(async () => {
    test = await startTestService();
    admin = (await test.keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR)).key;
  });
  after(() => test.stop());
  const ask = async (document: string, variables: object = {}) => {
    const { body } = await query(test.url, admin, document, variables as Record<string, unknown>);
    return { data: body.data as Record<string, never> | null, errors: body.errors };
  };
  const create = (input: object) =>
    ask('mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id limits allowFrom } } }', {
      input: { roles: ['GUEST'], ...input },
    });
  const update = (input: object) =>
    ask('mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { limits allowFrom } }', { input });

  it('are set, changed and removed', async () => {
    const written = { limits: ['5/month', '100 / m'], allowFrom: ['10.0.0.0/8', '2001:DB8::/32'] };
    const { data } = await create({ name: 'Key', ...written });
    const { createApiKey } = data as unknown as { createApiKey: { apiKey: { id: string } } };
    const { id, ...held } = createApiKey.apiKey;
    assert.deepEqual(held, HELD);
    assert.deepEqual((await update({ id, limits: ['1/s'] })).data, { updateApiKey: { ...HELD, limits: ['1/s'] } });
    assert.deepEqual((await update({ id, name: 'Renamed' })).data, { updateApiKey: { ...HELD, limits: ['1/s'] } });
    assert.deepEqual((await update({ id, limits: [], allowFrom: null })).data, {
      updateApiKey: { limits: [], allowFrom: null },
    });
  });

  it('are refused with the field that is wrong', async () => {
    const { errors } = await create({ name: 'Wrong', limits: ['100/x'], allowFrom: ['10.1.2.3/8'] });
    const problems = errors![0]!.extensions['problems'] as { code: string; path: string[] }[];
    assert.deepEqual(
      problems.map(({ code, path }) => [code, path]),
      [
        ['LIMIT_INVALID', ['limits']],
        ['NETWORK_INVALID', ['allowFrom']],
      ],
    );
    const empty = await create({ name: 'Wrong', allowFrom: [] });
    assert.equal(empty.errors?.[0]?.extensions['code'], 'NETWORK_INVALID');
    const nothing = await create({ name: 'Wrong', limits: null });
    assert.match(nothing.errors?.[0]?.message ?? '', /^"limits" must not be null\./);
  });

  it('of a parent key are among what that takes away', async () => {
    const parent = await test.keys.create(
      { name: 'Parent', roles: ['ADMIN'], limits: ['100/m'], allowFrom: ['127.0.0.1'] },
      OPERATOR,
    );
    const made = 'mutation { createApiKey(input: { name: "Child", roles: [GUEST] }) { apiKey { id } } }';
    await query(test.url, parent.key, made);
    const { data } = await ask('{ apiKey(name: "Child") { limits allowFrom limitedBy { name limits allowFrom } } }');
    assert.deepEqual(data, {
      apiKey: {
        limits: [],
        allowFrom: null,
        limitedBy: [{ name: 'Parent', limits: ['100/m'], allowFrom: ['127.0.0.1'] }],
      },
    });
  });
});
