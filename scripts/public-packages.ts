import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { sbomOfPart } from './sbom.ts';

/** What package managers read of a package. */
type Manifest = Record<string, unknown> & { name: string; version: string };

/** SQLite is in the binaries alone; around them is code of the driver in all packages. */
const [DRIVER, SQLITE] = ['better-sqlite3', 'sqlite'];

/**
 * Makes the packages that are published from the packed file: each binary of SQLite's driver in a package for its
 * platform, and all else in one that has these as optional dependencies, of its own version exactly. The same file
 * gives the same packages, byte by byte.
 * @returns the packed files, in the order in which they must be published: nobody may have a package to depend on
 * whose name could still be taken
 */
export function makePublicPackages(packed: string, folder: string): string[] {
  const work = mkdtempSync(join(tmpdir(), 'svc-api-public-'));
  try {
    execFileSync('tar', ['-xzf', packed, '-C', work]);
    const main = join(work, 'package');
    const driver = join(main, 'dist', DRIVER);
    const manifest = manifestIn(main);
    const bom = readFileSync(join(main, 'dist/sbom.cdx.json'), 'utf8');
    const sums = readFileSync(join(driver, 'SHA256SUMS'), 'utf8').trim().split('\n');
    const platforms = sums.map((line) => {
      const [sum, file] = line.split('  ') as [string, string];
      const target = basename(file, '.node');
      const own = platformManifest(manifest, target, file);
      const root = join(work, target);
      mkdirSync(dirname(join(root, file)), { recursive: true });
      renameSync(join(driver, file), join(root, file));
      const write = (name: string, text: string) => writeFileSync(join(root, name), text);
      write('package.json', jsonOf(own));
      write('LICENSE', readFileSync(join(driver, 'LICENSE'), 'utf8'));
      write('README.md', readmeOf(own, manifest, sum));
      write(
        'sbom.cdx.json',
        sbomOfPart(bom, own, (name) => [DRIVER, SQLITE].includes(name)),
      );
      return { root, ...own };
    });
    rmSync(join(driver, 'prebuilds'), { recursive: true });
    const optionalDependencies = Object.fromEntries(platforms.map(({ name, version }) => [name, version]));
    writeFileSync(join(main, 'package.json'), jsonOf({ ...manifest, optionalDependencies }));
    writeFileSync(
      join(main, 'dist/sbom.cdx.json'),
      sbomOfPart(bom, manifest, (name) => name !== SQLITE),
    );
    mkdirSync(folder, { recursive: true });
    return [...platforms, { root: main, ...manifest }].map((made) => pack(made, folder));
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Of the package for a platform: `linuxmusl-x64`, as the driver calls it. */
function platformManifest(main: Manifest, target: string, file: string): Manifest {
  const [system, cpu] = target.split('-') as [string, string];
  const os = system.replace('musl', '');
  const { version, homepage, bugs, author, repository, engines } = main;
  return {
    // As src/store/sqlite/find-driver.ts looks for it.
    name: `@${main.name}/sqlite-${target}`,
    version,
    description: `The binary of ${DRIVER} for ${target}, unchanged.`,
    homepage,
    bugs,
    license: 'MIT',
    author,
    repository,
    exports: { '.': `./${file}`, './package.json': './package.json' },
    engines,
    os: [os],
    cpu: [cpu],
    ...(os === 'linux' && { libc: [system === os ? 'glibc' : 'musl'] }),
    preferUnplugged: true,
  };
}

function readmeOf({ name, description }: Manifest, main: Manifest, sum: string): string {
  return `# ${name}

${String(description)} ${main.name} depends on it, and loads no binary but
those whose SHA-256 is in its \`dist/${DRIVER}/SHA256SUMS\`, as this one is:

    ${sum}
`;
}

/** As npm packs, with a time that is always the same. */
function pack({ root, name, version }: Manifest & { root: string }, folder: string): string {
  const packed = join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  const same = '--sort=name --owner=0 --group=0 --mode=u=rwX,go=rX --mtime=1985-10-26T08:15:00Z'.split(' ');
  const named = ['--transform', `s:^${basename(root)}:package:`];
  execFileSync('tar', ['-czf', packed, ...same, ...named, '-C', dirname(root), basename(root)]);
  return packed;
}

function manifestIn(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
}

function jsonOf(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
