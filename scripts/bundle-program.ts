import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { embedded } from './embedded.ts';
import { type CommandFile, ownCommands } from './own-commands.ts';
import { build, type BuildOptions, type Plugin } from 'esbuild';

/** A change to the text of files. It must apply to the file of a package that it names. */
interface Change {
  readonly file: RegExp;
  readonly from: RegExp;
  readonly to: string;
}

const CHANGES: readonly Change[] = [
  // In a script, which the bundle is, Node has no `import()` for what is outside: see `requireCached`.
  {
    file: /\/src\/.*\.ts$/,
    from: /(?<!typeof )\bimport\((?='(?:node:|pg'|@nats-io\/|@opentelemetry\/))/g,
    to: 'importModule(',
  },
  {
    file: /\/@oclif\/core\/lib\/(module-loader|config\/ts-path)\.js$|\/lilconfig\/src\/index\.js$/,
    from: /\bawait import\(/g,
    to: 'await importModule(',
  },
];

/**
 * What is not for the program to bring: the SDK of OpenTelemetry, for who wants traces, and a compiler, for oclif.
 * prom-client needs its API.
 */
const OTHERS = [
  ...['core', 'resources', 'sdk-trace', 'exporter-trace-otlp-proto'].map((name) => `@opentelemetry/${name}`),
  'typescript',
];
/** What stores and feeds need that not all have. */
const LOADED = ['pg', '@nats-io/transport-node', '@nats-io/jetstream'];
/** What runs in a thread of its own, beside the program that starts it. */
const WORKER = "require('./src/store/sqlite/write-worker.ts')";

/** Those of each bundle that has oclif and the driver in it. */
const COMMON_CHANGES: readonly Change[] = [
  // V8 loads its collation rules for it, which takes as long as a fifth of Node's start. Ids are ASCII.
  {
    file: /\/@oclif\/core\/lib\/config\/plugin\.js$/,
    from: /a\.id\.localeCompare\(b\.id\)/g,
    to: '(a.id < b.id ? -1 : 1)',
  },
  // oclif has two of its ninety spinners, and we show none.
  {
    file: /\/@oclif\/core\/lib\/ux\/action\/spinner\.js$/,
    from: /require\("cli-spinners"\)/g,
    to: "{ dots2: { frames: ['-'] }, line: { frames: ['-'] } }",
  },
  // It would keep the text of the manifest, and promises of files load what reads lines.
  {
    file: /\/@oclif\/core\/lib\/util\/fs\.js$/,
    from: /await \(0, promises_1\.readFile\)\(path, 'utf8'\);\s+cache\.set\(path, contents\);/g,
    to: "(0, node_fs_1.readFileSync)(path, 'utf8');",
  },
  {
    file: /\/lilconfig\/src\/index\.js$/,
    from: /= fs\.promises\.readFile;/g,
    to: '= (...args) => fs.promises.readFile(...args);',
  },
  // HTTP/2 is not served, and would load TLS.
  {
    file: /\/@hono\/node-server\/dist\/index\.mjs$/,
    from: /import \{ Http2ServerRequest, constants \} from "node:http2";/g,
    to: 'class Http2ServerRequest {} const constants = {};',
  },
  // The log is written by this thread, and starts no other one.
  { file: /\/pino\/lib\/transport\.js$/, from: /require\('thread-stream'\)/g, to: 'undefined' },
  {
    file: /\/pino\/lib\/tools\.js$/,
    from: /const \{ isMainThread \} = require\('worker_threads'\)/g,
    to: 'const isMainThread = true',
  },
  {
    file: /\/sonic-boom\/index\.js$/,
    from: /const assert = require\('assert'\)/g,
    to: "const assert = (...args) => require('assert')(...args)",
  },
  // The driver looks for its binaries beside itself.
  { file: /\/better-sqlite3\/lib\/binding\.js$/, from: /\b__dirname\b/g, to: `__dirname, 'better-sqlite3', 'lib'` },
];

/**
 * Bundles oclif, the commands and what they import into `dist/program.cjs`, for `bin/run.js` alone: a host brings its
 * own oclif, and its extensions their graphql. Optional packages stay outside.
 * @returns the files that it consists of
 */
export function bundleProgram(root: string): Promise<string[]> {
  const changes = [...CHANGES, ...COMMON_CHANGES];
  return bundleInto(join(root, 'dist'), root, entryOf(ownCommands(root)), {
    changes,
    external: [...OTHERS, ...LOADED],
  });
}

/**
 * Bundles the same with `help` and all packages, for where nothing else is: the image of a container.
 * @returns the files that it consists of
 */
export function bundleWholeProgram(root: string, outdir: string): Promise<string[]> {
  const help = { id: 'help', file: 'node_modules/@oclif/plugin-help/lib/commands/help.js' };
  // Stack traces have the names that functions had.
  const shorter = { minifyIdentifiers: true, keepNames: true };
  const options = { changes: COMMON_CHANGES, external: OTHERS, ...shorter };
  return bundleInto(outdir, root, entryOf([...ownCommands(root), help]), options);
}

/** What bundles of the program differ in. */
interface BundleOptions extends Pick<BuildOptions, 'minifyIdentifiers' | 'keepNames'> {
  readonly changes: readonly Change[];
  /** What is not bundled. */
  readonly external: string[];
}

/** Modules of Node of which most runs use nothing, and that take up to 2 MB each: what is used of them loads them. */
const LOADED_ON_USE = /^(?:node:)?(dns\/promises|fs\/promises|https|readline|tls|worker_threads)$/;

const loadedOnUse: Plugin = {
  name: 'some modules of Node are loaded on use',
  setup(bundle) {
    bundle.onResolve({ filter: LOADED_ON_USE }, ({ path, namespace }) =>
      namespace === 'on-use' ? { path, external: true } : { path: LOADED_ON_USE.exec(path)![1]!, namespace: 'on-use' },
    );
    bundle.onLoad({ filter: /./, namespace: 'on-use' }, ({ path }) => {
      const names = Object.keys(createRequire(import.meta.url)(path) as object);
      const contents = `for (const name of ${JSON.stringify(names)})
        Object.defineProperty(exports, name, { enumerable: true, get: () => require('node:${path}')[name] });`;
      return { contents };
    });
  },
};

/** Writes the program, and beside it what the thread that writes runs. @returns the files that they consist of */
async function bundleInto(
  outdir: string,
  root: string,
  program: string,
  { changes, ...options }: BundleOptions,
): Promise<string[]> {
  const contents = { 'program.cjs': program, 'write-worker.cjs': WORKER };
  const results = await Promise.all(
    Object.entries(contents).map(([name, entry]) =>
      build({
        ...programOptions(root, entry),
        ...options,
        plugins: [loadedOnUse, changedBy(changes)],
        outfile: join(outdir, name),
      }),
    ),
  );
  mkdirSync(outdir, { recursive: true });
  for (const { path, text } of results.flatMap(({ outputFiles }) => outputFiles)) writeFileSync(path, asciiOf(text));
  return results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
}

/** What bundles of the program have in common. */
function programOptions(root: string, contents: string) {
  return {
    write: false,
    absWorkingDir: root,
    stdin: { contents, resolveDir: root },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    metafile: true,
    // CommonJS would get an object with all names of the package for each file that imports it.
    alias: {
      graphql: 'graphql/index.mjs',
      'graphql/execution/collectFields.js': 'graphql/execution/collectFields.mjs',
    },
    define: { 'import.meta.url': 'ownUrl', 'import.meta.resolve': 'ownResolve' },
    banner: {
      js: `const { pathToFileURL: ownUrlOf } = require('node:url');
const ownUrl = ownUrlOf(__filename).href, ownResolve = (name) => ownUrlOf(require.resolve(name)).href;`,
    },
  } as const satisfies BuildOptions;
}

/**
 * A script in ASCII, as `requireCached` reads it: for a single other character, V8 would keep two bytes of each. The
 * bundler leaves such characters in regular expressions.
 */
export function asciiOf(script: string): string {
  return script.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What `bin/program.cjs` uses. The commands are what oclif's strategy "explicit" reads; each is loaded on use. */
function entryOf(commands: readonly CommandFile[]): string {
  const getters = commands.map(({ file, id }) => `get '${id}'() { return require('./${file}').default; },`);
  return `
    exports.run = (...args) => require('@oclif/core/run').run(...args);
    exports.reportFailure = (...args) => require('./src/cli/explain/report.ts').reportFailure(...args);
    exports.printVersion = (...args) => require('./src/cli/help/version.ts').printVersion(...args);
    Object.defineProperty(exports, 'Help', { get: () => require('./src/cli/help/own-help.ts').default });
    exports.commands = { ${getters.join('\n')} };`;
}

/** Changes some files while they are bundled. */
function changedBy(all: readonly Change[]): Plugin {
  return {
    name: 'some files are changed',
    setup(bundle) {
      bundle.onLoad({ filter: /\.m?[jt]s$/ }, ({ path }) => {
        const changes = all.filter(({ file }) => file.test(path));
        const isOwn = path.includes('/src/');
        if (changes.length === 0 && !isOwn) return undefined;
        let contents = readFileSync(path, 'utf8');
        if (isOwn) contents = embedded(path, contents);
        for (const { from, to } of changes) {
          if (path.includes('node_modules') && contents.search(from) < 0)
            throw new Error(`${path} has no ${from.source}. Adapt scripts/bundle-program.ts.`);
          contents = contents.replaceAll(from, to);
        }
        return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
      });
    },
  };
}
