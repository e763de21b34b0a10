import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

const PAGE = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');
const DOCUMENTED = Array.from(PAGE.matchAll(/^### (\w+)$/gm), ([, code]) => code!);

/** Folders whose other errors are replies over HTTP, which docs/http.md has. */
const REPLYING = /^src\/(http|graphql)\//;

/** The codes that the sources make errors with: `new CliError('USAGE', …)`, `{ code: 'USAGE' }`, `['EEXIST', 'STORE_…']`. */
function thrownCodes(): string[] {
  const sources = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['src/cli/help/**'] });
  const codes = sources.flatMap((file) => {
    const forms = [/(?:Keys|Cli)Error\(\s*'([A-Z_]+)'/g, /'(STORE_[A-Z_]+)'/g];
    if (!REPLYING.test(file)) forms.push(/\bcode: '([A-Z]+_[A-Z_]+)'/g);
    const text = readFileSync(join(ROOT, file), 'utf8');
    return forms.flatMap((form) => Array.from(text.matchAll(form), ([, code]) => code!));
  });
  return [...new Set(codes)];
}

describe('docs/errors.md', () => {
  it('has a section for every code that the sources throw, but for replies over HTTP', () => {
    const thrown = thrownCodes();
    assert.ok(thrown.length > 35, thrown.join());
    assert.deepEqual(
      thrown.filter((code) => !DOCUMENTED.includes(code)),
      [],
    );
  });

  it('has each code once', () => {
    assert.equal(new Set(DOCUMENTED).size, DOCUMENTED.length);
  });
});
