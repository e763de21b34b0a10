import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnv, type Finished, finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** The binary that this machine uses. */
const BINARY = `prebuilds/${existsSync('/etc/alpine-release') ? 'linuxmusl' : 'linux'}-${process.arch}.node`;

/** An installation of the built package, with the given packages beside it. */
function installed(hasDriver: boolean, change: (path: string) => void): string {
  const root = join(tempFolder(), 'node_modules/svc-api');
  for (const part of ['bin', 'package.json', 'oclif.manifest.json', 'schemas'])
    cpSync(join(ROOT, part), join(root, part), { recursive: true });
  // The build links the binaries; these are changed.
  cpSync(join(ROOT, 'dist'), join(root, 'dist'), { recursive: true });
  mkdirSync(join(root, 'node_modules'));
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== 'better-sqlite3' || hasDriver)
      symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
  change(join(root, 'dist/better-sqlite3', BINARY));
  return root;
}

function run(root: string, args: readonly string[]): Promise<Finished> {
  return finished(spawn(process.execPath, [join(root, 'bin/run.js'), ...args], { env: cleanEnv() }));
}

/** As on an older system: it asks for a version of glibc that no system has. */
function needsNewerGlibc(path: string): void {
  const binary = readFileSync(path, 'latin1').replaceAll('GLIBC_2.34\0', 'GLIBC_9.34\0');
  rmSync(path);
  writeFileSync(path, binary, 'latin1');
}

const CASES = [
  ['is of no system like this', (path: string) => rmSync(path), /^$/],
  ['needs a newer glibc', needsNewerGlibc, /^ \(.*version `GLIBC_9\.34' not found.*\)$/],
] as const;

for (const [why, change, reason] of CASES) {
  describe(`a binary of SQLite's driver that ${why}`, () => {
    before(function () {
      if (process.platform !== 'linux') this.skip();
    });
    const store = () => join(tempFolder(), 'keys.sqlite');

    it("is replaced by that of the driver's own package where this is installed, in commands and servers", async () => {
      const root = installed(true, change);
      const database = store();
      const created = await run(root, ['apikey', 'create', '--name', 'A', '--roles', 'ADMIN', '--database', database]);
      assert.equal(created.code, 0, created.stderr);
      const server = spawn(
        process.execPath,
        [join(root, 'bin/run.js'), 'serve', '--port', '0', '--database', database],
        {
          env: cleanEnv({ LOG_LEVEL: 'error' }),
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      );
      const ended = once(server, 'exit');
      const [line] = (await Promise.race([once(server.stdout, 'data'), ended])) as [Buffer];
      const [, url] = /(http:\S+)/.exec(String(line)) ?? assert.fail(String(line));
      // The thread that writes opens it, too.
      const body = JSON.stringify({ query: 'mutation { createApiKey(input: { name: "B", roles: [GUEST] }) { key } }' });
      const headers = { authorization: `Bearer ${created.stdout.trim()}`, 'content-type': 'application/json' };
      const answer = await (await fetch(`${url!}/graphql`, { method: 'POST', headers, body })).text();
      server.kill();
      await ended;
      assert.match(answer, /"key":"svc_/);
    });

    it('is named with the system and what to do in each command, and nothing is created', async () => {
      const root = installed(false, change);
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
          /binary that runs on linux (?:x64|arm64) with (?:glibc \d+\.\d+|musl)(.*)\. Install better-sqlite3 .*postgres:/s;
        const [, shown] = said.exec(stderr.replaceAll(/\n {7}/g, ' ')) ?? assert.fail(stderr);
        assert.match(shown!, reason);
        if (args[1] === 'create') assert.equal(existsSync(database), false);
      }
      const doctor = await run(root, ['doctor', '--json', '--database', store()]);
      assert.match(
        doctor.stdout,
        /"check": "STORE",\s+"status": "failure",\s+"message": "SQLite's driver has no binary/,
      );
    });

    it('is not asked for where the keys are in PostgreSQL', async () => {
      const root = installed(false, change);
      const { stdout } = await run(root, [
        'apikey',
        'list',
        '--json',
        '--database',
        'postgres://nobody@127.0.0.1:1/keys',
      ]);
      assert.match(stdout, /"code": "STORE_UNAVAILABLE"/);
    });
  });
}
