import assert from 'node:assert/strict';
import { countKeys, createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const CREATE = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }';
const UPDATE = 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { id } }';
const ROTATE = 'mutation ($input: RotateApiKeyInput!) { rotateApiKey(input: $input) { key } }';

interface Problem {
  code: string;
  message: string;
  path: (string | number)[];
}

describe('the issues of an input over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let id: string;
  before(async () => {
    test = await startTestService();
    const principal = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    admin = principal.secret;
    ({ id } = principal.principal.apiKey);
  });
  after(() => test.stop());

  async function refused(
    document: string,
    input: object,
  ): Promise<{ message: string; code: unknown; problems: Problem[] }> {
    const { body } = await query(test.url, admin, document, { input });
    assert.equal(body.errors?.length, 1, JSON.stringify(body));
    const { message, extensions } = body.errors[0]!;
    return { message, code: extensions['code'], problems: extensions['problems'] as Problem[] };
  }
  const placesOf = (problems: readonly Problem[]) => problems.map(({ code, path }) => [code, ...path]);

  it('come one by one, each with its code, its text and its place', async () => {
    const input = { name: 'a-b', description: 'a\nb', expiresAt: '2001-01-01T00:00:00Z' };
    const { message, code, problems } = await refused(CREATE, input);
    assert.deepEqual(placesOf(problems), [
      ['NAME_INVALID', 'name'],
      ['DESCRIPTION_INVALID', 'description'],
      ['EXPIRY_INVALID', 'expiresAt'],
      // An error about all fields.
      ['NO_GRANTS'],
    ]);
    assert.equal(code, 'NAME_INVALID');
    assert.equal(message, problems.map((problem) => problem.message).join('\n'));
    assert.deepEqual(Object.keys(problems[0]!), ['code', 'message', 'path']);
  });

  it('are those of changes and rotations, too', async () => {
    const updated = await refused(UPDATE, { id, name: '!', expiresAt: '2001-01-01T00:00:00Z' });
    assert.deepEqual(placesOf(updated.problems), [
      ['NAME_INVALID', 'name'],
      ['EXPIRY_INVALID', 'expiresAt'],
    ]);
    assert.deepEqual(placesOf((await refused(UPDATE, { id, roles: [] })).problems), [['NO_GRANTS']]);
    const rotated = await refused(ROTATE, { id, grace: 'soon', createdSince: '2001-01-01T00:00:00Z' });
    assert.deepEqual(placesOf(rotated.problems), [
      ['EXPIRY_INVALID', 'grace'],
      ['USAGE', 'createdSince'],
    ]);
  });

  it('have no secret in their texts', async () => {
    const rotated = await refused(ROTATE, { id, grace: admin });
    assert.deepEqual(placesOf(rotated.problems), [['EXPIRY_INVALID', 'grace']]);
    const created = await refused(CREATE, { name: 'New', roles: ['GUEST'], expiresAt: admin });
    assert.ok(!JSON.stringify([rotated, created]).includes(admin));
  });

  it('are missing where an error is about no issue of the input', async () => {
    const { code, problems } = await refused(CREATE, { name: 'Admin', roles: ['GUEST'] });
    assert.deepEqual([code, problems], ['NAME_TAKEN', undefined]);
  });

  it('are nulls that mean nothing', async () => {
    const given = { name: 'New', roles: ['GUEST'] };
    const rows: [document: string, input: Record<string, unknown>, fields: string[]][] = [
      [UPDATE, { id, name: null, roles: null, permissions: null }, ['name', 'roles', 'permissions']],
      [CREATE, { ...given, overwrite: null, permissions: null }, ['permissions', 'overwrite']],
      [CREATE, { ...given, roles: null }, ['roles']],
    ];
    for (const [document, input, fields] of rows) {
      const { code, problems } = await refused(document, input);
      assert.equal(code, 'INPUT_INVALID');
      assert.deepEqual(
        placesOf(problems),
        fields.map((field) => ['INPUT_INVALID', field]),
      );
      const message = `"${fields[0]}" must not be null. Leave it out, or give it a value.`;
      assert.equal(problems[0]!.message, message);
    }
    assert.equal(await countKeys(test.store.repository), 1);
  });

  it('are no nulls that mean something', async () => {
    for (const [document, input] of [
      [CREATE, { name: 'Plain', roles: ['GUEST'], description: null, expiresAt: null }],
      [UPDATE, { id, description: null, expiresAt: null }],
    ] as const) {
      const { body } = await query(test.url, admin, document, { input });
      assert.equal(body.errors, undefined, document);
    }
  });
});
