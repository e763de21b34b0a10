import assert from 'node:assert/strict';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const APPLY = 'mutation ($input: ApplyApiKeysInput!) { applyApiKeys(input: $input) { unchanged } }';
const HELD = { limits: ['100/m', '5/month'], allowFrom: ['10.0.0.0/8', '2001:db8::/32'] };

interface Problem {
  code: string;
  path: (string | number)[];
}

describe('the input of declared keys over GraphQL', () => {
  let test: TestService;
  let admin: string;
  before(async () => {
    test = await startTestService({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_ANY'] } });
    admin = (await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] })).secret;
  });
  after(() => test.stop());
  const ask = async (document: string, variables: object) => {
    const { body } = await query(test.url, admin, document, variables as Record<string, unknown>);
    return { data: body.data, errors: body.errors };
  };
  const apply = (fields: object, dryRun = false) =>
    ask(
      `mutation ($input: ApplyApiKeysInput!) {
        applyApiKeys(input: $input) { changes { action changes { field before after } } unchanged }
      }`,
      { input: { keys: [{ name: 'Declared', roles: ['GUEST'], ...fields }], dryRun } },
    );
  const refused = async (input: object) => {
    const { errors } = await ask(APPLY, { input });
    const { code, problems } = errors![0]!.extensions as { code: string; problems: Problem[] };
    return { code, places: problems.map((problem) => [problem.code, ...problem.path]) };
  };

  it('has limits and networks', async () => {
    const planned = await apply(HELD, true);
    assert.match(JSON.stringify(planned.data), /"action":"CREATE"/);
    const { data } = await apply(HELD);
    const [change] = (data as never as { applyApiKeys: { changes: { changes: { field: string; after: string }[] }[] } })
      .applyApiKeys.changes;
    const after = Object.fromEntries(change!.changes.map(({ field, after: value }) => [field, value]));
    assert.deepEqual([after['limits'], after['allowFrom']], ['["100/m","5/month"]', '["10.0.0.0/8","2001:db8::/32"]']);
    assert.deepEqual((await apply({ ...HELD, limits: HELD.limits.toReversed() })).data, {
      applyApiKeys: { changes: [], unchanged: 1 },
    });
    assert.deepEqual((await apply({ ...HELD, allowFrom: null })).data, {
      applyApiKeys: {
        changes: [
          {
            action: 'UPDATE',
            changes: [{ field: 'allowFrom', before: '["10.0.0.0/8","2001:db8::/32"]', after: 'null' }],
          },
        ],
        unchanged: 0,
      },
    });
  });

  it('is refused with the places of the keys', async () => {
    const keys = [
      { name: 'Good', roles: ['GUEST'] },
      { name: 'a-b' },
      { name: 'Good', roles: ['GUEST'], enabled: null },
    ];
    const { code, places } = await refused({ keys });
    assert.equal(code, 'DECLARATION_INVALID');
    assert.deepEqual(places, [
      ['DECLARATION_INVALID', 'keys', 1, 'name'],
      ['DECLARATION_INVALID', 'keys', 1],
      ['DECLARATION_INVALID', 'keys', 2, 'name'],
      ['DECLARATION_INVALID', 'keys', 2, 'enabled'],
    ]);
  });

  it('has nulls that mean nothing, and others', async () => {
    const none = await refused({ keys: [], prune: null, dryRun: null });
    assert.deepEqual(none, {
      code: 'INPUT_INVALID',
      places: [
        ['INPUT_INVALID', 'prune'],
        ['INPUT_INVALID', 'dryRun'],
      ],
    });
    const { places } = await refused({ keys: [{ name: 'New', roles: null, permissions: null }] });
    assert.deepEqual(places, [
      ['DECLARATION_INVALID', 'keys', 0, 'roles'],
      ['DECLARATION_INVALID', 'keys', 0, 'permissions'],
    ]);
    const input = { keys: [{ name: 'Plain', roles: ['GUEST'], description: null, expiresAt: null }] };
    assert.equal((await ask(APPLY, { input })).errors, undefined);
  });

  it('has roles of the installation', async () => {
    const { data } = await ask(
      'mutation { applyApiKeys(input: { keys: [{ name: "Edits", roles: [EDITOR] }] }) { created { apiKey { roles } } } }',
      {},
    );
    assert.deepEqual(data, { applyApiKeys: { created: [{ apiKey: { roles: ['EDITOR'] } }] } });
  });
});
