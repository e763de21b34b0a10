import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePublicPackages } from '../../scripts/public-packages.ts';
import { type Host, hostAt, mustRun, packPackage, serveHost } from '../support/host.ts';
import { type Registry, startRegistry } from '../support/registry.ts';
import { ROOT } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const CREATE = ['apikey', 'create', '--name', 'Viewer', '--roles', 'VIEWER', '--overwrite'];
/** What the driver calls the platform of this machine. */
const TARGET = `${process.platform}${existsSync('/etc/alpine-release') ? 'musl' : ''}-${process.arch}`;
const OTHER = process.platform === 'darwin' ? ['linux', 'x64', 'linux-x64'] : ['darwin', 'arm64', 'darwin-arm64'];
/** What is installed for one platform, in bytes: see docs/installing.md. */
const MAX_BYTES = 30e6;

describe('the packages that are published', () => {
  let packed: string[];
  let registry: Registry;
  before(async () => {
    packed = makePublicPackages(await packPackage(), tempFolder());
    registry = await startRegistry(packed.slice(0, -1));
  });
  after(() => registry.stop());

  /** A folder where the main package is installed; what is under its scope comes from the registry. */
  async function install(...flags: string[]): Promise<{ folder: string; host: Host; binary: string }> {
    const folder = tempFolder();
    writeFileSync(join(folder, '.npmrc'), `@svc-api:registry=${registry.url}\n`);
    const dependencies = { 'svc-api': `file:${packed.at(-1)!}` };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', ...flags];
    await mustRun('npm', args, { cwd: folder });
    const modules = join(folder, 'node_modules');
    const binary = join(modules, `@svc-api/sqlite-${TARGET}/prebuilds/${TARGET}.node`);
    return { folder, host: hostAt(join(modules, 'svc-api')), binary };
  }

  it('are the same for the same packed file', async () => {
    const again = makePublicPackages(await packPackage(), tempFolder());
    const sums = (files: string[]) => files.map((file) => hash('sha256', readFileSync(file)));
    assert.deepEqual(sums(again), sums(packed));
  });

  it('have each binary once, with its license and a bill of the driver and SQLite, which the main one has not', async () => {
    const folder = tempFolder();
    const names: string[] = [];
    for (const file of packed) {
      rmSync(join(folder, 'package'), { recursive: true, force: true });
      await mustRun('tar', ['-xzf', file, '-C', folder], { cwd: folder });
      const read = (path: string) => readFileSync(join(folder, 'package', path), 'utf8');
      const { name, version, optionalDependencies } = JSON.parse(read('package.json')) as {
        name: string;
        version: string;
        optionalDependencies?: Record<string, string>;
      };
      const isMain = name === 'svc-api';
      const { components, metadata } = JSON.parse(read(isMain ? 'dist/sbom.cdx.json' : 'sbom.cdx.json')) as {
        components: { name: string }[];
        metadata: { component: { purl: string } };
      };
      const parts = components.map((component) => component.name);
      assert.equal(metadata.component.purl, `pkg:npm/${name.replace('@', '%40')}@${version}`);
      if (isMain) {
        assert.deepEqual(optionalDependencies, Object.fromEntries(names.map((each) => [each, version])));
        assert.ok(parts.includes('better-sqlite3') && parts.includes('kysely') && !parts.includes('sqlite'));
        assert.equal(existsSync(join(folder, 'package/dist/better-sqlite3/prebuilds')), false);
        assert.equal(read('dist/better-sqlite3/SHA256SUMS').trim().split('\n').length, names.length);
      } else {
        names.push(name);
        assert.deepEqual(parts, ['better-sqlite3', 'sqlite']);
        const [binary] = readdirSync(join(folder, 'package/prebuilds'));
        assert.equal(name, `@svc-api/sqlite-${binary!.replace('.node', '')}`);
        assert.match(read('LICENSE'), /Joshua Wise/);
        const sum = hash('sha256', readFileSync(join(folder, 'package/prebuilds', binary!)));
        assert.ok(read('README.md').includes(sum));
      }
    }
    assert.equal(names.length, 8);
  });

  describe('when they are installed by npm', () => {
    let installed: Awaited<ReturnType<typeof install>>;
    before(async () => (installed = await install()));

    it('bring the binary of this platform alone, with the sum that is in the main one', async () => {
      assert.deepEqual(readdirSync(join(installed.folder, 'node_modules/@svc-api')), [`sqlite-${TARGET}`]);
      const sums = join(installed.folder, 'node_modules/svc-api/dist/better-sqlite3/SHA256SUMS');
      const checked = await mustRun('sha256sum', ['--check', '--ignore-missing', sums], {
        cwd: join(installed.folder, `node_modules/@svc-api/sqlite-${TARGET}`),
      });
      assert.equal(checked, `prebuilds/${TARGET}.node: OK\n`);
    });

    it('take no more room than is promised', async () => {
      const bytes = Number((await mustRun('du', ['-sb', 'node_modules'], { cwd: installed.folder })).split('\t')[0]);
      assert.ok(bytes <= MAX_BYTES, `${bytes} bytes`);
    });

    it('create and serve keys', async () => {
      const { stdout, stderr } = await installed.host.cli(CREATE);
      assert.match(stdout, /^svc_\S+\n$/, stderr);
      const { url, stop } = await serveHost(installed.host);
      // The thread that writes loads the binary as well.
      const mutation = 'mutation { createApiKey(input: { name: "B", roles: [GUEST] }) { key } }';
      const admin = (await installed.host.cli(['apikey', 'create', '--name', 'A', '--roles', 'ADMIN'])).stdout.trim();
      const { body } = await query(url, admin, mutation);
      await stop();
      assert.match(JSON.stringify(body), /"key":"svc_/);
    });

    it('run beside that of another libc: Yarn 1 installs both', async function () {
      if (process.platform !== 'linux') this.skip();
      const other = TARGET.includes('musl') ? TARGET.replace('musl', '') : TARGET.replace('linux', 'linuxmusl');
      const beside = join(installed.folder, `node_modules/@svc-api/sqlite-${other}`);
      mkdirSync(beside);
      const file = packed.find((each) => each.includes(`-${other}-`))!;
      await mustRun('tar', ['-xzf', file, '-C', beside, '--strip-components=1'], { cwd: beside });
      const { stdout, stderr } = await installed.host.cli(CREATE);
      rmSync(beside, { recursive: true });
      assert.match(stdout, /^svc_\S+\n$/, stderr);
    });

    it('are refused with another binary, which is not loaded, also where the driver itself is installed', async () => {
      const { folder, binary, host } = installed;
      const content = readFileSync(binary);
      const driver = join(folder, 'node_modules/better-sqlite3');
      symlinkSync(join(ROOT, 'node_modules/better-sqlite3'), driver);
      rmSync(binary);
      writeFileSync(binary, content.with(1000, content[1000]! ^ 1));
      const { code, stdout, stderr } = await host.cli([...CREATE, '--json']);
      writeFileSync(binary, content);
      rmSync(driver);
      assert.equal(code, 1, stderr);
      const { code: why, error } = JSON.parse(stdout) as { code: string; error: string };
      assert.equal(why, 'DRIVER_UNSUPPORTED');
      assert.match(
        error,
        /^The binary of @svc-api\/sqlite-\S+ is not the one .* SHA-256 of \S+ is \w{64}, not \w{64}\./,
      );
    });
  });

  it('say which one is missing where those of another platform are installed', async () => {
    const [os, cpu, target] = OTHER;
    const { folder, host } = await install(`--os=${os}`, `--cpu=${cpu}`);
    assert.deepEqual(readdirSync(join(folder, 'node_modules/@svc-api')), [`sqlite-${target}`]);
    const { code, stderr } = await host.cli(CREATE);
    assert.equal(code, 1);
    const said = stderr.replaceAll(/\s+/g, ' ');
    assert.match(
      said,
      /no binary that runs on \w+ \w+.* \(@svc-api\/sqlite-\S+ is not installed\)\. Install svc-api again/,
    );
    assert.ok(said.includes(`@svc-api/sqlite-${TARGET}`) && said.includes('DRIVER_UNSUPPORTED'), said);
  });
});
