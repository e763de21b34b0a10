import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, delimiter, join } from 'node:path';
import { bareMachine, installPrograms, NODE_20, runOn } from '../support/bare-machine.ts';
import { mustRun, packedFile, printable } from '../support/host.ts';
import { freePort } from '../support/port.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const INSTALLING = readFileSync(join(ROOT, 'docs/installing.md'), 'utf8');
const blockWith = (text: string, page = README) =>
  Array.from(page.matchAll(/^```sh\n(.*?)^```$/gms), (match) => match[1]!).find((block) => block.includes(text))!;

/** The files of a fresh clone of the current state. */
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
  it('starts by one command with npm 10, without Python or a compiler, prints a request that works as pasted, and is packed', async () => {
    const clone = await freshClone();
    const port = await freePort();
    const command = blockWith('npm start');
    const machine = bareMachine(await installPrograms(NODE_20));
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
      // Its packages are already installed.
      const packed = await runOn(quiet, blockWith('npm pack', INSTALLING).replace('npm ci && ', ''), clone);
      assert.equal(packed.code, 0, printable(packed.stderr));
      assert.ok(existsSync(join(clone, basename(packedFile()))));
    } finally {
      process.kill(-server.pid!, 'SIGTERM');
    }
  });
});
