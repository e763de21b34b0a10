import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { parseScope } from '../../../src/features/consent/scope.ts';
import { formatScope } from '../../../src/keys/permissions/scope.ts';
import { workOf } from '../../support/work.ts';

describe('a scope', () => {
  const catalog = createCatalog({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:UPDATE_ANY'] } });

  it('has roles and permissions, in either case, each once', () => {
    const parsed = parseScope('docker:read_any role:editor  DOCKER:READ_ANY Role:GUEST', catalog);
    assert.deepEqual(parsed, { grants: { roles: ['EDITOR', 'GUEST'], permissions: ['DOCKER:READ_ANY'] } });
    assert.ok('grants' in parsed);
    assert.equal(formatScope(parsed.grants), 'role:EDITOR role:GUEST DOCKER:READ_ANY');
  });

  it('may name a key to replace, but that alone is no scope', () => {
    const id = '0d8f3a52-5a3c-4f6e-9a53-3b1c8e0d1f2a';
    assert.deepEqual(parseScope(`key:${id} DOCKER:READ_ANY`, catalog), {
      grants: { roles: [], permissions: ['DOCKER:READ_ANY'] },
      replaces: id,
    });
    for (const wrong of [`key:${id}`, 'key:x DOCKER:READ_ANY', `key:${id}x DOCKER:READ_ANY`])
      assert.ok('issue' in parseScope(wrong, catalog), wrong);
  });

  it('reports the first unknown part, and must not be empty', () => {
    const issueOf = (scope: string) => {
      const parsed = parseScope(scope, catalog);
      return 'issue' in parsed ? `${parsed.issue.code}: ${parsed.issue.message}` : undefined;
    };
    assert.equal(issueOf('role:VIEWR WIKI:READ'), 'ROLE_INVALID: "VIEWR" is not a role. Did you mean VIEWER?');
    assert.equal(
      issueOf('Docker:Read role:VIEWR'),
      'PERMISSION_INVALID: "Docker:Read" is not a permission: "Read" is not an action. Did you mean READ_ANY or READ_OWN?',
    );
    for (const empty of ['', '  ']) assert.match(issueOf(empty)!, /^NO_GRANTS: The scope is empty/);
    assert.match(issueOf('openid')!, /^PERMISSION_INVALID: "openid" is not a permission/);
    for (const strange of ['role:WIKI:UPDATE_ANY', 'EDITOR', 'role:', ':', 'WIKI:UPDATE_ANY:x', '__proto__'])
      assert.notEqual(issueOf(strange), undefined, strange);
  });

  it('reveals no declared names in errors, since any client can send it', () => {
    for (const wrong of ['role:EDITR', 'WIKY:READ_ANY', 'WIKI:READ', 'WIKI', 'WIKI:*']) {
      const parsed = parseScope(
        wrong,
        createCatalog({ resources: ['WIKI'], roles: { EDITOR: [] }, declaredIn: '/etc/x' }),
      );
      assert.ok('issue' in parsed);
      assert.doesNotMatch(parsed.issue.message.replaceAll(`"${wrong}"`, ''), /EDITOR|WIKI(?!")|\/etc/);
    }
  });

  it('is no more work where it is wrong than where as much of it is right', async () => {
    const resources = Array.from({ length: 1000 }, (_, index) => `RESOURCE_NUMBER_${index}`);
    const large = createCatalog({ resources });
    const work = async (scope: string) => (await workOf(() => parseScope(scope, large))).count;
    const wrong = Array.from({ length: 800 }, (_, index) => `RESOURCE_NUMBER_X${index}`);
    const right = Array.from({ length: 600 }, (_, index) => `resource_number_${index}:read_any`);
    const all = await work(right.join(' '));
    const oneItem = [wrong, right, Array<string>(8000).fill('A')].map((words) => [words.join('|')]);
    for (const items of [wrong, [...right, ...wrong], Array<string>(8000).fill('A'), ...oneItem]) {
      const count = await work(items.join(' '));
      assert.ok(count < 5 * all, `${count} thousand calls, as many that are right ${all}`);
    }
  });
});
