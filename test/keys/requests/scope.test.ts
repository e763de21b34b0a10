import assert from 'node:assert/strict';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { cpuTime } from '../../support/cpu.ts';
import { formatScope, parseScope } from '../../../src/keys/requests/scope.ts';

describe('a scope', () => {
  const catalog = createCatalog({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:UPDATE_ANY'] } });

  it('has roles and permissions, in either case, each once', () => {
    const parsed = parseScope('docker:read_any role:editor  DOCKER:READ_ANY Role:GUEST', catalog);
    assert.deepEqual(parsed, { grants: { roles: ['EDITOR', 'GUEST'], permissions: ['DOCKER:READ_ANY'] } });
    assert.ok('grants' in parsed);
    assert.equal(formatScope(parsed.grants), 'role:EDITOR role:GUEST DOCKER:READ_ANY');
  });

  it('tells the first thing that it does not know, and is not empty', () => {
    const issueOf = (scope: string) => {
      const parsed = parseScope(scope, catalog);
      return 'issue' in parsed ? `${parsed.issue.code}: ${parsed.issue.message}` : undefined;
    };
    assert.equal(issueOf('role:EDITR WIKI:READ'), 'ROLE_INVALID: "EDITR" is not a role. Did you mean EDITOR?');
    assert.equal(
      issueOf('Wiki:Read role:EDITR'),
      'PERMISSION_INVALID: "Wiki:Read" is not a permission: "Read" is not an action. Did you mean READ_ANY or READ_OWN?',
    );
    for (const empty of ['', '  ']) assert.match(issueOf(empty)!, /^NO_GRANTS: The scope is empty/);
    assert.match(issueOf('openid')!, /^PERMISSION_INVALID: "openid" is not a permission/);
    for (const strange of ['role:WIKI:UPDATE_ANY', 'EDITOR', 'role:', ':', 'WIKI:UPDATE_ANY:x', '__proto__'])
      assert.notEqual(issueOf(strange), undefined, strange);
  });

  it('takes no longer for what is wrong with all of it than for what is wrong with its start', () => {
    const resources = Array.from({ length: 1000 }, (_, index) => `RESOURCE_NUMBER_${index}`);
    const large = createCatalog({ resources });
    const least = (scope: string) => {
      const times = Array.from({ length: 5 }, () => {
        const began = cpuTime();
        parseScope(scope, large);
        return cpuTime() - began;
      });
      return Math.min(...times);
    };
    const one = least('RESOURCE_NUMBER_X');
    const wrong = Array.from({ length: 800 }, (_, index) => `RESOURCE_NUMBER_X${index}`);
    const right = Array.from({ length: 600 }, (_, index) => `resource_number_${index}:read_any`);
    const oneItem = [wrong, right, Array<string>(8000).fill('A')].map((words) => [words.join('|')]);
    for (const items of [wrong, right, [...right, ...wrong], Array<string>(8000).fill('A'), ...oneItem])
      assert.ok(least(items.join(' ')) < 5 * one, `${least(items.join(' '))} ms, one that is wrong ${one} ms`);
  });
});
