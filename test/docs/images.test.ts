import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../support/process.ts';

const MAX_BYTES = 100_000;

/** The pictures in a document, with their alternative texts. */
function imagesOf(document: string): { path: string; alt: string | undefined }[] {
  const text = readFileSync(join(ROOT, document), 'utf8');
  return Array.from(text.matchAll(/<(?:img|source) [^>]*?\b(?:src|srcset)="([^"]+)"[^>]*>/g), ([tag, target]) => ({
    path: join(dirname(document), target!),
    alt: tag.startsWith('<source') ? 'that of its <img>' : /\balt="([^"]*)"/.exec(tag)?.[1],
  }));
}

describe('the pictures of the documentation', () => {
  const shown = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).flatMap(imagesOf);
  const paths = globSync('docs/images/*', { cwd: ROOT });

  it('are all shown, light and dark, with alternative texts', () => {
    assert.ok(paths.length > 0);
    assert.deepEqual([...new Set(shown.map(({ path }) => path))].toSorted(), paths.toSorted());
    const names = new Set(paths.map((path) => path.replace(/-(light|dark)\.png$/, '')));
    const pairs = [...names].flatMap((name) => [`${name}-dark.png`, `${name}-light.png`]);
    assert.deepEqual(paths.toSorted(), pairs.toSorted());
    for (const { path, alt = '' } of shown) assert.notEqual(alt, '', path);
  });

  it(`have at most ${MAX_BYTES} bytes each, since they are in the package`, () => {
    for (const path of paths) assert.ok(statSync(join(ROOT, path)).size <= MAX_BYTES, path);
  });
});
