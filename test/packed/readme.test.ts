import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, delimiter, join } from 'node:path';
import { bareMachine, installPrograms, runOn } from '../support/bare-machine.ts';
import { installHost, mustRun, printable, run, withPluginsCommand } from '../support/host.ts';
import { freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const INSTALLING = readFileSync(join(ROOT, 'docs/installing.md'), 'utf8');
const blockWith = (text: string, page = README) =>
  Array.from(page.matchAll(/^```sh\n(.*?)^```$/gms), (match) => match[1]!).find((block) => block.includes(text))!;

/** What a fresh clone of this state would hold. */
async function freshClone(): Promise<string> {
  const clone = join(tempFolder(), 'svc-api');
  const files = await mustRun('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
    cwd: ROOT,
  });
  for (const file of files.trim().split('\n')) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(ROOT, file), join(clone, file));
  }
  return clone;
}

describe('the README, in a fresh clone', () => {
  it('starts by one command with npm 10, without Python or a compiler, and prints a request that works as pasted', async () => {
    const clone = await freshClone();
    const port = await freePort();
    const command = blockWith('npm start');
    // What Node 20 comes with.
    const machine = bareMachine(await installPrograms({ node: '20.20.2', npm: '10.8.2' }));
    const server = spawn('sh', ['-c', command], {
      cwd: clone,
      env: { ...machine, SVC_API_PORT: String(port) },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let warned = '';
    server.stderr.setEncoding('utf8').on('data', (text: string) => (warned += text));
    try {
      let printed = '';
      for await (const chunk of server.stdout.setEncoding('utf8')) {
        printed += String(chunk);
        if (printed.includes("}'\n")) break;
      }
      const request = /^ {2}echo .*?\}'$/ms.exec(printed)?.[0];
      assert.ok(request, printable(`${printed}\n${warned}`));
      assert.deepEqual(new Set(warned.match(/^npm warn \S+/gm)), new Set(['npm warn EBADENGINE']));
      const path = [process.env['PATH'], join(ROOT, 'test/support/bin')].join(delimiter);
      const reply = JSON.parse(await mustRun('sh', ['-c', request], { cwd: clone, env: { PATH: path } })) as {
        data: { me: object };
      };
      assert.deepEqual(reply.data.me, { name: 'Quick start', roles: ['ADMIN'] });
      const { status } = await fetch(`http://127.0.0.1:${port}/console/sign-in`);
      assert.equal(status, 200);
      const quiet = { ...machine, npm_config_loglevel: 'error' };
      const { stdout, stderr } = await runOn(quiet, 'npx svc-api --version', clone);
      assert.deepEqual([stdout.slice(0, 8), stderr], ['svc-api/', '']);
    } finally {
      process.kill(-server.pid!, 'SIGTERM');
    }
  });

  it('installs into a CLI as docs/installing.md has it', async () => {
    const clone = await freshClone();
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    const host = await installHost({ '@oclif/plugin-plugins': '^7' }, withPluginsCommand);
    const bin = tempFolder();
    symlinkSync(join(host.folder, 'bin/run.js'), join(bin, 'acme'));
    // Its packages are there already.
    const pack = blockWith('npm pack', INSTALLING).replace('npm ci && ', '');
    const { code, stdout, stderr } = await run('sh', ['-ec', pack + blockWith('acme plugins install', INSTALLING)], {
      cwd: clone,
      env: {
        PATH: [bin, join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
        XDG_DATA_HOME: join(host.folder, 'home'),
      },
    });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/m);
  });
});
