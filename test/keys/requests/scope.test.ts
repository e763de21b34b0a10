import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { formatScope, parseScope } from '../../../src/keys/requests/scope.ts';

describe('a scope', () => {
  const catalog = createCatalog({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:UPDATE_ANY'] } });

  it('has roles and permissions, in either case, each once', () => {
    const { grants, issues } = parseScope('docker:read_any role:editor  DOCKER:READ_ANY Role:GUEST', catalog);
    assert.deepEqual([grants, issues], [{ roles: ['EDITOR', 'GUEST'], permissions: ['DOCKER:READ_ANY'] }, []]);
    assert.equal(formatScope(grants), 'role:EDITOR role:GUEST DOCKER:READ_ANY');
  });

  it('names what it knows not, and is not empty', () => {
    const codes = (scope: string) => parseScope(scope, catalog).issues.map(({ code }) => code);
    assert.deepEqual(codes('role:EDITR WIKI:READ'), ['ROLE_INVALID', 'PERMISSION_INVALID']);
    assert.deepEqual([codes(''), codes('  ')], [['NO_GRANTS'], ['NO_GRANTS']]);
    assert.deepEqual(codes('openid'), ['PERMISSION_INVALID']);
  });
});
