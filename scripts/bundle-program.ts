import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { build, type Plugin } from 'esbuild';

/** Commands that are loaded as chunks, from `dist/commands`. */
const NOT_BUNDLED = new Set(['serve', 'guard']);

/** Changes to the text of files. Each must apply to the file of a package that it names. */
const CHANGES = [
  // In a script, which the bundle is, Node has no `import()`: see `requireCached`.
  {
    file: /\/src\/.*\.ts$|\/@oclif\/core\/lib\/(module-loader|config\/ts-path)\.js$|\/lilconfig\/src\/index\.js$/,
    from: /\bawait import\((?!'(?:\.|yaml'))/g,
    to: 'await importModule(',
  },
  // V8 loads its collation rules for it, which takes as long as a fifth of Node's start. Ids are ASCII.
  {
    file: /\/@oclif\/core\/lib\/config\/plugin\.js$/,
    from: /a\.id\.localeCompare\(b\.id\)/g,
    to: '(a.id < b.id ? -1 : 1)',
  },
  // The driver looks for its binaries beside itself.
  { file: /\/better-sqlite3\/lib\/binding\.js$/, from: /\b__dirname\b/g, to: `__dirname, 'better-sqlite3', 'lib'` },
];

/**
 * Bundles oclif, the commands and what they import into `dist/program.cjs`, for `bin/run.js` alone: a host brings its
 * own oclif. Our packages that are imported where they are needed, by `import()`, stay outside, except yaml: it has
 * many files, and every command reads the configuration.
 * @returns the files that it consists of
 */
export async function bundleProgram(root: string): Promise<string[]> {
  const { metafile, outputFiles } = await build({
    write: false,
    absWorkingDir: root,
    stdin: { contents: entryOf(root), resolveDir: root },
    outfile: 'dist/program.cjs',
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    metafile: true,
    define: { 'import.meta.url': 'ownUrl' },
    banner: { js: `const ownUrl = require('node:url').pathToFileURL(__filename).href;` },
    plugins: [changed],
  });
  for (const { path, text } of outputFiles) writeFileSync(path, asciiOf(text));
  return Object.keys(metafile.inputs);
}

/** A script in ASCII, as `requireCached` reads it. The bundler leaves other characters in regular expressions. */
function asciiOf(script: string): string {
  return script.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What `bin/program.cjs` uses. The commands are what oclif's strategy "explicit" reads; each is loaded on use. */
function entryOf(root: string): string {
  const files = globSync('src/commands/**/*.ts', { cwd: root }).toSorted();
  const commands = files
    .map((file) => ({ file, id: idOf(file) }))
    .filter(({ id }) => !NOT_BUNDLED.has(id))
    .map(({ file, id }) => `get '${id}'() { return require('./${file}').default; },`);
  return `
    exports.run = require('@oclif/core/run').run;
    exports.flush = require('@oclif/core/flush').flush;
    exports.reportFailure = (...args) => require('./src/cli/explain/report.ts').reportFailure(...args);
    exports.printVersion = (...args) => require('./src/cli/help/version.ts').printVersion(...args);
    Object.defineProperty(exports, 'Help', { get: () => require('./src/cli/help/own-help.ts').default });
    exports.commands = { ${commands.join('\n')} };`;
}

/** `src/commands/apikey/index.ts` is `apikey`. */
function idOf(file: string): string {
  return file.replace(/^src\/commands\/(.*?)(\/index)?\.ts$/, '$1').replaceAll('/', ':');
}

const changed: Plugin = {
  name: 'some files are changed',
  setup(bundle) {
    bundle.onLoad({ filter: /\.(ts|js)$/ }, ({ path }) => {
      const changes = CHANGES.filter(({ file }) => file.test(path));
      if (changes.length === 0) return undefined;
      let contents = readFileSync(path, 'utf8');
      for (const { from, to } of changes) {
        if (path.includes('node_modules') && contents.search(from) < 0)
          throw new Error(`${path} has no ${from.source}. Adapt scripts/bundle-program.ts.`);
        contents = contents.replaceAll(from, to);
      }
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};
