import { cpSync, globSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/**
 * Puts what the commands and the library load into few files, with kysely, which alone has hundreds: a start is made of
 * files. SQLite's driver comes along as it is, with its binaries: package managers would compile it, had they to install
 * it. All other packages stay outside: a host shares them. The declarations stay as tsc made them.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const entryPoints = globSync(['src/commands/**/*.ts', 'src/index.ts', 'src/cli/completion/autocomplete.ts'], {
  cwd: root,
});

/** Files that are loaded later, by `import()`: each begins a file of its own, as the entries do. */
const later = new Set(
  globSync('src/**/*.ts', { cwd: root }).flatMap((from) =>
    Array.from(readFileSync(`${root}${from}`, 'utf8').matchAll(/\bimport\('(\.[^']+)'\)/g), ([, to]) =>
      join(dirname(from), to!),
    ),
  ),
);

/**
 * What a file is made to load beside what it asks for. The bundler makes a file for each set of entries that share
 * something: as all of them share the rules, and all commands what they have in common, these are one file each.
 */
function sharedBy(path: string): string[] {
  const rules = entryPoints.includes(path) || later.has(path) ? ['src/open-keys.ts'] : [];
  const command = path.startsWith('src/commands/')
    ? ['src/cli/manage/key-command.ts', 'src/cli/input/key-flags.ts']
    : [];
  return [...rules, ...command].filter((shared) => shared !== path);
}

for (const file of globSync('dist/**/*.{js,js.map}', { cwd: root })) rmSync(`${root}/${file}`);
await build({
  absWorkingDir: root,
  entryPoints,
  outbase: 'src',
  outdir: 'dist',
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  sourcemap: 'linked',
  plugins: [
    {
      name: 'what is shared is one file',
      setup(bundle) {
        bundle.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
          const own = path.slice(root.length);
          const imports = sharedBy(own).map((shared) => `import './${relative(dirname(own), shared)}';`);
          const contents = [readFileSync(path, 'utf8'), ...imports].join('\n');
          return { contents, loader: 'ts' };
        });
      },
    },
    {
      name: 'the driver is the one beside the bundle',
      setup(bundle) {
        bundle.onResolve({ filter: /^better-sqlite3$/ }, ({ path }) => ({ path: `#${path}`, external: true }));
      },
    },
    {
      name: 'packages stay outside, but for kysely',
      setup(bundle) {
        bundle.onResolve({ filter: /^[^./]/ }, ({ path }) =>
          /^kysely(\/|$)/.test(path) ? undefined : { path, external: true },
        );
      },
    },
  ],
});

for (const part of ['lib', 'prebuilds', 'package.json', 'LICENSE']) {
  cpSync(`${root}node_modules/better-sqlite3/${part}`, `${root}dist/better-sqlite3/${part}`, { recursive: true });
}
