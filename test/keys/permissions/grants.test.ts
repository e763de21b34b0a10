import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../../../src/keys/permissions/parse-grants.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { validateNewKey } from '../../../src/keys/key/key-change.ts';

const catalog = createCatalog();
const issuesOf = (...permissions: string[]) =>
  parsePermissions(permissions, catalog).issues.map(({ message }) => message);

describe('roles', () => {
  it('are read case-insensitively, trimmed, each once, in their order', () => {
    assert.deepEqual(parseRoles(['viewer', ' Connect ', 'VIEWER', 'gUEST'], catalog), {
      values: ['VIEWER', 'CONNECT', 'GUEST'],
      issues: [],
    });
  });

  it('that are unknown are named with the nearest ones', () => {
    assert.deepEqual(parseRoles(['ADMIN', 'veiwer'], catalog), {
      values: ['ADMIN'],
      issues: [{ code: 'ROLE_INVALID', message: '"veiwer" is not a role. Did you mean VIEWER?' }],
    });
  });

  it('without a similar name get a list of all', () => {
    const [issue] = parseRoles(['superuser'], catalog).issues;
    assert.equal(issue?.message, '"superuser" is not a role. The roles are ADMIN, CONNECT, VIEWER and GUEST.');
  });

  it('in one item get an error that says to separate them', () => {
    for (const [item, list] of [
      ['VIEWER guest', 'VIEWER,GUEST'],
      ['VIEWER;GUEST', 'VIEWER,GUEST'],
      ['viewer | admin', 'VIEWER,ADMIN'],
    ] as const)
      assert.deepEqual(parseRoles([item], catalog), {
        values: [],
        issues: [{ code: 'ROLE_INVALID', message: `"${item}" is not a role. Separate the items by commas: ${list}` }],
      });
    assert.deepEqual(issuesOf('DOCKER:READ_ANY disk:read_any'), [
      '"DOCKER:READ_ANY disk:read_any" is not a permission. ' +
        'Separate the items by commas: DOCKER:READ_ANY,DISK:READ_ANY',
    ]);
    assert.deepEqual(issuesOf('DOCKER:READ_ANY nothing'), [
      '"DOCKER:READ_ANY nothing" is not a permission: "READ_ANY nothing" is not an action. Did you mean READ_ANY?',
    ]);
  });

  it('may not be empty', () => {
    for (const empty of ['', '  ']) {
      assert.deepEqual(parseRoles(['ADMIN', empty], catalog).issues, [
        {
          code: 'ROLE_INVALID',
          message: 'An item of the list of roles is empty. The roles are ADMIN, CONNECT, VIEWER and GUEST.',
        },
      ]);
    }
  });
});

describe('permissions', () => {
  it('are read case-insensitively, trimmed, each once, in their order', () => {
    assert.deepEqual(parsePermissions([' docker:read_any', 'Me : Read_Own', 'DOCKER:READ_ANY'], catalog), {
      values: ['DOCKER:READ_ANY', 'ME:READ_OWN'],
      issues: [],
    });
  });

  it('may name a resource of the host', () => {
    const host = createCatalog({ resources: ['PRINTER'] });
    assert.deepEqual(parsePermissions(['printer:read_any'], host).values, ['PRINTER:READ_ANY']);
    assert.match(issuesOf('printer:read_any')[0]!, /"printer" is not a resource/);
  });

  it('may not be empty', () => {
    assert.deepEqual(issuesOf(' '), [
      'An item of the list of permissions is empty. Write each as RESOURCE:ACTION, such as DASHBOARD:READ_ANY.',
    ]);
  });

  const malformed = {
    DOCKER: '"DOCKER" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    'DOCKER:': '"DOCKER:" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    ':UPDATE_ANY': '":UPDATE_ANY" is not a permission. Write RESOURCE:ACTION, such as DASHBOARD:UPDATE_ANY.',
    ARAY: '"ARAY" is not a permission. Write RESOURCE:ACTION, such as ARRAY:READ_ANY.',
    ':UPDAT_ANY': '":UPDAT_ANY" is not a permission. Write RESOURCE:ACTION, such as DASHBOARD:UPDATE_ANY.',
    ARRAY: '"ARRAY" is not a permission. Write RESOURCE:ACTION, such as ARRAY:READ_ANY.',
    'ARRAY:READ_OWN:X': '"ARRAY:READ_OWN:X" is not a permission. Write RESOURCE:ACTION, such as ARRAY:READ_OWN.',
    ':': '":" is not a permission. Write RESOURCE:ACTION, such as DASHBOARD:READ_ANY.',
  };
  for (const [permission, message] of Object.entries(malformed)) {
    it(`are not of the form ${permission}`, () => {
      assert.deepEqual(parsePermissions([permission], catalog), {
        values: [],
        issues: [{ code: 'PERMISSION_INVALID', message }],
      });
    });
  }

  it('with an unknown resource name the nearest one', () => {
    assert.deepEqual(issuesOf('DOKCER:READ_ANY'), [
      '"DOKCER:READ_ANY" is not a permission: "DOKCER" is not a resource. Did you mean DOCKER?',
    ]);
  });

  it('with an unknown action name the nearest ones', () => {
    assert.deepEqual(issuesOf('DOCKER:READ'), [
      '"DOCKER:READ" is not a permission: "READ" is not an action. Did you mean READ_ANY or READ_OWN?',
    ]);
  });

  it('with an action without a similar name get a list of all actions', () => {
    assert.match(issuesOf('DOCKER:FLY')[0]!, /The actions are CREATE_ANY, .*DELETE_ANY and DELETE_OWN\.$/);
  });

  it('show no control characters in their issues', () => {
    assert.match(issuesOf('\u001b[31m:READ_ANY')[0]!, /^"<U\+001B>\[31m:READ_ANY"/);
  });

  it('show no secret in their issues, not even one in the wrong place', () => {
    const { text, publicId } = createSecret((size) => new Uint8Array(size).fill(7));
    const issues = [
      ...parseRoles([text], catalog).issues,
      ...parsePermissions([text, `${text}:READ_ANY`], catalog).issues,
    ];
    assert.equal(issues.length, 3);
    for (const { message } of issues) {
      assert.ok(message.includes(`svc_${publicId}_…`));
      assert.ok(!message.includes(text.slice(17, 27)));
    }
  });
});

describe('the input for a new key', () => {
  it('is checked as a whole: all issues come together', () => {
    const input = { name: 'a-b', description: 'a\nb', roles: ['BOSS', ''], permissions: ['DOCKER', 'NIX:FLY'] };
    assert.deepEqual(
      validateNewKey(input, catalog, 0).map(({ code }) => code),
      [
        'NAME_INVALID',
        'DESCRIPTION_INVALID',
        'ROLE_INVALID',
        'ROLE_INVALID',
        'PERMISSION_INVALID',
        'PERMISSION_INVALID',
      ],
    );
  });

  it('needs a role or a permission', () => {
    const issue = { code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' };
    assert.deepEqual(validateNewKey({ name: 'CI' }, catalog, 0), [issue]);
    assert.deepEqual(validateNewKey({ name: 'CI', roles: [], permissions: [] }, catalog, 0), [issue]);
    assert.deepEqual(validateNewKey({ name: 'CI', permissions: ['ME:READ_OWN'] }, catalog, 0), []);
    assert.deepEqual(validateNewKey({ name: 'CI', roles: ['GUEST'] }, catalog, 0), []);
  });
});
