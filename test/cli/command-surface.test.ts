import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../../scripts/manifest-of.ts';
import { BIN, cleanEnv, finished, ROOT, runCli } from '../support/process.ts';

/** What scripts rely on: a change here is a change for them. */
const ALWAYS = ['--database <path>', '--json'];
const END = ['--expires-at <date>', '--expires-in 90m|12h|30d'];
const GRANTS = ['--permissions <resource:action,…> (list)', '--roles <role,…> (list)'];
const NEW_KEY = [...ALWAYS, ...END, ...GRANTS, '--name <name>', '--description <text>', '--overwrite'];
const SURFACE: Record<string, string[]> = {
  apikey: ['--create', '--delete', ...NEW_KEY],
  'apikey:apply': ['--dry-run', '--file <path> (-f)', '--prune', '--secrets-dir <folder>', ...ALWAYS],
  'apikey:create': ['--dry-run', ...NEW_KEY],
  'apikey:delete': ['--name <name>', ...ALWAYS],
  'apikey:disable': ['--name <name>', ...ALWAYS],
  'apikey:enable': ['--name <name>', ...ALWAYS],
  'apikey:list': ['--after <cursor>', '--limit <number>', '--roles <role,…> (list)', '--search <text>', '--status <status>', ...ALWAYS],
  'apikey:show': ['--name <name>', ...ALWAYS],
  'apikey:update': ['--description <text>', '--name <name>', '--no-expiry', '--rename <name>', ...END, ...GRANTS, ...ALWAYS],
  serve: ['--database <path>', '--host <address>', '--port <port>'],
};

interface Manifest {
  version: string;
  commands: Record<string, { aliases: string[]; args: object; flags: Record<string, Flag> }>;
}
interface Flag {
  type: 'boolean' | 'option';
  helpValue?: string;
  multiple?: boolean;
  char?: string;
  default?: unknown;
}

const manifestFile = readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8');
const manifest = JSON.parse(manifestFile) as Manifest;

describe('the commands', () => {
  it('have these flags, and no positional arguments, aliases, defaults or other short forms', () => {
    const surface = Object.entries(manifest.commands).map(([id, { flags }]) => [
      id,
      Object.entries(flags)
        .map(([name, { type, helpValue, multiple, char }]) => {
          const value = type === 'option' ? ` ${helpValue}` : '';
          return `--${name}${value}${multiple ? ' (list)' : ''}${char ? ` (-${char})` : ''}`;
        })
        .toSorted(),
    ]);
    assert.deepEqual(Object.fromEntries(surface), Object.fromEntries(Object.entries(SURFACE).map(([id, flags]) => [id, flags.toSorted()])));
    for (const { aliases, args, flags } of Object.values(manifest.commands)) {
      assert.deepEqual([aliases, args], [[], {}]);
      for (const flag of Object.values(flags)) assert.equal(flag.default, undefined);
    }
  });

  it('are in the manifest as they were built', async () => {
    assert.equal(manifestFile, await manifestOf());
    assert.equal(manifest.version, (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version);
  });

  it('are listed by --help, by -h and without arguments', async () => {
    const [long, short, none] = await Promise.all([['--help'], ['-h'], []].map((args) => runCli(args)));
    assert.match(long!.stdout, /\n {2}apikey +Create or delete an API key\.\n.*\n {2}serve +Serve a GraphQL endpoint/s);
    assert.deepEqual([long!.stderr, long!.code], ['', 0]);
    assert.deepEqual(short, long);
    assert.deepEqual(none, long);
  });

  for (const [name, flags] of Object.entries(SURFACE)) {
    const id = name.split(':');
    it(`describe themselves: ${id.join(' ')}`, async () => {
      const [long, short, asked] = await Promise.all([runCli([...id, '--help']), runCli([...id, '-h']), runCli(['help', ...id])]);
      for (const flag of flags) assert.ok(long.stdout.includes(flag.split(' ')[0]!), flag);
      assert.match(long.stdout, /\nEXAMPLES\n/);
      assert.deepEqual([long.stderr, long.code], ['', 0]);
      assert.deepEqual(short, long);
      assert.deepEqual(asked, long);
    });
  }

  it('print their help into a pipe that is closed early without complaint', async () => {
    const scripts = ['set -o pipefail; "$@" | head -1', 'exec 3> >(exec true); wait $!; "$@" >&3'];
    const [head, dead] = await Promise.all(
      scripts.map((script) =>
        finished(spawn('bash', ['-c', script, 'bash', process.execPath, BIN, 'apikey', '--help'], { env: cleanEnv() })),
      ),
    );
    assert.deepEqual(head, { stdout: 'Create or delete an API key.\n', stderr: '', code: 0, signal: null });
    assert.deepEqual(dead, { stdout: '', stderr: '', code: 0, signal: null });
  });

  it('refuse a name that no command has', async () => {
    const { stdout, stderr, code } = await runCli(['apikeys', '--json']);
    assert.equal(stdout, '');
    assert.match(stderr, /command apikeys not found\n$/);
    assert.equal(code, 2);
  });
});
