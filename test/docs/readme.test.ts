import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { blocksOf, blockWith, pathWithCli } from '../support/pages.ts';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

describe('the README', () => {
  it('has the two commands as they are run', () => {
    assert.deepEqual(
      blocksOf('README.md').filter((block) => block.startsWith('npm ci')),
      ['npm ci && npm start\n', 'npm ci && npm test\n'],
    );
    assert.match(readFileSync(join(ROOT, '.ci/run'), 'utf8'), /grep -m1 -x 'npm ci && npm test' README\.md/);
  });

  it('leads to each page of the documentation', () => {
    const found = new Set(['README.md']);
    for (const page of found) {
      if (!page.endsWith('.md')) continue;
      const links = readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g);
      for (const [, link] of links) found.add(join(dirname(page), link!));
    }
    const pages = globSync(['*.md', 'docs/**/*.{md,graphql}', 'examples/**/*.md'], {
      cwd: ROOT,
      exclude: ['**/node_modules/**'],
    });
    assert.ok(pages.length > 20);
    assert.deepEqual(
      pages.filter((page) => !found.has(page)),
      [],
    );
  });

  it('shows of configurations of proxies what the tests run', () => {
    const linesOf = (text: string) => text.split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '));
    for (const [kind, text, file] of [
      ['nginx', 'auth_request', 'examples/nginx/grafana.conf'],
      ['text', 'forward_auth', 'examples/caddy/Caddyfile'],
      ['yaml', 'forwardAuth', 'docs/forward-auth.md'],
    ] as const) {
      const whole = new Set(linesOf(readFileSync(join(ROOT, file), 'utf8')));
      const shown = linesOf(blockWith(text, 'README.md', kind)).filter((line) => !line.startsWith('#'));
      assert.deepEqual(
        shown.filter((line) => !whole.has(line)),
        [],
        file,
      );
    }
  });

  it('puts a guard in front of a service, which lets in the key that is made for it', async () => {
    const home = tempFolder();
    const service = createServer((request, response) => response.end(request.headers['x-auth-key-name']));
    await once(service.listen(0, '127.0.0.1'), 'listening');
    const { port } = service.address() as AddressInfo;
    const script = blockWith('svc-api guard', 'README.md')
      .replace('svc-api guard', 'echo "$KEY"; exec svc-api guard --port 0')
      .replace(':3000', `:${port}`);
    const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      env: cleanEnv({ HOME: home, XDG_CONFIG_HOME: join(home, '.config'), PATH: pathWithCli(home) }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      const lines = createInterface(shell.stdout)[Symbol.asyncIterator]();
      const key = (await lines.next()).value as string;
      const url = ((await lines.next()).value as string).replace('Listening on ', '');
      const answer = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
      assert.deepEqual([answer.status, await answer.text()], [200, 'Wall%20display']);
      assert.equal((await fetch(url)).status, 401);
    } finally {
      const end = finished(shell);
      shell.kill();
      await end;
      service.closeAllConnections();
      service.close();
    }
  });

  it('fits on two screens and a half, in lines that a terminal shows', () => {
    const lines = README.split('\n');
    assert.ok(lines.length <= 165, `${lines.length} lines`);
    assert.deepEqual(
      lines.filter((line) => line.length > 120 && !line.startsWith('|')),
      [],
    );
  });
});
