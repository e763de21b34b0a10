import { globSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/**
 * Puts what the commands and the library load into few files, with kysely, which alone has hundreds: a start is made of
 * files. All other packages stay outside: a host shares them, or they are native. The declarations stay as tsc made them.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const entryPoints = globSync(['src/commands/**/*.ts', 'src/index.ts', 'src/cli/completion/autocomplete.ts'], { cwd: root });

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
      name: 'packages stay outside, but for kysely',
      setup(bundle) {
        bundle.onResolve({ filter: /^[^./]/ }, ({ path }) => (/^kysely(\/|$)/.test(path) ? undefined : { path, external: true }));
      },
    },
  ],
});
