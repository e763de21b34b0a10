import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '../support/errors.ts';
import {
  type Host,
  type HostManifest,
  installHost,
  mustRun,
  ON_CORE,
  packedFile,
  run,
  withFile,
} from '../support/host.ts';
import { type Finished, ROOT, runCli } from '../support/process.ts';
import { runProgramHere } from '../support/program-here.ts';
import { tempFolder } from '../support/temp.ts';

const folder = tempFolder();
const manifest = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { hidden?: boolean; group?: string; aliases: string[] }>;
};
const OWN_COMMANDS = Object.keys(manifest.commands);
const ALIASES = Object.values(manifest.commands).flatMap(({ aliases }) => aliases);
const OWN_TOPICS = [
  ...new Set(
    OWN_COMMANDS.filter((id) => !manifest.commands[id]!.hidden).flatMap((id) => {
      const words = id.split(':');
      return words.map((_, index) => words.slice(0, index + 1).join(':'));
    }),
  ),
];
const noStore = join(folder, 'notes.txt');
writeFileSync(noStore, 'This is no key store, and it stays as it is.');

/** Command lines with exit codes, in order, on a new store: every kind of result and error. */
const COMMANDS: readonly (readonly [number, ...string[]])[] = [
  [0, 'apikey', '--delete', '--json'],
  [0, 'apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--json'],
  [1, 'apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--json'],
  [1, 'apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer'],
  [0, 'apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--overwrite'],
  [
    0,
    'apikey',
    '--create',
    '--name',
    'Bot',
    '--permissions',
    'docker:read_any,DOCKER:UPDATE_ANY',
    '--description',
    'A bot',
    '--json',
  ],
  [2, 'apikey', '--create', '--name', 'a-b', '--roles', 'ADMN,', '--permissions', 'DOCKER:X', '--json'],
  [2, 'apikey', '--create', '--name', 'a-b', '--roles', 'ADMN,', '--permissions', 'DOCKER:X'],
  [2, 'apikey', '--create', '--name', 'x', '--permissions', 'DOKCER:READ_ANY', '--json'],
  [2, 'apikey', '--create', '--name', 'x', '--roles', 'ADMIN', '--description', 'a\u0007b', '--json'],
  [2, 'apikey', '--create', '--name', 'x', '--json'],
  [2, 'apikey', '--create', '--roles', 'ADMIN'],
  [2, 'apikey', '--create', '--delete'],
  [2, 'apikey'],
  [2, 'apikey', '--unknown', '--json'],
  [2, 'apikey', '--create', '--name'],
  // With a verb, the host handles the error.
  [2, 'apikey', '--create', 'extra'],
  [2, 'apikey', '--delete', '--name', 'Bot', '--roles', 'ADMIN', '--json'],
  [2, 'apikey', '--delete'],
  [1, 'apikey', '--delete', '--name', 'nobody', '--json'],
  [1, 'apikey', '--delete', '--name', 'nobody'],
  [0, 'apikey', '--delete', '--name', 'CI deploy', '--json'],
  [0, 'apikey', '--delete', '--name', 'Bot'],
  [1, 'apikey', '--delete', '--name', 'x', '--database', noStore, '--json'],
  [1, 'apikey', '--create', '--name', 'x', '--roles', 'GUEST', '--database', join(noStore, 'keys.sqlite')],
  [
    3,
    'apikey',
    'exec',
    '--roles',
    'VIEWER',
    '--',
    'sh',
    '-c',
    'echo "$0 $@"; exit 3',
    'exec',
    '--json',
    '--',
    '--help',
  ],
  [143, 'apikey', 'exec', '--ttl', '1m', '--roles', 'VIEWER', '--', 'sh', '-c', 'kill -TERM $$'],
  [127, 'apikey', 'exec', '--roles', 'VIEWER', '--', 'no-such-command'],
  [2, 'apikey', 'exec', '--roles', 'VIEWER', '--json', '--', 'true'],
  [0, 'apikey', 'logout', '--server', 'http://127.0.0.1:9', '--local'],
  [1, 'apikey', 'routes', 'check', '--json'],
  [1, 'apikey', 'notices', 'test', '--json'],
  [2, 'serve', '--port', 'http'],
  [2, 'serve', '--host', ''],
  [2, 'serve', '--json'],
  [1, 'serve', '--port', '0', '--database', noStore],
  [1, 'serve', '--host', '203.0.113.1', '--port', '0'],
];

/** A result without the variable parts: secrets, ids, paths, the host's name and log lines. */
function steady({ stdout, stderr, code }: Finished): object {
  const clean = (text: string) =>
    text
      .replaceAll(/svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/g, 'SECRET')
      .replaceAll(/svc_[0-9A-Za-z]{12}_…/g, 'PREFIX')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
      .replaceAll(/\/\S+\/svc-api\/keys\.sqlite/g, 'STORE')
      .replaceAll(/file:\S+(?=\/docs\/errors\.md#)/g, 'PACKAGE')
      .replaceAll(/^(Usage:|See|Commands of| {6}) acme /gm, '$1 svc-api ')
      .replaceAll(/^\{"level".*\n/gm, '');
  return { stdout: clean(stdout), stderr: clean(stderr), code };
}

/** The sorted words of a text, regardless of wrapping and the order of sections. */
const words = (text: string) => text.split(/\s+/).toSorted();

async function resultsOf(cli: (args: readonly string[]) => Promise<Finished>): Promise<object[]> {
  const results = [];
  for (const [, ...args] of COMMANDS) results.push({ args, ...steady(await cli(args)) });
  return results;
}

let alone: Promise<object[]> | undefined;

/** The results of svc-api itself, which all hosts must match. */
function resultsAlone(): Promise<object[]> {
  const env = { XDG_DATA_HOME: tempFolder() };
  // Commands with streams or a server need a process.
  const needsProcess = ([topic, verb]: readonly string[]) => topic === 'serve' || verb === 'exec';
  alone ??= resultsOf((args) => (needsProcess(args) ? runCli(args, { env }) : runProgramHere(args, { env })));
  return alone;
}

/** The commands, topics and hooks that the host's oclif knows, by plugin. */
async function knownTo({ folder }: Host): Promise<{ commands: string[]; topics: string[]; hooks: string[] }> {
  const program = `
    import { Config } from '@oclif/core';
    const { commands, topics, plugins } = await Config.load(process.cwd());
    const hooks = [...plugins.values()].flatMap((plugin) => Object.keys(plugin.hooks).map((hook) => plugin.name + ' ' + hook));
    console.log(JSON.stringify({ commands: commands.map(({ id }) => id).sort(), topics: topics.map(({ name }) => name).sort(), hooks }));
  `;
  const stdout = await mustRun(process.execPath, ['--input-type=module', '-e', program], { cwd: folder });
  return JSON.parse(stdout) as Awaited<ReturnType<typeof knownTo>>;
}

/** Runs `during` with another list of plugins in the host. */
function withPlugins<Result>(host: Host, plugins: string[], during: () => Promise<Result>): Promise<Result> {
  const change = (text: string) => {
    const manifest = JSON.parse(text) as HostManifest;
    manifest.oclif.plugins = plugins;
    return JSON.stringify(manifest);
  };
  return withFile(join(host.folder, 'package.json'), change, during);
}

for (const core of [5, 4] as const) {
  describe(`a host on oclif core ${core}`, () => {
    let host: Host;
    before(async () => {
      host = await installHost({ 'svc-api': `file:${packedFile()}`, ...ON_CORE[core] });
    });

    it('answers every command line as svc-api itself does', async () => {
      const [inHost, alone] = await Promise.all([resultsOf((args) => host.cli(args)), resultsAlone()]);
      // The error lists the host's own resource, too.
      const expected = JSON.parse(
        JSON.stringify(alone).replace('VMS and WELCOME', 'VMS, WELCOME and BACKUP'),
      ) as object[];
      assert.deepEqual(inHost, expected);
      assert.deepEqual(
        inHost.map((result) => ('code' in result ? result.code : undefined)),
        COMMANDS.map(([code]) => code),
      );
      assert.ok(existsSync(join(host.folder, 'home/svc-api/keys.sqlite')), 'the store is the same for every host');
    });

    it('refuses an unknown log level as svc-api itself does', async () => {
      const args = ['apikey', '--delete', '--name', 'x', '--json'];
      const [inHost, alone] = await Promise.all([
        host.cli(args, { LOG_LEVEL: 'loud' }),
        runCli(args, { env: { LOG_LEVEL: 'loud' } }),
      ]);
      assert.deepEqual(inHost, alone);
      assert.equal(inHost.code, 2);
    });

    it('shows the help of svc-api under its own name', async () => {
      for (const command of [['apikey', '--create'], ['serve']]) {
        const [inHost, alone] = await Promise.all([host.cli([...command, '--help']), runCli([...command, '--help'])]);
        assert.match(inHost.stdout, new RegExp(`\\$ acme ${command.join(' ')}`));
        // A host prints the summary twice, and groups the verbs only in the description.
        const inHostAlso = new Set([
          ...words(inHost.stdout),
          ...Object.values(manifest.commands).flatMap(({ group }) => group?.toUpperCase() ?? []),
          'OTHER',
          '\\',
        ]);
        const own = words(alone.stdout.replaceAll(/(?<![/:])svc-api(?=\s+(?:apikey|serve))/g, 'acme'));
        assert.deepEqual(
          own.filter((word) => !inHostAlso.has(word)),
          [],
        );
        if (command[0] === 'apikey')
          assert.match(inHost.stdout, /\n {2}Keys: create, list, [^]*\n {2}Leaks: revoke, scan, verify\.\n/);
        assert.deepEqual([inHost.stderr, inHost.code], ['', 0]);
      }
    });

    it('shows the topics of the help, and the help of each command, by apikey help', async () => {
      for (const topic of ['exit-codes', 'environment'])
        assert.deepEqual(await host.cli(['apikey', 'help', topic]), await runCli(['help', topic]));
      const [asked, flag] = await Promise.all(
        [
          ['help', 'rotate'],
          ['rotate', '--help'],
        ].map((args) => host.cli(['apikey', ...args])),
      );
      assert.deepEqual(asked, flag);
      assert.match(flag!.stdout, /\$ acme apikey rotate/);
    });

    it('has the features that its package.json chooses', async () => {
      const choose = (features: readonly string[]) => (text: string) =>
        JSON.stringify({ ...(JSON.parse(text) as object), 'svc-api': { features } });
      const manifest = join(host.folder, 'package.json');
      const codesOf = async (...commands: string[]) => {
        const results = await Promise.all(commands.map((command) => host.cli(['apikey', command, '--help'])));
        return results.map(({ code }) => code);
      };
      await withFile(manifest, choose(['apply', 'backup']), async () => {
        assert.deepEqual(await codesOf('create', 'apply', 'restore', 'scan', 'guard'), [0, 0, 0, 2, 2]);
        const { stdout } = await host.cli(['apikey', '--help']);
        assert.match(stdout, /Store: backup, log, restore\.\n/);
        const explained = await host.cli(['apikey', 'explain', '--help']);
        assert.match(explained.stdout, /NAME RESOURCE:ACTION/);
        assert.doesNotMatch(explained.stdout, /METHOD URL|FILE|token/);
      });
      await withFile(manifest, choose([]), async () => {
        assert.deepEqual(await codesOf('create', 'apply', 'scan'), [0, 2, 2]);
      });
      await withFile(manifest, choose(['aply']), async () => {
        const { stdout } = await host.cli(['apikey', 'list', '--json']);
        assert.match(stdout, /"code": "FEATURE_INVALID"/);
      });
    });

    it('shows no stack when stdout is full', async () => {
      const script = `"$@" > /dev/full`;
      for (const args of [
        ['apikey', '--create', '--name', 'Full', '--roles', 'GUEST'],
        ['apikey', '--create', '--name', 'Full', '--roles', 'GUEST', '--json'],
      ]) {
        const { stderr, code } = await run(
          'sh',
          ['-c', script, 'sh', process.execPath, join(host.folder, 'bin/run.js'), ...args],
          {
            cwd: host.folder,
            env: { XDG_DATA_HOME: join(host.folder, 'home') },
          },
        );
        assert.equal(code, 1);
        const text =
          'The output could not be written to stdout (ENOSPC). The key was removed again, because its secret was not delivered.';
        assert.equal(stderr, errorText('OUTPUT_FAILED', text, '', join(host.folder, 'node_modules/svc-api')));
      }
    });

    it('gets our commands beneath apikey, serve, one hook, and nothing else', async () => {
      for (const others of [['@oclif/plugin-help'], []]) {
        const without = await withPlugins(host, others, () => knownTo(host));
        const withIt = await withPlugins(host, [...others, 'svc-api'], () => knownTo(host));
        const atTop = (ids: readonly string[]) => [...new Set(ids.map((id) => id.split(':')[0]!))].toSorted();
        assert.deepEqual(atTop(withIt.commands), atTop([...without.commands, 'apikey', 'serve']));
        assert.deepEqual(withIt, {
          commands: [...without.commands, ...OWN_COMMANDS, ...ALIASES].toSorted(),
          topics: [...without.topics, ...OWN_TOPICS].toSorted(),
          hooks: [...without.hooks, 'svc-api init'],
        });
      }
    });

    it('completes the commands and flags of svc-api, if it has completion', async () => {
      const cache = tempFolder();
      await withPlugins(host, ['@oclif/plugin-autocomplete', 'svc-api'], async () => {
        assert.equal((await host.cli(['autocomplete', 'bash'], { XDG_CACHE_HOME: cache })).code, 0);
      });
      const script = readFileSync(join(cache, 'acme/autocomplete/functions/bash/acme.bash'), 'utf8');
      assert.match(script, /\napikey:create --.* --roles --permissions .*\n/);
      assert.match(script, /\nserve --.* --port .*--workers\b.*\n/);
    });

    it('keeps all that is not of svc-api as it was', async () => {
      const others = [
        ['hello'],
        ['hello', '--help'],
        ['hello', '--nope'],
        ['hello', 'extra'],
        ['help', 'hello'],
        ['nonsense'],
        ['--version'],
      ];
      const results = async () => Promise.all(others.map((args) => host.cli(args)));
      const without = await withPlugins(host, ['@oclif/plugin-help'], results);
      assert.deepEqual(await results(), without);
      assert.equal(without[0]?.stdout, 'Hello from acme\n');
    });
  });
}
