import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

interface Bom {
  components: { name: string; version: string; purl?: string; licenses: object[]; hashes?: { content: string }[] }[];
  dependencies: { dependsOn: string[] }[];
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('the bill of materials', () => {
  const text = read('dist/sbom.cdx.json');
  const bom = JSON.parse(text) as Bom;
  const versions = new Map(bom.components.map(({ name, version }) => [name, version]));

  it('has each package whose code is in dist', () => {
    // CommonJS files contain their names; the licenses cover all packages.
    const inBundle = globSync('dist/**/*.js', { cwd: ROOT }).flatMap((file) =>
      Array.from(
        read(file).matchAll(/"node_modules\/(?:[^"]*node_modules\/)?((?:@[^/"]+\/)?[^/"]+)\//g),
        ([, name]) => name!,
      ),
    );
    const licensed = read('dist/LICENSES.txt')
      .split(/^-{80}$/m)
      .map((license) => license.trim().split(/\s/, 2) as [name: string, version: string]);
    assert.ok(new Set(inBundle).size > 20 && licensed.length > 40);
    const missing = [...inBundle, ...licensed.map(([name]) => name)].filter((name) => !versions.has(name));
    assert.deepEqual(missing, []);
    for (const [name, version] of licensed) assert.ok(text.includes(`${name.replace('@', '%40')}@${version}`), name);
    for (const name of ['confusables.txt of Unicode', 'kysely', '@oclif/core']) assert.ok(versions.has(name), name);
  });

  it('has no package that is loaded from node_modules: what npm shows of those is what runs', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    assert.deepEqual(
      Object.keys(dependencies).filter((name) => versions.has(name)),
      [
        '@hono/graphql-server',
        '@inquirer/core',
        '@inquirer/figures',
        '@inquirer/prompts',
        '@oclif/core',
        // The part of it that runs in browsers.
        'hono',
        'kysely',
        // Another version, which oclif needs.
        'string-width',
      ],
    );
    for (const file of globSync('dist/**/*.js', { cwd: ROOT }))
      if (!file.startsWith('dist/console/'))
        assert.doesNotMatch(read(file), /"node_modules\/(hono|graphql|jose)\//, file);
  });

  it('has the version and the hash of the lockfile', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { version: string; integrity?: string }>;
    };
    const locked = new Set(
      Object.entries(packages).map(([folder, { version, integrity = '' }]) =>
        [folder.replace(/^.*node_modules\//, ''), version, integrity].join(' '),
      ),
    );
    for (const { name, version, purl = '', hashes = [] } of bom.components) {
      if (!purl.startsWith('pkg:npm/')) continue;
      const integrity = `sha512-${Buffer.from(hashes[0]!.content, 'hex').toString('base64')}`;
      assert.ok(locked.has([name, version, integrity].join(' ')), name);
    }
  });

  it('says the license of each part, and names no host', () => {
    for (const { name, licenses } of bom.components) assert.equal(licenses.length, 1, name);
    assert.doesNotMatch(text, /:\/\//);
    assert.equal(bom.dependencies[0]!.dependsOn.length, bom.components.length);
  });
});
