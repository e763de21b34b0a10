import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../../../src/keys/permissions/grants.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { faultsOfNewKey } from '../../../src/keys/key/validation.ts';

const catalog = createCatalog();
const faultsOf = (...permissions: string[]) =>
  parsePermissions(permissions, catalog).faults.map(({ message }) => message);

describe('roles', () => {
  it('are read whatever their case, trimmed, each once, in their order', () => {
    assert.deepEqual(parseRoles(['viewer', ' Connect ', 'VIEWER', 'gUEST'], catalog), {
      values: ['VIEWER', 'CONNECT', 'GUEST'],
      faults: [],
    });
  });

  it('that are unknown are named with the nearest ones', () => {
    assert.deepEqual(parseRoles(['ADMIN', 'veiwer'], catalog), {
      values: ['ADMIN'],
      faults: [{ code: 'ROLE_INVALID', message: '"veiwer" is not a role. Did you mean VIEWER?' }],
    });
  });

  it('that are like none are named with all there are', () => {
    const [fault] = parseRoles(['superuser'], catalog).faults;
    assert.equal(fault?.message, '"superuser" is not a role. The roles are ADMIN, CONNECT, VIEWER and GUEST.');
  });

  it('may not be empty', () => {
    for (const empty of ['', '  ']) {
      assert.deepEqual(parseRoles(['ADMIN', empty], catalog).faults, [
        {
          code: 'ROLE_INVALID',
          message: 'An item of the list of roles is empty. The roles are ADMIN, CONNECT, VIEWER and GUEST.',
        },
      ]);
    }
  });
});

describe('permissions', () => {
  it('are read whatever their case, trimmed, each once, in their order', () => {
    assert.deepEqual(parsePermissions([' docker:read_any', 'Me : Read_Own', 'DOCKER:READ_ANY'], catalog), {
      values: ['DOCKER:READ_ANY', 'ME:READ_OWN'],
      faults: [],
    });
  });

  it('may name a resource of the host', () => {
    const host = createCatalog(['PRINTER']);
    assert.deepEqual(parsePermissions(['printer:read_any'], host).values, ['PRINTER:READ_ANY']);
    assert.match(faultsOf('printer:read_any')[0]!, /"printer" is not a resource/);
  });

  it('may not be empty', () => {
    assert.deepEqual(faultsOf(' '), [
      'An item of the list of permissions is empty. Write each as RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    ]);
  });

  const malformed = {
    DOCKER: '"DOCKER" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    'DOCKER:': '"DOCKER:" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    ':UPDATE_ANY': '":UPDATE_ANY" is not a permission. Write RESOURCE:ACTION, such as DOCKER:UPDATE_ANY.',
    'ARRAY:READ_OWN:X': '"ARRAY:READ_OWN:X" is not a permission. Write RESOURCE:ACTION, such as ARRAY:READ_OWN.',
    ':': '":" is not a permission. Write RESOURCE:ACTION, such as DOCKER:READ_ANY.',
  };
  for (const [permission, message] of Object.entries(malformed)) {
    it(`are not of the form ${permission}`, () => {
      assert.deepEqual(parsePermissions([permission], catalog), {
        values: [],
        faults: [{ code: 'PERMISSION_INVALID', message }],
      });
    });
  }

  it('with an unknown resource name the nearest one', () => {
    assert.deepEqual(faultsOf('DOKCER:READ_ANY'), [
      '"DOKCER:READ_ANY" is not a permission: "DOKCER" is not a resource. Did you mean DOCKER?',
    ]);
  });

  it('with an unknown action name the nearest ones', () => {
    assert.deepEqual(faultsOf('DOCKER:READ'), [
      '"DOCKER:READ" is not a permission: "READ" is not an action. Did you mean READ_ANY or READ_OWN?',
    ]);
  });

  it('with an action that is like none name all actions', () => {
    assert.match(faultsOf('DOCKER:FLY')[0]!, /The actions are CREATE_ANY, .*DELETE_ANY and DELETE_OWN\.$/);
  });

  it('show no control characters in their faults', () => {
    assert.match(faultsOf('\u001b[31m:READ_ANY')[0]!, /^"<U\+001B>\[31m:READ_ANY"/);
  });

  it('show no secret in their faults, also one that was written in the wrong place', () => {
    const { text, publicId } = createSecret((size) => new Uint8Array(size).fill(7));
    const faults = [
      ...parseRoles([text], catalog).faults,
      ...parsePermissions([text, `${text}:READ_ANY`], catalog).faults,
    ];
    assert.equal(faults.length, 3);
    for (const { message } of faults) {
      assert.ok(message.includes(`svc_${publicId}_…`));
      assert.ok(!message.includes(text.slice(17, 27)));
    }
  });
});

describe('what a new key is to be', () => {
  it('is checked as a whole: all faults come together', () => {
    const input = { name: 'a-b', description: 'a\nb', roles: ['BOSS', ''], permissions: ['DOCKER', 'NIX:FLY'] };
    assert.deepEqual(
      faultsOfNewKey(input, catalog, 0).map(({ code }) => code),
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
    const fault = { code: 'NO_GRANTS', message: 'An API key needs at least one role or permission.' };
    assert.deepEqual(faultsOfNewKey({ name: 'CI' }, catalog, 0), [fault]);
    assert.deepEqual(faultsOfNewKey({ name: 'CI', roles: [], permissions: [] }, catalog, 0), [fault]);
    assert.deepEqual(faultsOfNewKey({ name: 'CI', permissions: ['ME:READ_OWN'] }, catalog, 0), []);
    assert.deepEqual(faultsOfNewKey({ name: 'CI', roles: ['GUEST'] }, catalog, 0), []);
  });
});
