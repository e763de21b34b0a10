import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Config } from '@oclif/core/config';
import { PAGES } from '../../src/features/console/parts/layout.tsx';
import { Visitor } from '../features/console/support/console.ts';
import { serveHost } from '../support/host.ts';
import { cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { startListening } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { migratedStore, tempFolder, tempStore } from '../support/temp.ts';

const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { feature?: string; aliases: string[] }>;
};
/** Our commands and their aliases. */
const OUR_IDS = Object.entries(MANIFEST.commands).flatMap(([id, { aliases }]) => [id, ...aliases]);
/** The host's own commands, with the same names as our top-level ones. */
const HOSTS_OWN = ['doctor', 'login', 'notices/list', 'notices/test', 'routes'];

/** A host CLI with this checkout as a plugin. */
function newHost(separator: string, plugins: readonly string[], settings?: unknown): string {
  const folder = join(tempFolder(), 'acme');
  cpSync(join(ROOT, 'examples/host-cli/bin'), join(folder, 'bin'), { recursive: true });
  mkdirSync(join(folder, 'node_modules/@oclif'), { recursive: true });
  for (const [to, from] of [
    ['svc-api', ROOT],
    ['@oclif/core', join(ROOT, 'node_modules/@oclif/core')],
  ] as const)
    symlinkSync(from, join(folder, 'node_modules', to));
  mkdirSync(join(folder, 'commands/notices'), { recursive: true });
  for (const name of HOSTS_OWN)
    writeFileSync(
      join(folder, `commands/${name}.js`),
      `import { Command } from '@oclif/core';
       export default class Own extends Command { static summary = 'Own.'; async run() { this.log('own ${name}'); } }`,
    );
  const oclif = {
    bin: 'acme',
    dirname: 'acme',
    commands: './commands',
    topicSeparator: separator,
    topics: { notices: { description: 'Messages of acme.' } },
    plugins,
  };
  const manifest = {
    name: 'acme',
    version: '1.0.0',
    type: 'module',
    dependencies: { 'svc-api': '*' },
    oclif,
    'svc-api': settings,
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  return folder;
}

function runIn(folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const home = { XDG_DATA_HOME: join(folder, 'home') };
  return finished(
    spawn(process.execPath, [join(folder, 'bin/run.js'), ...args], { cwd: folder, env: cleanEnv({ ...home, ...env }) }),
  );
}

for (const separator of [' ', ':']) {
  describe(`a host with ${JSON.stringify(separator)} between topics, and its own login, doctor, notices and routes`, () => {
    const folder = newHost(separator, ['svc-api']);
    const typed = (id: string) => id.split(':').join(separator).split(' ');
    const run = (id: string, ...args: string[]) => runIn(folder, [...typed(id), ...args]);
    const name = (id: string) => `acme ${typed(id).join(' ')}`;

    it('has our commands beneath apikey, and serve beside it, and keeps its own', async () => {
      const [before, after] = await Promise.all([Config.load(newHost(separator, [])), Config.load(folder)]);
      const idsOf = ({ commandIDs }: Config) => commandIDs.toSorted();
      assert.deepEqual(idsOf(after), [...idsOf(before), ...OUR_IDS].toSorted());
      const topicsOf = ({ topics }: Config) => topics.map((topic) => topic.name);
      assert.deepEqual(
        topicsOf(after).filter((topic) => !topicsOf(before).includes(topic) && !topic.startsWith('apikey')),
        ['serve'],
      );
      assert.equal(after.findTopic('notices')?.description, 'Messages of acme.');
      for (const own of HOSTS_OWN) {
        const { stdout, stderr } = await run(own.replace('/', ':'));
        assert.deepEqual([stdout, stderr], [`own ${own}\n`, '']);
      }
    });

    // The separator makes no difference here.
    if (separator === ' ')
      it('runs each of ours by its long name', async () => {
        const database = tempStore();
        const place = ['--database', database];
        const created = await run('apikey:create', '--name', 'CI', '--roles', 'GUEST', ...place);
        assert.equal(created.code, 0, created.stderr);
        const backup = join(tempFolder(), 'backup.sqlite');
        for (const [id, ...args] of [
          ['apikey:backup', backup, ...place],
          ['apikey:restore', backup, '--yes', ...place],
          ['apikey:doctor', '--fix', ...place],
          ['apikey:doctor', ...place],
          ['apikey:logout', '--server', 'http://127.0.0.1:9', '--local'],
        ] as const) {
          const { code, stderr } = await run(id, ...args);
          assert.equal(code, 0, `${id}: ${stderr}`);
        }
        for (const [id, ...args] of [
          ['apikey:login', '--server', 'http://127.0.0.1:9'],
          ['apikey:guard', 'http://127.0.0.1:9', '--any-key', '--port', 'http'],
          ['apikey:notices:test'],
          ['apikey:routes:check'],
        ] as const) {
          const { code, stderr } = await run(id, ...args);
          assert.notEqual(code, 0);
          assert.match(stderr, /^Error: .*\nCode: [A-Z_]+\n/s);
        }
      });

    it('is named in all advice, with commands that it has', async () => {
      const server = ['--server', 'https://keys.example.org'];
      const list = await run('apikey:list', ...server);
      assert.match(list.stderr, new RegExp(`Run "${name('apikey:login')} --server https://keys.example.org"`));
      const exec = await run('apikey:exec', '--roles', 'GUEST', ...server, '--', 'true');
      assert.match(exec.stderr, new RegExp(`Run "${name('apikey:login')} --server`));
      const backup = await run('apikey:backup', 'x.sqlite', ...server);
      assert.match(backup.stderr, new RegExp(`"${name('apikey:backup')}" needs the key store itself`));
      const missing = await run('apikey:doctor', '--database', tempStore());
      assert.match(
        missing.stdout.replaceAll(/\s+/g, ' '),
        new RegExp(`The first "${name('apikey:create')}" makes one`),
      );
    });

    it('is named on the pages that it serves', async () => {
      const served = await serveHost({ folder, node: process.execPath, cli: () => assert.fail() });
      try {
        for (const path of ['/', '/console/sign-in']) {
          const page = await (await fetch(served.url + path, { headers: { accept: 'text/html' } })).text();
          assert.ok(page.includes(`<code>${name('apikey:create')}</code>`), page);
        }
      } finally {
        await served.stop();
      }
    });

    it('has help on each of ours that names nothing else', async () => {
      const program = `
        import { Config, loadHelpClass } from '@oclif/core';
        const config = await Config.load(process.cwd());
        const Help = await loadHelpClass(config);
        for (const id of ${JSON.stringify(OUR_IDS)}) await new Help(config).showHelp([id]);`;
      const { stdout, code } = await finished(
        spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: folder, env: cleanEnv() }),
      );
      assert.equal(code, 0);
      const named = Array.from(stdout.matchAll(/(?:\$ |"|\$\()(acme [a-z: ]*[a-z])/g), ([, words]) => words!);
      assert.ok(named.length > 2 * OUR_IDS.length);
      const isOurs = (words: string) => OUR_IDS.some((id) => `${words} `.startsWith(`${name(id)} `));
      assert.deepEqual(
        named.filter((words) => !isOurs(words)),
        [],
      );
      assert.doesNotMatch(
        stdout,
        /svc-api (apikey|backup|restore|doctor|edge|explain|guard|log|notices|proxy|requests|routes|serve)/,
      );
    });
  });
}

describe('a host that chooses features', () => {
  const commandsOf = (features: readonly string[]) =>
    Object.entries(MANIFEST.commands).filter(([, { feature }]) => feature === undefined || features.includes(feature));
  const hostWith = (features: unknown) => newHost(' ', ['svc-api'], { features });

  /** The commands, topics and help of a host, after oclif's hooks. */
  const offered = async (folder: string) => {
    const program = `
      import { Config } from '@oclif/core';
      const config = await Config.load(process.cwd());
      await config.runHook('init', { id: '', argv: [] });
      const topics = config.topics.map(({ name }) => name);
      const ofPlugin = config.plugins.get('svc-api').commands.map(({ id }) => id);
      const flags = Object.keys(config.findCommand('apikey:list').flags);
      console.log(JSON.stringify({ ids: config.commandIDs, topics, ofPlugin, flags }));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: folder, env: cleanEnv() });
    const { stdout, stderr } = await finished(child);
    assert.equal(stderr, '');
    return JSON.parse(stdout) as Record<'ids' | 'topics' | 'ofPlugin' | 'flags', string[]>;
  };

  for (const features of [['apply', 'backup'], []])
    it(`has only their commands and topics: ${JSON.stringify(features)}`, async () => {
      const { ids, topics, ofPlugin } = await offered(hostWith(features));
      const own = HOSTS_OWN.map((name) => name.replace('/', ':'));
      const ours = commandsOf(features);
      const aliases = ours.flatMap(([, command]) => command.aliases);
      const names = ours.map(([id]) => id);
      assert.deepEqual(ids.toSorted(), [...own, ...names, ...aliases].toSorted());
      assert.deepEqual(ofPlugin.toSorted(), names.toSorted());
      const above = new Set(
        ids.flatMap((id) => id.split(':').map((_, index, words) => words.slice(0, index + 1).join(':'))),
      );
      assert.deepEqual(
        topics.filter((topic) => !above.has(topic)),
        [],
      );
    });

  it('has only the flags of the chosen ones', async () => {
    const added = ['review', 'csv', 'attest'];
    for (const [features, expected] of [
      [['review'], added],
      [[], []],
    ] as const) {
      const folder = hostWith(features);
      const { flags } = await offered(folder);
      assert.deepEqual(
        flags.filter((flag) => added.includes(flag)),
        expected,
      );
      const { code } = await runIn(folder, ['apikey', 'list', '--review'], { SVC_API_DATABASE: await migratedStore() });
      assert.equal(code, expected.length > 0 ? 0 : 2);
    }
  });

  it('also has the features that a chosen one needs', async () => {
    const { ids } = await offered(hostWith(['edge']));
    for (const id of ['apikey:edge', 'apikey:guard', 'apikey:routes:check']) assert.ok(ids.includes(id), id);
    assert.ok(!ids.includes('apikey:scan'));
  });

  it('works as the core alone, and names no other command', async () => {
    const folder = hostWith([]);
    const { stdout: help } = await runIn(folder, ['apikey', '--help']);
    assert.match(help, /Keys: create, list, show, update, rotate, disable, enable, delete, explain\.\n/);
    assert.doesNotMatch(help, /backup|revoke|guard|Applications/);
    const env = { SVC_API_DATABASE: tempStore() };
    const created = await runIn(folder, ['apikey', 'create', '--name', 'CI', '--roles', 'ADMIN', '--json'], env);
    const { key } = JSON.parse(created.stdout) as { key: string };
    const refused = await runIn(folder, ['apikey', 'backup', '/nonexistent', '--json'], env);
    assert.equal(refused.code, 2);
    assert.doesNotMatch(refused.stdout, /Did you mean/);
    const served = await startListening(
      ['serve', '--port', '0'],
      { ...env, XDG_DATA_HOME: join(folder, 'home') },
      join(folder, 'bin/run.js'),
    );
    try {
      const { body } = await query(served.url, key, '{ me { name } }');
      assert.deepEqual(body, { data: { me: { name: 'CI' } } });
    } finally {
      await served.stop();
    }
  });

  it('refuses a configuration that lets people sign in, without the feature that has the pages', async () => {
    const folder = hostWith(['guard']);
    const env = { SVC_API_DATABASE: tempStore() };
    const guard = ['apikey', 'guard', 'http://127.0.0.1:9', '--any-key', '--port', '0', '--config'];
    const serve = ['serve', '--port', '0', '--config'];
    for (const [args, lines] of [
      [guard, 'sign-in: on\n'],
      [serve, 'sign-in: on\n'],
      [
        guard,
        `trust: [127.0.0.1]\npublicUrl: https://keys.example.org\npeople: { header: Remote-User, grant: { '*': [role:VIEWER] } }\n`,
      ],
    ] as const) {
      const config = join(tempFolder(), 'svc-api.yaml');
      writeFileSync(config, lines);
      const { code, stdout, stderr } = await runIn(folder, [...args, config], env);
      assert.deepEqual([stdout, code], ['', 2], stderr);
      assert.match(stderr, /feature "console"[^]*Code: CONFIG_INVALID/);
    }
  });

  it('refuses to show requests, by each way to ask for it, without the feature that does', async () => {
    const folder = hostWith([]);
    for (const [args, env] of [
      [[], { SVC_API_REQUEST_LOG: '1' }],
      [[], { SVC_API_METRICS_PORT: '9464' }],
      [['--workers', '2'], { SVC_API_METRICS_PORT: '9464' }],
      [[], { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
    ] as const) {
      const all = { SVC_API_DATABASE: tempStore(), ...env };
      const { code, stdout, stderr } = await runIn(folder, ['serve', '--port', '0', ...args], all);
      assert.deepEqual([stdout, code], ['', 2], stderr);
      assert.match(stderr, /"telemetry"[^]*Code: USAGE/);
    }
  });

  it('has no flags of features that it leaves out on its servers', async () => {
    const folder = hostWith(['guard']);
    const flags = ['--request-log', '--metrics-port', '--metrics-host', '--no-console'];
    const upstream = ['apikey', 'guard', 'http://127.0.0.1:9', '--any-key'];
    for (const [command, own] of [
      [['serve'], flags],
      [upstream, flags.slice(0, 3)],
    ] as const) {
      const { stdout: help } = await runIn(folder, [...command, '--help']);
      assert.match(help, /--workers/);
      assert.doesNotMatch(help, /request-log|metrics|no-console/);
      for (const flag of own) {
        const args = [...command, '--port', '0', flag, ...(flag.startsWith('--metrics') ? ['1'] : [])];
        const { code, stderr } = await runIn(folder, args, { SVC_API_DATABASE: tempStore() });
        assert.deepEqual([code, stderr.includes(flag)], [2, true], stderr);
        assert.match(stderr, /Code: USAGE/);
      }
    }
  });

  it('serves the console without other features, and each link leads to a page', async () => {
    const folder = hostWith(['console']);
    const env = { SVC_API_DATABASE: tempStore() };
    const create = async (name: string, role: string) => {
      const args = ['apikey', 'create', '--name', name, '--roles', role, '--json'];
      return JSON.parse((await runIn(folder, args, env)).stdout) as { key: string; id: string };
    };
    const { key } = await create('Ada', 'ADMIN');
    const { id } = await create('Leaked', 'GUEST');
    const served = await startListening(
      ['serve', '--port', '0'],
      { ...env, XDG_DATA_HOME: join(folder, 'home') },
      join(folder, 'bin/run.js'),
    );
    try {
      const visitor = new Visitor(served.url);
      await visitor.signIn(key);
      // One link with a query is enough for each page.
      const links = new Map([['', '']]);
      for (const link of links.values()) {
        const { status, html } = await visitor.open(link);
        assert.equal(status, 200, link);
        const here = new URL(link, 'http://a/console/');
        for (const [, href] of html.matchAll(/<a[^>]*\shref="([^"#]+)/g)) {
          const [, linked, path] =
            /^http:\/\/a\/console\/(([^?]*).*)/.exec(new URL(href!.replaceAll('&amp;', '&'), here).href) ?? [];
          if (path !== undefined && !links.has(path)) links.set(path, linked!);
        }
      }
      for (const path of [...PAGES.map((page) => page.path), `keys/${id}`, `keys/${id}/contain`])
        assert.ok(links.has(path), path);
    } finally {
      await served.stop();
    }
  });

  it('logs the address of the console only where it is served', async () => {
    const logged = async (features: readonly string[]) => {
      const folder = hostWith(features);
      const child = spawn(process.execPath, [join(folder, 'bin/run.js'), 'serve', '--port', '0'], {
        cwd: folder,
        env: cleanEnv({ SVC_API_DATABASE: tempStore(), XDG_DATA_HOME: join(folder, 'home'), LOG_LEVEL: 'info' }),
      });
      const ended = finished(child);
      await once(child.stdout, 'data');
      child.kill();
      return (await ended).stderr;
    };
    assert.match(await logged(['console']), /\/console/);
    assert.doesNotMatch(await logged([]), /\/console/);
  });

  it('makes secrets that begin with its prefix, where the configuration names no other', async () => {
    const folder = newHost(' ', ['svc-api'], { prefix: 'acme' });
    const config = join(folder, 'svc-api.yaml');
    for (const [text, start] of [
      ['resources: [WIKI]\n', 'acme_'],
      ['prefix: wiki\n', 'wiki_'],
    ] as const) {
      writeFileSync(config, text, { mode: 0o600 });
      for (const env of start === 'acme_' ? [{}, { SVC_API_CONFIG: config }] : [{ SVC_API_CONFIG: config }]) {
        const args = [
          'apikey',
          'create',
          `${start === 'acme_' ? 'A' : 'B'}${Object.keys(env).length}`,
          '--roles',
          'GUEST',
        ];
        const { stdout, stderr } = await runIn(folder, args, env);
        assert.ok(stdout.startsWith(start), stderr);
      }
    }
  });

  it('makes only our commands refuse an unknown feature, by its name', async () => {
    for (const [settings, code, pattern] of [
      [{ features: ['aply'] }, 'FEATURE_INVALID', /acme chooses the feature "aply", .* Did you mean apply\?/],
      [{ features: 'apply' }, 'HOST_INVALID', /"svc-api"\.features must be a list/],
      [{ feature: [] }, 'HOST_INVALID', /"svc-api"\["feature"\] is not a setting/],
      [{ prefix: 'a_b' }, 'HOST_INVALID', /"svc-api"\.prefix must be 2 to 12 letters and digits/],
      [[], 'HOST_INVALID', /"svc-api" must be an object/],
    ] as const) {
      const folder = newHost(' ', ['svc-api'], settings);
      const { stdout } = await runIn(folder, ['apikey', 'list', '--json']);
      const error = JSON.parse(stdout) as { error: string; code: string };
      assert.equal(error.code, code);
      assert.match(error.error, pattern);
      assert.equal((await runIn(folder, ['login'])).stdout, 'own login\n');
    }
  });
});
