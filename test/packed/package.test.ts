import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installHost, mustRun, ON_CORE, packedFile, TSC } from '../support/host.ts';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** A program with the library and its own Hono app. */
const PROGRAM = `
  import { Hono } from 'hono';
  import { bearerAuth, type BearerEnv, createApp, listen, openKeys, type OpenKeys, type RunningServer } from 'svc-api';
  const keys: OpenKeys = await openKeys({ database: './keys.sqlite' });
  const { key: secret } = await keys.create({ name: 'Reader', permissions: ['DOCKER:READ_ANY'] }, { actor: 'operator' });
  const { key: other } = await keys.create({ name: 'Guest', roles: ['GUEST'] }, { actor: 'operator' });
  const app = new Hono<BearerEnv>();
  app.use('/docker/*', bearerAuth({ keys, permission: 'DOCKER:READ_ANY' }));
  app.get('/docker/ps', (c) => c.text('containers for ' + c.get('principal').apiKey.name));
  app.route('/', await createApp({ keys, console: true }));
  const server: RunningServer = await listen({ app, host: '127.0.0.1', port: 0 });
  const ask = async (path: string, key?: string) => {
    const response = await fetch(server.url + path, key ? { headers: { authorization: \`Bearer \${key}\` } } : {});
    return [response.status, response.ok ? await response.text() : ''];
  };
  const [, signIn] = await ask('/console/sign-in');
  const styled = await ask('/console/' + /assets[^"]+[.]css/.exec(String(signIn))![0]);
  console.log(JSON.stringify([await ask('/docker/ps'), await ask('/docker/ps', other), await ask('/docker/ps', secret), (await ask('/healthz'))[0], styled[0]]));
  await server.stop();
  await keys.close();
`;

/** Valid and invalid hooks of a host. */
const HOOKS = `
  import type { SchemaHook } from 'svc-api';
  export const one: SchemaHook = async function ({ config }) {
    this.log(config.bin);
    return { resources: ['BACKUP', { name: 'SAFE', credentials: true }] };
  };
  export const other: SchemaHook = async ({ config }) => ({ typeDefs: config.bin, resolvers: async () => ({}) });
  export const none: SchemaHook = async () => undefined;
  // @ts-expect-error -- another field
  export const wrong: SchemaHook = async () => ({ typedefs: '' });
  // @ts-expect-error -- no list
  export const alsoWrong: SchemaHook = async () => ({ resources: 7 });
`;

/** A plugin that exports its parts, as the pages of docs/plugins describe them. */
const PLUGIN = `
  import type { Actor, AddedFields, DoctorCheck, Feature, FeatureHook, Port, Transaction } from 'svc-api/feature';
  declare module 'svc-api' {
    interface OwnActions {
      APPROVE: true;
    }
  }
  interface Item {
    id: string;
  }
  interface Reader {
    list(): Promise<Item[]>;
  }
  interface Writer extends Reader {
    add(item: Item): Promise<void>;
  }
  export const QUEUE: Port<Reader, Writer> = { name: 'queue' };
  export const refusal = (message: string) => Object.assign(new Error(message), { code: 'QUEUE_REFUSED' });
  export const fields = { team: { kind: 'line', label: 'Team', help: 'Its team.' } } satisfies AddedFields;
  export const add = (transaction: Transaction, id: string) => transaction.port(QUEUE).add({ id });
  export const nameOf = (actor: Actor) => (actor === 'operator' ? actor : actor.apiKey.name);
  export const check = {
    name: 'SVC_API_QUEUE',
    run: async ({ store }) => [{ status: 'ok', message: String((await store?.repository.port(QUEUE).list())?.length) }],
  } satisfies DoctorCheck;
  export const feature = {
    name: 'svc-api-queue',
    fields,
    actions: ['APPROVE'],
    onKeys: {
      refuses: async ({ name }) => (name === 'Frozen' ? refusal(name) : undefined),
      changing: async (transaction, [change]) => add(transaction, change!.after.id),
    },
    operations: {
      queueItem: {
        root: 'Mutation',
        needs: 'QUEUE:APPROVE',
        does: 'Queues something.',
        run: (keys, { id }: { id: string }, actor) =>
          keys.write(async (transaction) => {
            await add(transaction, id);
            return { id, by: nameOf(transaction.caller) };
          }, actor),
      },
    },
    schema: async () => ({ typeDefs: 'extend type Mutation { queueItem(id: ID!): Item }' }),
    routes: async (app, { bearer, keys }) => {
      app.post('/queue/:id', bearer('/queue/:id', 'QUEUE:APPROVE').auth, async (context) => {
        const id = context.req.param('id');
        await keys.write((transaction) => add(transaction, id), context.get('principal'));
        return context.json(await keys.findById(id, context.get('principal')));
      });
    },
    background: async ({ keys, turn, log, measure }) => {
      measure([{ name: 'svc_api_queue_length', kind: 'gauge', help: 'Its length.', read: () => [[1]] }]);
      void turn.then(() => keys.store.check()).catch((error: unknown) => log.warn({ err: error }, 'no check'));
      return { prepare: async ({ config }) => () => void config.added['queue'], stop: async () => {} };
    },
    notices: { queue: async () => ({ open: ({ url }) => async ({ body }, { signal }) => void (await fetch(url, { body, signal })) }) },
    checks: [check],
  } satisfies Feature;
  export const hook: FeatureHook = async () => feature;
`;

/** A library that exports values with svc-api's types. */
const LIBRARY = `
  import { createApp, keysOf, KeysError, listen, loadConfig, openEdge, openKeys, openLog, OPERATOR, bearerAuth, startTelemetry } from 'svc-api';
  const by = { actor: OPERATOR } as const;
  export const log = openLog('info');
  export const keys = await openKeys();
  export const edge = await openEdge({ origin: 'x', token: 'y' });
  export const host = keysOf;
  export const check = keys.check;
  export const checked = await keys.check({ secret: 'x' });
  export const principal = checked.ok ? checked.principal : undefined;
  export const accepted = checked.ok ? checked : undefined;
  export const refused = checked.ok ? undefined : checked;
  export const created = await keys.create({ name: 'x' }, by);
  export const key = created.apiKey;
  export const found = await keys.get('x', by);
  export const rotation = key.rotation;
  export const person = key.person;
  export const limits = key.limits;
  export const page = await keys.list({}, by);
  export const updated = await keys.update('x', {}, by);
  export const confusable = updated.confusable;
  export const changed = await keys.disable('x', by);
  export const rotated = await keys.rotate('x', {}, by);
  export const issued = rotated.issued;
  export const finished = await keys.finishRotation('x', by);
  export const rolledBack = await keys.rollBackRotation('x', by);
  export const deleted = await keys.delete(['x'], by);
  export const app = await createApp({ keys });
  export const server = await listen({ app, host: 'x', port: 1 });
  export const config = await loadConfig();
  export const routes = config.routes;
  export const upstreams = config.upstreams;
  export const people = config.people;
  export const federation = config.federation;
  export const notices = config.notices;
  export const telemetry = await startTelemetry({});
  export const watchers = telemetry.watchers;
  export const middleware = bearerAuth({ keys });
  export const code = (error: KeysError) => error.code;
  export const fields = { ...config };
  export class Own { keys = keys; rotate(id: string) { return keys.rotate(id, {}, by); } }
`;

const GRAPHQL = ['@hono/graphql-server', '@graphql-tools/schema', '@graphql-tools/utils'];
const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];

describe('the packed package', () => {
  it('names only existing files, as plugins of package managers check', () => {
    const { files: named, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      files: string[];
      exports: Record<string, unknown>;
    };
    const paths = [...named, ...Object.values(exports).filter((path) => typeof path === 'string')];
    assert.deepEqual(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      [],
    );
    assert.equal(exports['./schema.graphql'], './docs/schema.graphql');
  });

  let tarball: string;
  let unpacked: string;
  let files: string[];
  before(async () => {
    tarball = packedFile();
    const folder = tempFolder();
    await mustRun('tar', ['-xzf', tarball, '-C', folder], { cwd: ROOT });
    unpacked = join(folder, 'package');
    files = (await mustRun('find', ['.', '-type', 'f'], { cwd: unpacked }))
      .trim()
      .split('\n')
      .map((path) => path.slice(2));
  });

  it('holds what runs and its documentation, and nothing else', () => {
    const wanted = [
      'bin/run.js',
      'bin/node-version.js',
      'bin/stand-in-for-user.js',
      'dist/LICENSES.txt',
      'dist/sbom.cdx.json',
      'dist/cli/own-program.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/express.js',
      'dist/express.d.ts',
      'dist/fastify.js',
      'dist/fastify.d.ts',
      'dist/client.js',
      'dist/client.d.ts',
      'dist/write-worker.js',
      'dist/commands/serve.js',
      'dist/console/console.js',
      'dist/console/console.css',
      'dist/console/console.svg',
      'dist/commands/apikey/index.js',
      'docs/cli.md',
      'examples/keys.yaml',
      'examples/README.md',
      'examples/ansible/keys.yml',
      'examples/github-actions/deploy.yml',
      'examples/gitlab-ci/.gitlab-ci.yml',
      'examples/remote/apply.yml',
      'examples/terraform/key.mjs',
      'examples/svc-api.yaml',
      'examples/docker/Dockerfile',
      'examples/kubernetes/postgres.yaml',
      'examples/systemd/svc-api.socket',
      'examples/python/get_key.py',
      'examples/web-app/start.js',
      'examples/nginx/grafana.conf',
      'examples/caddy/Caddyfile',
      'examples/haproxy/svc-api.lua',
      'examples/apache/grafana.conf',
      'schemas/config.schema.json',
      'schemas/keys.schema.json',
      'oclif.manifest.json',
      'README.md',
      'LICENSE',
    ];
    assert.deepEqual(
      wanted.filter((file) => !files.includes(file)),
      [],
    );
    const allowed = [
      /^bin\/(run|node-version|stand-in-for-user)\.js$/,
      /^dist\/(LICENSES\.txt|sbom\.cdx\.json)$/,
      /^dist\/.*\.(js|d\.ts)$/,
      /^dist\/console\/console\.(js|css|svg)$/,
      /^docs\/(((how-to|tutorials|explanation|library|plugins)\/)?[a-z-]+\.md|[a-z-]+\.(graphql|d\.ts)|README\.md)$/,
      /^examples\/(host-cli\/.*\.(js|json|md)|keys\.yaml|svc-api\.yaml|README\.md|litestream\.yml|systemd\/svc-api(\.service|\.socket|-edge\.service))$/,
      /^examples\/docker\/(Dockerfile(\.dockerignore)?|assemble\.sh|compose\.yaml|svc-api\.yaml|Caddyfile|README\.md)$/,
      /^examples\/kubernetes\/(README\.md|(postgres|sqlite|rotation|edge)\.yaml)$/,
      /^examples\/library\/([a-z-]+|(next|sveltekit)\/.+)\.(ts|mjs|js|json|html)$/,
      /^examples\/(ansible\/keys\.yml|github-actions\/(deploy\.yml|hosted\.yml|with-key\/action\.yml)|gitlab-ci\/(\.gitlab-ci|hosted)\.yml)$/,
      /^examples\/remote\/(apply|keys)\.(yml|yaml)$/,
      /^examples\/terraform\/(key\.mjs|main\.tf|keys\/main\.tf)$/,
      /^examples\/plugins\/[a-z-]+\/(README\.md|package\.json|(commands\/deploy\/)?[a-z]+\.js)$/,
      /^examples\/python\/get_key\.py$/,
      /^examples\/routes\/[a-z-]+\.yaml$/,
      /^examples\/mcp\/(server\.js|package\.json|svc-api\.yaml)$/,
      /^examples\/web-app\/[A-Za-z-]+\.(js|json|md|yaml)$/,
      /^examples\/(nginx|apache)\/(README\.md|grafana\.conf|svc-api-unavailable\.asis)$/,
      /^examples\/haproxy\/(README\.md|haproxy\.cfg|svc-api\.lua)$/,
      /^examples\/scanners\/(gitleaks\.toml|(trufflehog|pre-commit)\.yaml)$/,
      /^examples\/caddy\/(README\.md|Caddyfile)$/,
      /^examples\/(guard\/README\.md|(traefik|envoy)\/(README\.md|grafana\.ya?ml))$/,
      /^examples\/grafana\/(svc-api\.json|(prometheus|alerts)\.yml)$/,
      /^schemas\/(config|keys)\.schema\.json$/,
      /^(oclif\.manifest\.json|package\.json|README\.md|LICENSE|NOTICE|CHANGELOG\.md|SECURITY\.md)$/,
    ];
    const isOfTests = (file: string) =>
      /\btests?\b|\.sqlite$/.test(file) && !/^dist\/commands\/apikey\/notices\/test\.(js|d\.ts)$/.test(file);
    assert.deepEqual(
      files.filter((file) => !allowed.some((pattern) => pattern.test(file)) || isOfTests(file)),
      [],
    );
    assert.equal(statSync(join(unpacked, 'bin/run.js')).mode & 0o111, 0o111);
  });

  it('holds no secret, and nothing of the machine that built it', () => {
    for (const file of files) {
      const text = readFileSync(join(unpacked, file), 'utf8');
      assert.doesNotMatch(text, /\bsvc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/, file);
      assert.equal(text.includes(ROOT), false, file);
    }
  });

  it('has the license of each package whose code is bundled', () => {
    const licenses = readFileSync(join(unpacked, 'dist/LICENSES.txt'), 'utf8').split(/^-{80}$/m);
    for (const license of licenses)
      assert.match(license.trim(), /^\S+ \d+\.\d+\.\d+\S*\n\n.*(permission|redistribution)/is);
    const names = new Set(licenses.map((license) => license.trim().split(' ')[0]!));
    for (const name of ['@oclif/core', 'kysely', 'minimatch', '@inquirer/prompts', ...GRAPHQL])
      assert.ok(names.has(name), name);
  });

  it('asks oclif for its commands, and for one hook that looks for plugins', () => {
    const { oclif } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as { oclif: { hooks: object } };
    assert.deepEqual(oclif.hooks, { init: './dist/cli/plugins/init.js' });
    assert.deepEqual(Object.keys(oclif).toSorted(), [
      'additionalHelpFlags',
      'bin',
      'commands',
      'dirname',
      'helpClass',
      'hooks',
      'topicSeparator',
      'topics',
    ]);
  });

  describe('when it is installed', () => {
    let folder: string;
    before(async () => {
      folder = tempFolder();
      const manifest = {
        name: 'consumer',
        private: true,
        type: 'module',
        dependencies: { 'svc-api': `file:${tarball}` },
      };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
      await mustRun('npm', INSTALL, { cwd: folder });
      writeFileSync(join(folder, 'program.mts'), PROGRAM);
    });

    it('brings nothing that runs a script when it is installed, and nothing to compile but a driver with its binaries', () => {
      const lockfile = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { hasInstallScript?: boolean }>;
      };
      const packages = Object.entries(lockfile.packages);
      assert.ok(packages.length > 50);
      const driver = 'node_modules/better-sqlite3';
      assert.deepEqual(
        packages.flatMap(([path]) => (existsSync(join(folder, path, 'binding.gyp')) ? [path] : [])),
        [driver],
      );
      assert.equal(existsSync(join(folder, driver, 'build')), false);
      assert.equal(readdirSync(join(folder, driver, 'prebuilds')).length, 8);
      // npm reports this for any package with a binding.gyp.
      assert.deepEqual(
        packages.flatMap(([path, { hasInstallScript }]) => (hasInstallScript && path !== driver ? [path] : [])),
        [],
      );
    });

    it('is the program svc-api, with the command help', async () => {
      const bin = join(folder, 'node_modules/.bin/svc-api');
      const [help, flag] = await Promise.all([
        mustRun(bin, ['help', 'apikey'], { cwd: folder }),
        mustRun(bin, ['apikey', '-h'], { cwd: folder }),
      ]);
      assert.match(help, /\$ svc-api apikey/);
      assert.equal(help, flag);
    });

    it('completes in a shell', async () => {
      const bin = join(folder, 'node_modules/.bin/svc-api');
      const script = await mustRun(bin, ['autocomplete', 'bash'], { cwd: folder });
      assert.match(script, /^# Completion of svc-api for bash\n[^]*\ncomplete -F \w+ svc-api\n$/);
    });

    it('guards any Hono app as a library', async () => {
      const stdout = await mustRun(process.execPath, ['program.mts'], { cwd: folder });
      assert.deepEqual(JSON.parse(stdout), [[401, ''], [403, ''], [200, 'containers for Reader'], 200, 200]);
    });

    it('has types, which need no skipLibCheck', async () => {
      await mustRun(process.execPath, [...TSC, 'program.mts'], { cwd: folder });
    });

    it('has types that the declarations of a library over it can name', async () => {
      writeFileSync(join(folder, 'library.mts'), LIBRARY);
      const tsc = [...TSC.filter((flag) => flag !== '--noEmit'), '--declaration', '--emitDeclarationOnly'];
      await mustRun(process.execPath, [...tsc, '--outDir', 'types', 'library.mts'], { cwd: folder });
    });

    it('has types for plugins, which their declarations can name', async () => {
      writeFileSync(join(folder, 'plugin.mts'), PLUGIN);
      const tsc = [...TSC.filter((flag) => flag !== '--noEmit'), '--declaration', '--emitDeclarationOnly'];
      await mustRun(process.execPath, [...tsc, '--outDir', 'types', 'plugin.mts'], { cwd: folder });
    });

    for (const core of [5, 4] as const) {
      it(`has types for hooks of hosts on oclif core ${core}`, async () => {
        const host = await installHost({ 'svc-api': `file:${tarball}`, ...ON_CORE[core] });
        writeFileSync(join(host.folder, 'hook.mts'), HOOKS);
        await mustRun(process.execPath, [...TSC, 'hook.mts'], { cwd: host.folder });
      });
    }

    it('prints an uncaught error in a few lines: Node shows the line of code above it', async () => {
      const program = "import { openKeys } from 'svc-api'; await openKeys({ databse: 'x' });";
      const args = ['--input-type=module', '--eval', program];
      const { stderr, code } = await finished(spawn(process.execPath, args, { cwd: folder, env: cleanEnv() }));
      assert.equal(code, 1);
      assert.match(stderr, /^KeysError: openKeys: "databse" is not an option\. Did you mean database\?$/m);
      for (const line of stderr.split('\n')) assert.ok(line.length < 500, line);
    });

    it('does not allow imports of its inside', async () => {
      const inside = "import('svc-api/dist/keys/service.js').catch((error) => console.log(error.code))";
      assert.equal(await mustRun(process.execPath, ['-e', inside], { cwd: folder }), 'ERR_PACKAGE_PATH_NOT_EXPORTED\n');
    });
  });
});
