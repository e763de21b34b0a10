import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { blocksOf } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';

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
});
