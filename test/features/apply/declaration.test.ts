import assert from 'node:assert/strict';
import { DeclarationError } from '../../../src/keys/basics/document.ts';
import { readDeclaration } from '../../../src/features/apply/declaration.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';

describe('a declaration', () => {
  const read = (value: unknown) => readDeclaration(value, createCatalog());
  /** The lines of the message: each issue with its path. */
  const issuesOf = async (value: unknown): Promise<string[]> => {
    try {
      await read(value);
      return [];
    } catch (error) {
      assert.ok(error instanceof DeclarationError && error.code === 'DECLARATION_INVALID');
      return error.message.split('\n');
    }
  };
  /** The issues of one declared key. */
  const issuesOfKey = (key: unknown) => issuesOf({ keys: [key] });
  const A = { name: 'A', roles: ['GUEST'] };

  it('is read into keys as they are stored', async () => {
    const B = {
      name: ' B ',
      description: ' For B ',
      owner: ' Team B ',
      tags: ['env = prod'],
      metadata: { plan: 'pro', tenant: { id: 7 } },
      roles: ['viewer', 'VIEWER'],
      permissions: ['docker:read_any'],
      limits: ['5/month', '100 / m'],
      allowFrom: ['2001:DB8::/32', '10.0.0.0/8'],
      expiresAt: '2031-01-01T00:00:00Z',
      enabled: false,
    };
    const none = {
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      permissions: [],
      limits: [],
      allowFrom: null,
      expiresAt: null,
    };
    assert.deepEqual(
      await read({ $schema: 'keys.schema.json', keys: [A, B, { ...A, name: 'C', ...none, enabled: true }] }),
      [
        { ...A, ...none },
        {
          name: 'B',
          description: 'For B',
          owner: 'Team B',
          tags: ['env=prod'],
          metadata: { plan: 'pro', tenant: { id: 7 } },
          roles: ['VIEWER'],
          permissions: ['DOCKER:READ_ANY'],
          limits: ['100/m', '5/month'],
          allowFrom: ['2001:db8::/32', '10.0.0.0/8'],
          expiresAt: Date.UTC(2031, 0, 1),
          enabled: false,
        },
        { name: 'C', roles: ['GUEST'], ...none, enabled: true },
      ],
    );
    assert.deepEqual(await read({ keys: [] }), []);
  });

  it('is a map with a list of keys, and of no other field', async () => {
    for (const value of [null, undefined, 'keys', 1, []])
      assert.deepEqual(await issuesOf(value), [
        'declaration: The declaration must be a map with the field "keys", a list of keys.',
      ]);
    assert.deepEqual(await issuesOf({}), ['declaration: The field "keys" is missing. Write "keys: []" for none.']);
    for (const keys of [null, 'A', A])
      assert.deepEqual(await issuesOf({ keys }), ['keys: The field "keys" must be a list. Write "keys: []" for none.']);
    assert.deepEqual(await issuesOf({ keys: [], 'other.\n': 1, $schema: 1 }), [
      'other.<U+000A>: "other.<U+000A>" is not a field. The fields here are keys and $schema.',
      '$schema: The field "$schema" must be text. Quote it if YAML reads it as another type.',
    ]);
  });

  it('has keys that are maps with a name and grants', async () => {
    for (const key of [null, 'A', 1, [A]])
      assert.deepEqual(await issuesOfKey(key), [
        'keys[0]: A key must be a map with the field "name", and some of description, owner, tags, metadata, roles, ' +
          'permissions, limits, allowFrom, expiresAt, enabled, expiresIn and rotate.',
      ]);
    assert.deepEqual(await issuesOf({ keys: [A, {}] }), [
      'keys[1]: The field "name" is missing.',
      'keys[1]: An API key needs at least one role or permission.',
    ]);
    assert.deepEqual(await issuesOfKey({ ...A, role: 'GUEST' }), [
      'keys[0].role: "role" is not a field. Did you mean "roles"?',
    ]);
    // The wrong field causes no further issues.
    assert.deepEqual(await issuesOfKey({ name: 'A', role: 'GUEST' }), [
      'keys[0].role: "role" is not a field. Did you mean "roles"?',
    ]);
    assert.deepEqual(await issuesOfKey({ name: 'A', may: ['GUEST'] }), [
      'keys[0].may: "may" is not a field. The fields here are name, description, owner, tags, metadata, roles, ' +
        'permissions, limits, allowFrom, expiresAt, enabled, expiresIn and rotate.',
    ]);
    assert.deepEqual(await issuesOf({ key: [{ nme: 'A', roles: ['GUEST'], expiresAt: '2027-02-30T00:00:00Z' }] }), [
      'key: "key" is not a field. Did you mean "keys"?',
    ]);
  });

  it('distinguishes a wrong field from a wrong value', async () => {
    await assert.rejects(read({ keys: [{ ...A, role: 'GUEST', enabled: 1 }] }), (error: DeclarationError) => {
      const places = error.issues.map(({ path, ofField }) => [path, ofField]);
      assert.deepEqual(places, [
        [['keys', 0, 'role'], true],
        [['keys', 0, 'enabled'], undefined],
      ]);
      return true;
    });
  });

  it('names each key once, in any form', async () => {
    assert.deepEqual(await issuesOf({ keys: [{ ...A, name: 'Cafe\u0301' }, A, { ...A, name: ' Caf\u00e9 ' }] }), [
      'keys[2].name: "Caf\u00e9" is declared more than once.',
    ]);
    const invalid = { ...A, name: '-' };
    const issue = 'The name may only contain letters, digits and spaces; found "-" (U+002D).';
    assert.deepEqual(await issuesOf({ keys: [invalid, invalid] }), [
      `keys[0].name: ${issue}`,
      `keys[1].name: ${issue}`,
    ]);
  });

  const TEXT = 'must be text. Quote it if YAML reads it as another type.';
  for (const [field, value, ...issues] of [
    ['name', 1, `keys[0].name: The field "name" ${TEXT}`],
    ['name', null, `keys[0].name: The field "name" ${TEXT}`],
    ['description', 1, `keys[0].description: The field "description" ${TEXT}`],
    [
      'description',
      'x'.repeat(1001),
      'keys[0].description: The description is 1001 characters long; at most 1000 are allowed.',
    ],
    ['roles', 'GUEST', 'keys[0].roles: The field "roles" must be a list.'],
    ['roles', null, 'keys[0].roles: The field "roles" must be a list.'],
    ['roles', [], 'keys[0]: An API key needs at least one role or permission.'],
    ['roles', ['GUEST', 1], `keys[0].roles[1]: An item of this list ${TEXT}`],
    [
      'roles',
      ['GUEST', 'VEIWER', ''],
      'keys[0].roles[1]: "VEIWER" is not a role. Did you mean VIEWER?',
      'keys[0].roles[2]: An item of the list of roles is empty. The roles are ADMIN, CONNECT, VIEWER and GUEST.',
    ],
    ['permissions', 'ME:READ_OWN', 'keys[0].permissions: The field "permissions" must be a list.'],
    [
      'permissions',
      ['ME'],
      'keys[0].permissions[0]: "ME" is not a permission. Write RESOURCE:ACTION, such as ME:READ_ANY.',
    ],
    ['expiresAt', 2031, `keys[0].expiresAt: The field "expiresAt" ${TEXT}`],
    ['expiresAt', '30d', 'keys[0].expiresAt: "30d" is not an RFC 3339 date and time, such as 2030-12-31T23:59:59Z.'],
    ['enabled', 'no', 'keys[0].enabled: The field "enabled" must be true or false.'],
    ['enabled', null, 'keys[0].enabled: The field "enabled" must be true or false.'],
  ] as const) {
    it(`has no ${field} that is ${JSON.stringify(value).slice(0, 40)}`, async () => {
      assert.deepEqual(await issuesOfKey({ ...A, [field]: value }), issues);
    });
  }
});
