import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { blocksOf, blockWith } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';

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
    const pages = globSync(['*.md', 'docs/**/*.{md,graphql}', 'examples/**/*.md'], { cwd: ROOT });
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

  it('fits on two screens and a half, in lines that a terminal shows', () => {
    const lines = README.split('\n');
    assert.ok(lines.length <= 160, `${lines.length} lines`);
    assert.deepEqual(
      lines.filter((line) => line.length > 120 && !line.startsWith('|')),
      [],
    );
  });
});
