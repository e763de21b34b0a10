import { hash } from 'node:crypto';
import { globSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundleConsole } from './bundle-console.ts';
import { asciiOf, bundleProgram } from './bundle-program.ts';
import { embedded } from './embedded.ts';
import { readDeclarations } from './library-surface.ts';
import { licensesOf } from './licenses.ts';
import { sbomOf } from './sbom.ts';

/**
 * Bundles what the commands and the library load, and some packages, into a few files: loading many small files
 * dominates start-up time. SQLite's driver is copied with its binaries: as a dependency, many package managers would
 * compile it. All other packages stay external: a host shares them. The declarations that programs read stay as tsc
 * emitted them.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const entryPoints = globSync(
  [
    'src/commands/**/*.ts',
    'src/{index,express,fastify}.ts',
    'src/cli/completion/autocomplete.ts',
    'src/cli/explain/report.ts',
  ],
  {
    cwd: root,
  },
);

/**
 * Packages that are bundled: kysely, since it has many files, and the libraries that use graphql, with what they import
 * themselves. A host may have another graphql, beside which a package manager would place them, though they are
 * dependencies: bundled, they use ours.
 */
const BUNDLED = /^(kysely|@hono\/graphql-server|@graphql-tools\/\w+|cross-inspect|@whatwg-node\/promise-helpers)(\/|$)/;

/** What runs in a thread of its own. It lies beside the chunk that starts it, as in the sources. */
const worker = 'src/store/sqlite/write-worker.ts';
/** What oclif loads for help. */
const help = 'src/cli/help/own-help.ts';

/** Files that are loaded lazily, by `import()`: each gets a chunk of its own, as entry points do. */
const lazy = new Set(
  globSync('src/**/*.{ts,tsx}', { cwd: root }).flatMap((from) =>
    Array.from(readFileSync(`${root}${from}`, 'utf8').matchAll(/\bimport\('(\.[^']+)'\)/g), ([, to]) =>
      join(dirname(from), to!),
    ),
  ),
);

/**
 * What a file imports in addition to its own imports. The bundler makes a chunk for each set of entry points that share
 * code: if all of them import the rules, and all commands their base class, each of these two becomes one chunk.
 */
function sharedBy(path: string): string[] {
  const rules = entryPoints.includes(path) || lazy.has(path) ? ['src/service/open-keys.ts'] : [];
  const command = path.startsWith('src/commands/')
    ? ['src/cli/manage/key-command.ts', 'src/cli/input/key-flags.ts']
    : [];
  return [...rules, ...command].filter((shared) => shared !== path);
}

/** The path of an entry point in `dist`, without its ending. */
function outOf(path: string): string {
  return path.replace(/^src\/|\.tsx?$/g, '');
}

const { metafile, outputFiles } = await build({
  write: false,
  absWorkingDir: root,
  entryPoints: Object.fromEntries([
    ...[...entryPoints, help].map((path) => [outOf(path), path]),
    ['write-worker', worker],
  ]),
  outbase: 'src',
  outdir: 'dist',
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  jsx: 'automatic',
  jsxImportSource: 'hono/jsx',
  minifyWhitespace: true,
  minifySyntax: true,
  // Node shows the line that threw above an error that nobody caught.
  lineLimit: 120,
  metafile: true,
  plugins: [
    {
      name: 'one chunk of shared code',
      setup(bundle) {
        bundle.onLoad({ filter: /\/src\/.*\.tsx?$/ }, ({ path }) => {
          const own = path.slice(root.length);
          const imports = sharedBy(own).map((shared) => `import './${relative(dirname(own), shared)}';`);
          const contents = [embedded(path, readFileSync(path, 'utf8')), ...imports].join('\n');
          return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' };
        });
      },
    },
    {
      name: 'the SQLite driver is the copy',
      setup(bundle) {
        bundle.onResolve({ filter: /^better-sqlite3$/ }, ({ path }) => ({ path: `#${path}`, external: true }));
      },
    },
    {
      name: 'packages are external, except some',
      setup(bundle) {
        bundle.onResolve({ filter: /^[^./#]/ }, ({ path }) =>
          BUNDLED.test(path) ? undefined : { path, external: true },
        );
      },
    },
  ],
});

for (const { path, text } of outputFiles) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, asciiOf(text));
}

const declarations = readDeclarations();
for (const file of globSync('dist/**/*.d.ts', { cwd: root })) if (!declarations.has(file)) rmSync(join(root, file));

// Linked, not copied: one file is loaded once. Two copies of SQLite in one process, as in tests that run a command
// themselves, would not respect one another's locks.
const driver = `${root}node_modules/better-sqlite3`;
for (const file of globSync(['lib/**/*.js', 'prebuilds/*', 'package.json', 'LICENSE'], { cwd: driver })) {
  const target = join(root, 'dist/better-sqlite3', file);
  mkdirSync(dirname(target), { recursive: true });
  linkSync(join(driver, file), target);
}

// Those of packages that both bundles have are named once; the driver's is beside it as well.
const bundled = [
  ...Object.keys(metafile.inputs),
  ...(await bundleProgram(root)),
  ...(await bundleConsole(root)),
  'node_modules/better-sqlite3/package.json',
];
writeFileSync(`${root}dist/LICENSES.txt`, licensesOf(bundled, root));
writeFileSync(`${root}dist/sbom.cdx.json`, sbomOf(bundled, root));
// For `sha256sum --check` in the driver's own package.
const binaries = globSync('prebuilds/*', { cwd: driver }).toSorted();
const sums = binaries.map((file) => `${hash('sha256', readFileSync(join(driver, file)))}  ${file}\n`);
writeFileSync(`${root}dist/better-sqlite3/SHA256SUMS`, sums.join(''));
