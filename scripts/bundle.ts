import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundleConsole } from './bundle-console.ts';
import { embedded } from './embedded.ts';
import { readDeclarations } from './library-surface.ts';
import { licensesOf } from './licenses.ts';
import { COMMAND_FILES } from './own-commands.ts';
import { sbomOf } from './sbom.ts';

/**
 * Bundles the modules of the commands and the library, and some packages, into a few files, since loading many small
 * files dominates start-up time. All other packages stay external, and are shared with a host. Declarations stay as tsc
 * emitted them.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
/** Files that load no rules of keys, because plugins add fields before anything is built from the table of fields. */
const beforeRules = ['src/plugin.ts', 'src/cli/own-program.ts', 'src/cli/plugins/init.ts'];
const entryPoints = globSync([...COMMAND_FILES, 'src/{index,express,fastify}.ts', ...beforeRules], { cwd: root });

/**
 * Packages whose code is in `dist`, with their own imports: those that a command needs to start, since they have many
 * files, and those that use graphql. A host can have another graphql, which a package manager would place beside the
 * latter; bundled, they use ours.
 */
const BUNDLED = /^(kysely|@oclif\/core|@inquirer\/\w+|@hono\/graphql-server|@graphql-tools\/schema)(\/|$)/;
/** Packages that bundled ones leave out: hono and graphql, which we have, and a compiler that oclif does not need. */
const LEFT_OUT = /^(hono|graphql|typescript)(\/|$)/;

/** The code of a thread. It is beside the chunk that starts it, as in the sources. */
const worker = 'src/store/sqlite/write-worker.ts';
/** The help class, which oclif loads. */
const help = 'src/cli/help/own-help.ts';

/** Files that are loaded lazily, by `import()`. Each gets a chunk of its own, like entry points. */
const lazy = new Set(
  globSync('src/**/*.{ts,tsx}', { cwd: root, exclude: beforeRules }).flatMap((from) =>
    Array.from(readFileSync(`${root}${from}`, 'utf8').matchAll(/\bimport\('(\.[^']+)'\)/g), ([, to]) =>
      join(dirname(from), to!),
    ),
  ),
);

/**
 * Imports added to a file. The bundler makes a chunk for each set of entry points that share code: if all of them
 * import the rules, and all commands their base class, each of these two becomes one chunk.
 */
function sharedBy(path: string): string[] {
  const isBefore = beforeRules.includes(path) || path === 'src/version.ts';
  const loadsRules = !isBefore && (entryPoints.includes(path) || lazy.has(path));
  const rules = loadsRules ? ['src/service/open-keys.ts', 'src/features/index.ts'] : [];
  const command = isCommand(path) ? ['src/cli/manage/key-command.ts', 'src/cli/input/key-flags.ts'] : [];
  return [...rules, ...command].filter((shared) => shared !== path);
}

function isCommand(path: string): boolean {
  return /^src\/(features\/[^/]+\/)?commands\//.test(path);
}

/** The path of an entry point in `dist`, without its extension. oclif finds all commands in one folder. */
function outOf(path: string): string {
  return path.replace(/^src\/(features\/[^/]+\/(?=commands\/))?|\.tsx?$/g, '');
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
  // Node prints the line of an uncaught error, so lines stay short.
  lineLimit: 120,
  // CommonJS packages require Node's modules.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
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
      name: 'packages are external, except some',
      setup(bundle) {
        bundle.onResolve({ filter: /^[^./#]/ }, ({ path, importer }) => {
          const isBundled = importer.includes('/node_modules/') ? !LEFT_OUT.test(path) : BUNDLED.test(path);
          return isBundled ? undefined : { path, external: true };
        });
      },
    },
  ],
});

for (const { path, text } of outputFiles) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// This bundle runs without Node, so it shares no file with the others, and is small for direct use.
await build({
  absWorkingDir: root,
  entryPoints: ['src/client.ts'],
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  minify: true,
});

const declarations = readDeclarations();
for (const file of globSync('dist/**/*.d.ts', { cwd: root })) if (!declarations.has(file)) rmSync(join(root, file));

// Packages in both bundles are listed once.
const bundled = [...Object.keys(metafile.inputs), ...(await bundleConsole(root))];
writeFileSync(`${root}dist/LICENSES.txt`, licensesOf(bundled, root));
writeFileSync(`${root}dist/sbom.cdx.json`, sbomOf(bundled, root));
