import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { PermissionSet } from '../../src/keys/permissions/permission-set.ts';
import { createCatalog } from '../../src/keys/permissions/catalog.ts';
import { decide } from '../../src/features/routes/decide.ts';
import { createRouter } from '../../src/features/routes/router.ts';
import { ownCommands } from '../support/cli-here.ts';
import { blocksOf, blockWith } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/guard.md';
const PROXIES = 'docs/proxies.md';
const RECIPES = 'examples/guard/README.md';

/** The `svc-api.yaml` on the page. */
function configIn(block: string) {
  const file = join(tempFolder(), 'svc-api.yaml');
  writeFileSync(file, block);
  return loadConfig({ file });
}

describe(PAGE, () => {
  it('has configurations that are taken, with every resource that its commands name', async () => {
    const configs = await Promise.all(
      [PAGE, RECIPES]
        .flatMap((page) => blocksOf(page, 'yaml'))
        .filter((block) => block.includes('resources:'))
        .map(configIn),
    );
    const declared = new Set(
      configs.flatMap(({ resources }) => resources.map((each) => (typeof each === 'string' ? each : each.name))),
    );
    const named = [PAGE, PROXIES, RECIPES]
      .flatMap((page) => blocksOf(page))
      .flatMap((block) => Array.from(block.matchAll(/--(?:permissions?|resource) (\w+)/g), ([, name]) => name!));
    assert.ok(named.length > 2);
    for (const name of createCatalog().resources) declared.add(name);
    assert.deepEqual(
      named.filter((name) => !declared.has(name)),
      [],
    );
  });

  it('leads to a configuration of people that is taken', async () => {
    const { people } = await configIn(blockWith('oidc:', 'docs/console.md', 'yaml'));
    assert.ok(people && 'issuer' in people.by);
    assert.equal(people.by.issuer, 'https://id.example.org');
    const byProxy = await configIn(blockWith('header: Remote-User', 'docs/console.md', 'yaml'));
    assert.ok(byProxy.people && 'header' in byProxy.people.by);
  });

  it('has commands whose flags there are', async () => {
    const { guard } = await ownCommands();
    const flags = [PAGE, RECIPES].flatMap((page) => {
      const used = readFileSync(join(ROOT, page), 'utf8').matchAll(/svc-api guard [^\n`]*/g);
      return Array.from(used, ([command]) => command.match(/(?<= --)[a-z-]+/g) ?? []).flat();
    });
    assert.ok(flags.length > 4);
    assert.deepEqual(
      flags.filter((flag) => !(flag in guard!.flags)),
      [],
    );
  });

  const judged = [
    ['[REGISTRY]', 'REGISTRY', { reading: ['GET /v2/', 'HEAD /v2/a/manifests/1'], writing: ['PUT /v2/a/manifests/1'] }],
    [
      '[GIT]',
      'GIT',
      {
        reading: ['GET /a.git/info/refs?service=git-upload-pack', 'POST /a.git/git-upload-pack'],
        writing: ['POST /a.git/git-receive-pack'],
      },
    ],
  ] as const;
  for (const [text, resource, { reading, writing }] of judged) {
    it(`has routes that tell reading from writing: ${resource}`, async () => {
      const { routes, resources } = await configIn(blockWith(`resources: ${text}`, RECIPES, 'yaml'));
      const [router, catalog] = [createRouter(routes), createCatalog({ resources })];
      const outcomes = (requests: readonly string[], action: 'READ_ANY' | 'UPDATE_ANY') =>
        requests.map((request) => {
          const [method = '', target = ''] = request.split(' ');
          const permissions = PermissionSet.of(catalog, { roles: [], permissions: [`${resource}:${action}`] });
          return decide(router, { method, host: 'localhost:5001', target }, permissions).outcome;
        });
      assert.deepEqual(new Set(outcomes(reading, 'READ_ANY')), new Set(['allowed']));
      assert.deepEqual(new Set(outcomes(writing, 'READ_ANY')), new Set(['forbidden']));
      assert.deepEqual(new Set(outcomes(writing, 'UPDATE_ANY')), new Set(['allowed']));
    });
  }
});
