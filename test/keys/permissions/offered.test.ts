import assert from 'node:assert/strict';
import { FEATURES } from '../../../src/features/index.ts';
import { createCatalog, exampleResource, parsePermissions, RESOURCES } from '../../../src/keys/permissions/index.ts';

const own = ['WIKI', { name: 'VAULT_ITEM', credentials: true }];

describe('resources to choose from', () => {
  it('are the built-in ones where these are hidden and there are no others', () => {
    assert.deepEqual(createCatalog({ builtinResources: 'hidden' }).offered, createCatalog().offered);
  });

  it('are the built-in ones if an installation has no others', () => {
    const ofFeatures = FEATURES.flatMap(({ resources = [] }) => resources).map((each) =>
      typeof each === 'string' ? each : each.name,
    );
    assert.deepEqual(createCatalog().offered, [...RESOURCES, ...ofFeatures].toSorted());
  });

  it('start with those of the installation, each once', () => {
    const { offered, resources } = createCatalog({ resources: [...own, 'DOCKER'] });
    assert.deepEqual(offered.slice(0, 4), ['WIKI', 'VAULT_ITEM', 'DOCKER', RESOURCES[0]]);
    assert.deepEqual(offered.toSorted(), resources.toSorted());
  });

  it('are only those of the installation if the built-in ones are hidden, but still in force', () => {
    const shown = createCatalog({ resources: own });
    const hidden = createCatalog({ resources: own, builtinResources: 'hidden' });
    assert.deepEqual(hidden.offered, ['WIKI', 'VAULT_ITEM']);
    assert.deepEqual(hidden.resources, shown.resources);
    for (const role of shown.roles) assert.deepEqual(hidden.permissionsOf(role), shown.permissionsOf(role));
    assert.deepEqual(parsePermissions(['disk:read_any'], hidden), { values: ['DISK:READ_ANY'], issues: [] });
    const [issue] = parsePermissions(['WIKKI:READ_ANY'], hidden).issues;
    assert.match(issue!.message, /Did you mean WIKI\?/);
    for (const text of ['', 'WIKI', ':READ_ANY'])
      assert.match(parsePermissions([text], hidden).issues[0]!.message, /such as WIKI:READ_ANY/);
    assert.doesNotMatch(parsePermissions(['DISKK:READ_ANY'], hidden).issues[0]!.message, /DISK\b/);
  });
});

describe('the resource in examples', () => {
  it('is a well-known one if an installation has none', () => {
    assert.equal(exampleResource(createCatalog()), 'DASHBOARD');
    assert.equal(exampleResource(createCatalog({ builtinResources: 'hidden' })), 'DASHBOARD');
  });

  it('is the first one of the installation, also one that is built in', () => {
    for (const builtinResources of ['shown', 'hidden'] as const) {
      assert.equal(exampleResource(createCatalog({ resources: own, builtinResources })), 'WIKI');
      assert.equal(exampleResource(createCatalog({ resources: ['DISK', 'WIKI'], builtinResources })), 'DISK');
    }
  });
});
