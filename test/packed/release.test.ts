import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sectionOf, unreleasedIn, withVersion } from '../../scripts/changelog.ts';
import { mustRun, run } from '../support/host.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

interface Manifest {
  version: string;
  peerDependencies: Record<string, string>;
}
const { version, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

describe('a release', () => {
  it('publishes nothing in a dry run, which prints what it would do', async () => {
    const folder = join(tempFolder(), 'release');
    // Other tests use the build.
    const said = await mustRun(process.execPath, ['scripts/release.ts', '--dry-run', '--no-build', folder], {
      cwd: ROOT,
    });
    const name = `svc-api-${version}`;
    const made = [`${name}-image.tgz`, `${name}.cdx.json`, `${name}.tgz`];
    assert.deepEqual(readdirSync(folder).toSorted(), ['PUBLISH', 'SHA256SUMS', ...made]);
    const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n');
    const own = (file: string) => `${hash('sha256', readFileSync(join(folder, file)))}  ${file}`;
    assert.deepEqual(sums.toSorted(), ['PUBLISH', ...made].map(own).toSorted());
    const built = readFileSync(join(ROOT, 'dist/sbom.cdx.json'), 'utf8');
    assert.equal(readFileSync(join(folder, `${name}.cdx.json`), 'utf8'), built);
    const packed = join(folder, `${name}.tgz`);
    const would = Array.from(said.matchAll(/^Would run: (.*)$/gm), ([, line]) => line);
    assert.deepEqual(would, [
      `PACKED_FILE=${packed} npm run test:packed`,
      `cp ${join(folder, `${name}-image.tgz`)} ${ROOT}`,
      `docker build --file examples/docker/Dockerfile --tag svc-api:${version} .`,
    ]);
    assert.equal(readFileSync(join(folder, 'PUBLISH'), 'utf8'), `${name}.tgz\n`);
  });

  it('is refused before anything is built if its state is unfit, with all reasons', async () => {
    const folder = join(tempFolder(), 'release');
    const copy = join(tempFolder(), 'checkout');
    await mustRun('git', ['clone', '--quiet', '--depth', '1', `file://${ROOT}`, copy], { cwd: ROOT });
    await mustRun('cp', ['-r', ...['scripts', 'package.json', 'CHANGELOG.md'].map((file) => join(ROOT, file)), copy], {
      cwd: ROOT,
    });
    await mustRun('touch', ['new'], { cwd: copy });
    const { stdout, code } = await run(process.execPath, ['scripts/release.ts', folder], { cwd: copy });
    assert.equal(code, 1);
    const reasons = ['has no owner yet', 'has no section of', 'are not released', 'not committed', 'there is no tag'];
    for (const reason of reasons) assert.match(stdout, new RegExp(`^Not to be released: .*${reason}`, 'm'));
    assert.equal(existsSync(folder), false);
  });
});

describe('the changelog', () => {
  const text =
    '# Changelog\n\n## [Unreleased]\n\n### Changed\n- One.\n\n## [0.1.0] - 2026-01-01\n\n### Added\n- All.\n';

  it('has the unreleased changes under the version after a release', () => {
    const released = withVersion(text, '0.2.0', '2026-01-31');
    assert.equal(unreleasedIn(released), '');
    assert.equal(sectionOf(released, '0.2.0'), '### Changed\n- One.');
    assert.equal(sectionOf(released, '0.1.0'), '### Added\n- All.');
    assert.equal(sectionOf(text, '0.2.0'), undefined);
    assert.throws(() => withVersion(released, '0.3.0', '2026-02-01'), /nothing under "Unreleased"/);
  });

  it('has sections of kinds that its format knows, each once in a version', () => {
    const versions = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^## /m).slice(1);
    assert.ok(versions.length > 0);
    for (const version of versions) {
      const kinds = Array.from(version.matchAll(/^### (.*)$/gm), ([, kind]) => kind!);
      const known = ['Changed', 'Fixed', 'Added', 'Removed', 'Deprecated', 'Security'].filter((kind) =>
        kinds.includes(kind),
      );
      assert.deepEqual(kinds.toSorted(), known.toSorted());
    }
  });
});

describe('the peers', () => {
  it('are of the major versions that are tested here', () => {
    for (const [name, range] of Object.entries(peerDependencies)) {
      const { version } = JSON.parse(
        readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'),
      ) as Manifest;
      const [major] = version.split('.');
      assert.match(range, major === '0' ? /^>=0\.\d+\.\d+ <1$/ : new RegExp(`^\\^${major}\\.`), name);
    }
  });
});
