import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { postgresStore } from '../support/postgres.ts';
import { cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { needsLinux } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const DRIVER = 'better-sqlite3';
/** The binary for this machine. */
const BINARY = `prebuilds/${existsSync('/etc/alpine-release') ? 'linuxmusl' : 'linux'}-${process.arch}.node`;

/** An installation of the built package with a changed driver. */
function installed(change: (path: string) => void): string {
  const root = join(tempFolder(), 'node_modules/svc-api');
  for (const part of ['bin', 'dist', 'package.json', 'oclif.manifest.json', 'schemas'])
    cpSync(join(ROOT, part), join(root, part), { recursive: true });
  mkdirSync(join(root, 'node_modules'));
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== DRIVER) symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
  const driver = join(root, 'node_modules', DRIVER);
  for (const part of ['lib', 'package.json', BINARY])
    cpSync(join(ROOT, 'node_modules', DRIVER, part), join(driver, part), { recursive: true });
  change(driver);
  return root;
}

function run(root: string, args: readonly string[]): Promise<Finished> {
  return finished(spawn(process.execPath, [join(root, 'bin/run.js'), ...args], { env: cleanEnv() }));
}

/** Starts a server of an installation on a free port. */
async function startServer(root: string, args: readonly string[]): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = spawn(process.execPath, [join(root, 'bin/run.js'), ...args, '--port', '0'], {
    env: cleanEnv({ LOG_LEVEL: 'error' }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(server, 'exit');
  const [line] = (await Promise.race([once(server.stdout, 'data'), ended])) as [Buffer];
  const [, url] = /(http:\S+)/.exec(String(line)) ?? assert.fail(String(line));
  const stop = async () => {
    server.kill();
    await ended;
  };
  return { url: url!, stop };
}

/** Creates a key through a server. @returns the server's answer */
async function createByServer(url: string, secret: string, name: string): Promise<string> {
  const query = `mutation { createApiKey(input: { name: "${name}", roles: [GUEST] }) { key } }`;
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return (await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })).text();
}

/** Like an old system: requires a glibc version that does not exist. */
function needsNewerGlibc(driver: string): void {
  const path = join(driver, BINARY);
  const binary = readFileSync(path, 'latin1').replaceAll('GLIBC_2.34\0', 'GLIBC_9.34\0');
  rmSync(path);
  writeFileSync(path, binary, 'latin1');
}

const CASES = [
  [
    'is missing',
    (driver: string) => rmSync(join(driver, BINARY)),
    /^ \(Cannot find module .*better_sqlite3\.node.*\)$/,
  ],
  ['needs a newer glibc', needsNewerGlibc, /^ \(.*version `GLIBC_9\.34' not found.*\)$/],
] as const;

for (const [why, change, reason] of CASES) {
  describe(`a binary of SQLite's driver that ${why}`, () => {
    before(function () {
      needsLinux(this);
    });
    const store = () => join(tempFolder(), 'keys.sqlite');

    it('is replaced by one that was compiled in its package, in commands and servers', async () => {
      const root = installed((driver) => {
        const compiled = join(driver, 'build/Release/better_sqlite3.node');
        cpSync(join(driver, BINARY), compiled);
        change(driver);
      });
      const database = store();
      const created = await run(root, ['apikey', 'create', '--name', 'A', '--roles', 'ADMIN', '--database', database]);
      assert.equal(created.code, 0, created.stderr);
      const { url, stop } = await startServer(root, ['serve', '--database', database]);
      // The writer thread loads it, too.
      const answer = await createByServer(url, created.stdout.trim(), 'B');
      await stop();
      assert.match(answer, /"key":"svc_/);
    });

    it('is named with the system and what to do in each command, and nothing is created', async () => {
      const root = installed(change);
      for (const args of [
        ['apikey', 'create', '--name', 'A', '--roles', 'GUEST'],
        ['apikey', 'list'],
        ['backup', join(tempFolder(), 'backup.sqlite')],
        ['serve', '--port', '0'],
        ['guard', 'http://127.0.0.1:9', '--any-key', '--port', '0'],
      ]) {
        const database = store();
        if (args[1] !== 'create' && args[0] !== 'serve') writeFileSync(database, '');
        const { code, stderr } = await run(root, [...args, '--database', database]);
        assert.equal(code, 1, args.join(' '));
        assert.match(stderr, /Code: DRIVER_UNSUPPORTED\n/, args.join(' '));
        const said =
          /binary that runs on linux (?:x64|arm64) with (?:glibc \d+\.\d+|musl)(.*)\. Install svc-api .* compile better-sqlite3 .*postgres:/s;
        const [, shown] = said.exec(stderr.replaceAll(/\n {7}/g, ' ')) ?? assert.fail(stderr);
        assert.match(shown!, reason);
        if (args[1] === 'create') assert.equal(existsSync(database), false);
      }
      const doctor = await run(root, ['doctor', '--json', '--database', store()]);
      assert.match(
        doctor.stdout,
        /"check": "STORE",\s+"status": "failure",\s+"message": "SQLite's driver, better-sqlite3, has no binary/,
      );
    });

    // On musl, both changes have the same effect: the driver does not load.
    if (change === needsNewerGlibc) return;

    it('is not asked for where the keys are in PostgreSQL, by any command', async () => {
      const root = installed(change);
      const [database, folder] = [postgresStore(), tempFolder()];
      const path = (name: string) => join(folder, name);
      const ran = async (...args: string[]) => {
        const { code, stdout, stderr } = await run(root, [...args, '--database', database]);
        assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
        return stdout;
      };
      const names = async () =>
        (JSON.parse(await ran('apikey', 'list', '--json')) as { keys: { name: string }[] }).keys.map(
          ({ name }) => name,
        );

      const secret = (await ran('apikey', 'create', '--name', 'A', '--roles', 'ADMIN')).trim();
      writeFileSync(path('keys.jsonl'), JSON.stringify({ name: 'B', roles: ['GUEST'], sha256: hash('sha256', 'B') }));
      await ran('apikey', 'import', path('keys.jsonl'));
      writeFileSync(path('keys.yaml'), 'keys:\n  - name: C\n    roles: [GUEST]\n');
      await ran('apikey', 'apply', '-f', path('keys.yaml'), '--secrets-dir', path('secrets'));
      assert.deepEqual(await names(), ['A', 'B', 'C']);
      assert.match(await ran('apikey', 'export'), /"name":"B"/);

      await ran('backup', path('backup.sqlite'));
      await ran('apikey', 'delete', '--name', 'B', '--yes');
      await ran('restore', path('backup.sqlite'), '--yes', '--restore-revoked', 'B');
      assert.deepEqual(await names(), ['A', 'B', 'C']);
      assert.match(await ran('doctor', '--json'), /"check": "STORE",\s+"status": "ok"/);

      const server = await startServer(root, ['serve', '--database', database]);
      const guard = await startServer(root, [
        'guard',
        server.url,
        '--any-key',
        '--forward-credential',
        '--database',
        database,
      ]);
      const answers = [await createByServer(server.url, secret, 'D'), await createByServer(guard.url, secret, 'E')];
      await Promise.all([server.stop(), guard.stop()]);
      for (const answer of answers) assert.match(answer, /"key":"svc_/);
      assert.deepEqual(await names(), ['A', 'B', 'C', 'D', 'E']);
    });
  });
}
