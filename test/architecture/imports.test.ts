import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cycleIn, importsOf } from '../../scripts/imports.ts';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

/**
 * Allowed imports between rooms. Files outside rooms and `service` may import everything, because they assemble the
 * parts.
 */
const FOLDERS: Record<string, { any: string[]; type?: string[]; dynamic?: string[] }> = {
  commands: { any: ['cli', 'keys', 'log', 'features/index'], type: ['*'], dynamic: ['*'] },
  cli: {
    any: ['yaml', 'keys', 'log', 'version', 'config/config'],
    type: ['*'],
    dynamic: ['features', 'service', 'config', 'remote', 'http'],
  },
  http: { any: ['graphql', 'limits', 'keys', 'file-watch', 'log'] },
  graphql: { any: ['keys'] },
  store: { any: ['limits', 'keys'] },
  config: { any: ['features/index', 'yaml', 'keys', 'file-watch', 'version'] },
  yaml: { any: ['keys'] },
  remote: { any: ['keys'] },
  limits: { any: ['keys'] },
  log: { any: ['keys'] },
  feature: { any: [], type: ['config', 'store', 'http', 'graphql', 'keys', 'limits', 'log'] },
  'file-watch': { any: [] },
  version: { any: [] },
  client: { any: [] },
  keys: { any: ['features/identities'] },
};

/**
 * Rooms of the core that each feature may import. A feature's commands may also import what the core's commands may.
 */
const FOR_FEATURES = ['feature', 'config', 'store', 'http', 'graphql', 'remote', 'limits', 'keys', 'log', 'version'];

/** The rooms of `keys`. Each may import only those before it. */
const ROOMS_OF_KEYS = [
  'secret',
  'basics',
  'permissions',
  'added',
  'key',
  'audit',
  'repository',
  'authorization',
  'lists',
  'changes',
  'authentication',
  'service',
  'operations',
];

/** Files that browsers load directly, because the room's door needs Node. */
const FOR_BROWSERS = new Set(['src/keys/permissions/actions.ts']);

/** Second doors of rooms, for callers that load them on demand. */
const SECOND_DOORS = new Set(['src/store/whole-store.ts']);

/** The folders that may import a package; with `type:`, only its types. Other packages must not be imported. */
const PACKAGES: Record<string, string[]> = {
  '@oclif/core': ['commands', 'cli', 'type:plugin'],
  '@inquirer/core': ['cli/prompts'],
  '@inquirer/figures': ['cli/prompts'],
  '@inquirer/prompts': ['cli/prompts'],
  kysely: ['store', 'features'],
  'better-sqlite3': ['store'],
  pg: ['store'],
  '@nats-io/transport-node': ['features/nats'],
  '@nats-io/jetstream': ['features/nats'],
  hono: ['http', 'features', 'type:feature', 'type:service/create-app'],
  '@hono/node-server': ['http', 'type:features/guard'],
  fastify: ['type:fastify'],
  '@hono/graphql-server': ['http'],
  graphql: ['graphql', 'http', 'type:features'],
  '@graphql-tools/schema': ['graphql'],
  pino: ['log'],
  'prom-client': ['features/telemetry'],
  '@opentelemetry/api': ['features/telemetry'],
  '@opentelemetry/resources': ['features/telemetry'],
  '@opentelemetry/sdk-trace': ['features/telemetry'],
  '@opentelemetry/exporter-trace-otlp-proto': ['features/telemetry'],
  semver: ['cli'],
  'string-width': ['cli/views', 'cli/wrapped'],
  negotiator: ['http', 'features/sessions'],
  'openid-client': ['features/people'],
  jose: ['features/federation'],
  dataloader: ['graphql'],
  yaml: ['yaml'],
  valibot: ['config', 'features'],
  // Checks Node's version before any of our modules can load.
  'bin/node-version.js': ['store', 'cli'],
};

/** Packages of one feature, of prompts, or of the configuration. A program loads them on first use. */
const LOADED_WHEN_USED = [
  '@inquirer/core',
  '@inquirer/figures',
  '@inquirer/prompts',
  '@nats-io/jetstream',
  '@nats-io/transport-node',
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-proto',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
  'jose',
  'openid-client',
  'prom-client',
  'valibot',
];

const SOURCES = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'));
const IMPORTS = SOURCES.flatMap((path) => importsOf(path, readFileSync(join(ROOT, path), 'utf8')));

describe('imports', () => {
  it('are found in every form', () => {
    const text = `import a from './a.ts';
      import { b, type C } from "./b.ts";
      import {
        d,
      } from './d.ts';
      import type { E } from './e.ts';
      import { type F, type G } from './f.ts';
      export { h } from './h.ts';
      export type { I } from './i.ts';
      export * from './j.ts';
      import './k.ts';
      const l = await import('./l.ts');
      function m(n: import('./n.ts').N) {} // import { o } from './o.ts'
      /** @example import { p } from 'p'; */
      import { q } from 'node:fs';
      import { r } from 'hono/bearer-auth';
      import { s } from '@oclif/core/interfaces';`;
    const found = importsOf('src/x/y.ts', text).map(({ to, kind }) => `${kind} ${to}`);
    const own = 'import a, import b, import d, type e, type f, import h, type i, import j, import k, dynamic l, type n';
    const expected = own.split(', ').map((entry) => entry.replace(/(\w)$/, 'src/x/$1.ts'));
    assert.deepEqual(found.toSorted(), [...expected, 'import hono', 'import @oclif/core'].toSorted());
    assert.ok(IMPORTS.length > 100);
  });

  it('between folders run one way', () => {
    const wrong = IMPORTS.filter(({ to }) => to.startsWith('src/')).filter(({ from, to, kind }) => {
      const here = folderOf(from);
      const rule = ruleFor(from);
      const allowed = [here, ...(rule?.any ?? []), ...(kind === 'import' ? [] : (rule?.[kind] ?? []))];
      return rule && !allowed.some((place) => place === '*' || isIn(place, to));
    });
    assert.deepEqual(wrong, []);
  });

  it('between the rooms of keys run one way', () => {
    const wrong = IMPORTS.filter(({ from, to }) => {
      if (folderOf(from) !== 'keys' || folderOf(to) !== 'keys') return false;
      return ROOMS_OF_KEYS.indexOf(roomOf(to)) > ROOMS_OF_KEYS.indexOf(roomOf(from));
    });
    assert.deepEqual(wrong, []);
    const there = new Set(SOURCES.filter((path) => folderOf(path) === 'keys').map(roomOf));
    assert.deepEqual([...there].toSorted(), ROOMS_OF_KEYS.toSorted());
  });

  it('of a room with an index.ts go through it, except for parts that are loaded separately by import()', () => {
    const doors = new Set(
      SOURCES.filter((path) => path.endsWith('/index.ts') && !/\/commands\/|^src\/features\/index\.ts$/.test(path)),
    );
    const fromOutside = IMPORTS.filter(({ from, to }) => {
      // The list of features contains only declarations.
      if (from === 'src/features/index.ts' && to.endsWith('/feature.ts')) return false;
      // A library function assembles parts, as commands do.
      if (from === 'src/features/library.ts' && to.endsWith('/library.ts')) return false;
      const outermost = [...doors].find((door) => isWithin(dirname(door), to) && !isWithin(dirname(door), from));
      return outermost !== undefined && to !== outermost;
    });
    const alone = new Set(fromOutside.filter(({ kind }) => kind === 'dynamic').map(({ to }) => to));
    const past = fromOutside.filter(({ to }) => !alone.has(to) && !FOR_BROWSERS.has(to) && !SECOND_DOORS.has(to));
    assert.deepEqual(past, []);
    // All of `keys` is loaded at once, so it has no parts to load on demand.
    const loadedAlone = [...alone].filter((path) => folderOf(path) === 'keys');
    assert.deepEqual(loadedAlone, []);
    const needless = [...FOR_BROWSERS, ...SECOND_DOORS].filter((path) => !fromOutside.some(({ to }) => to === path));
    assert.deepEqual(needless, []);
  });

  it('within a room are of its files, not of its index.ts', () => {
    const round = IMPORTS.filter(({ from, to, kind }) => {
      // Commands of a feature load its rules when they run. The list of features belongs to no room.
      const isOfList = to === 'src/features/index.ts';
      if (isOfCommands(from) ? isOfList || kind !== 'import' : isOfList && kind !== 'import') return false;
      return to.endsWith('/index.ts') && isWithin(dirname(to), from);
    });
    assert.deepEqual(round, []);
  });

  it('between the parts of a room, its folders and the files beside them, form no cycle', () => {
    const within = IMPORTS.filter(({ from, to }) => folderOf(from) === folderOf(to) && roomOf(from) !== roomOf(to));
    for (const [room, imports] of Map.groupBy(within, ({ from }) => folderOf(from))) {
      if (room === 'graphql') continue;
      const graph = Map.groupBy(imports, ({ from }) => roomOf(from));
      const found = cycleIn(new Map([...graph].map(([part, all]) => [part, all.map(({ to }) => roomOf(to))])));
      assert.deepEqual(found, []);
    }
  });

  it('between the rooms of keys are as ARCHITECTURE.md has them', () => {
    const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
    const documented = Array.from(page.matchAll(/^\| `keys\/([^`]+)` \|/gm), ([, room]) => room);
    assert.deepEqual(documented, ROOMS_OF_KEYS);
  });

  it('of the code that executes operations are packages only', () => {
    const room = 'src/graphql/execution/';
    const out = IMPORTS.filter(({ from, to }) => from.startsWith(room) && /^src\/(?!graphql\/execution\/)/.test(to));
    assert.deepEqual(out, []);
  });

  it('of packages stay in their folders', () => {
    const wrong = IMPORTS.filter(({ to }) => !to.startsWith('src/')).filter(({ from, to, kind }) => {
      const places = PACKAGES[to] ?? [];
      return !places.some((place) => {
        const [, onlyType, folder] = /^(type:)?(.*)$/.exec(place)!;
        const isThere = isIn(folder!, from) || (folder === 'cli' && isOfCommands(from));
        return isThere && (!onlyType || kind === 'type');
      });
    });
    assert.deepEqual(wrong, []);
    const imported = new Set(IMPORTS.map(({ to }) => to));
    const unused = Object.keys(PACKAGES).filter((name) => !imported.has(name));
    assert.deepEqual(unused, []);
  });

  it('of packages of one feature come with its use, not with its folder', () => {
    const loaded = IMPORTS.filter(({ kind }) => kind === 'import');
    for (const name of LOADED_WHEN_USED) {
      const loading = new Set([name]);
      for (const target of loading) for (const { from, to } of loaded) if (to === target) loading.add(from);
      loading.delete(name);
      const outside = [...loading].filter(
        (path) => path.endsWith('/index.ts') || !PACKAGES[name]!.some((place) => isIn(place, path)),
      );
      assert.deepEqual([name, outside], [name, []]);
    }
  });

  it('of any kind form no cycle', () => {
    const graph = Map.groupBy(IMPORTS, ({ from }) => from);
    assert.deepEqual(cycleIn(new Map([...graph].map(([from, all]) => [from, all.map(({ to }) => to)]))), []);
  });

  it('in a cycle are found', () => {
    const graph = { a: ['b', 'c'], b: ['c'], c: ['d'], d: ['b'] };
    assert.deepEqual(cycleIn(new Map(Object.entries(graph))), ['b', 'c', 'd', 'b']);
  });
});

function ruleFor(path: string): (typeof FOLDERS)[string] | undefined {
  const here = folderOf(path);
  const feature = FEATURES.find(({ name }) => here === `features/${name}`);
  if (!feature) return FOLDERS[here];
  const any = [...FOR_FEATURES, ...(feature.needs ?? []).map((needed) => `features/${needed}`)];
  if (path === `src/${here}/library.ts`) any.push('service');
  // Some iterate over all features, for example for metrics.
  if (!isOfCommands(path)) return { any, dynamic: ['features/index'] };
  const { any: own } = path.startsWith(`src/${here}/commands/`) ? FOLDERS.commands! : FOLDERS.cli!;
  return { any: [...any, 'cli', ...own], type: ['*'], dynamic: ['*'] };
}

/** True for a file of a feature that only its commands load. */
function isOfCommands(path: string): boolean {
  return /^src\/features\/[^/]+\/(commands|cli)\//.test(path);
}

/** True if a path is this place below src, or inside it. */
function isIn(place: string, path: string): boolean {
  return path.startsWith(`src/${place}/`) || path.startsWith(`src/${place}.`);
}

function isWithin(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`);
}

/** The folder below src, the folder of a feature, or the name of a file beside the folders. */
function folderOf(path: string): string {
  const [, first = '', second, third] = path.split('/');
  if (first === 'features' && third) return `${first}/${second}`;
  return dirname(path) === 'src' ? first.replace(/\.ts$/, '') : first;
}

/** The subfolder or file within a folder. */
function roomOf(path: string): string {
  return path
    .slice(`src/${folderOf(path)}/`.length)
    .split('/')[0]!
    .replace(/\.tsx?$/, '');
}
