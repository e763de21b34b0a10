import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
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
    // In the program, each file has its name; the licenses are of all bundles.
    const inProgram = Array.from(
      read('dist/program.cjs').matchAll(/"node_modules\/(?:[^"]*node_modules\/)?((?:@[^/"]+\/)?[^/"]+)\//g),
      ([, name]) => name!,
    );
    const licensed = read('dist/LICENSES.txt')
      .split(/^-{80}$/m)
      .map((license) => license.trim().split(/\s/, 2) as [name: string, version: string]);
    assert.ok(new Set(inProgram).size > 40 && licensed.length > 80);
    const missing = [...inProgram, ...licensed.map(([name]) => name)].filter((name) => !versions.has(name));
    assert.deepEqual(missing, []);
    for (const [name, version] of licensed) assert.ok(text.includes(`${name.replace('@', '%40')}@${version}`), name);
    for (const name of ['better-sqlite3', 'sqlite', 'confusables.txt of Unicode', 'kysely', '@oclif/core'])
      assert.ok(versions.has(name), name);
  });

  it('has the version and the hash by which the lockfile has it', () => {
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

describe("the binaries of SQLite's driver", () => {
  it('are those of its package, as their sums say', () => {
    const sums = read('dist/better-sqlite3/SHA256SUMS').trim().split('\n');
    assert.equal(sums.length, 8);
    for (const line of sums) {
      const [sum, file] = line.split('  ') as [string, string];
      for (const folder of ['dist', 'node_modules'])
        assert.equal(hash('sha256', readFileSync(join(ROOT, folder, 'better-sqlite3', file))), sum, folder + file);
    }
  });
});
