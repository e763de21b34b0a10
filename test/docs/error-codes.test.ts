import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allFeatures } from '../../src/features/index.ts';
import { errorTable, HTTP_ERRORS, replyEntry } from '../../src/keys/basics/index.ts';
import { ROOT } from '../support/process.ts';

allFeatures();
const EXPLAINED = Object.keys(errorTable());
const ALL = [...EXPLAINED, ...Object.keys(HTTP_ERRORS)];

/** The sources, without the files that declare codes. */
const SOURCES = globSync('src/**/*.{ts,tsx}', {
  cwd: ROOT,
  exclude: ['src/keys/basics/error-codes/**', 'src/features/*/errors.ts'],
})
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

/** Codes in errors, in `extensions: { code: '…' }`, and in pairs of a cause and a code. */
const WRITTEN = [
  /\bcode: '([A-Z]+_[A-Z_]+)'/g,
  /'(STORE_[A-Z_]+)'/g,
  /\b(?:KeysError|refused?|errorReply|RequestRefused)\(\s*'([A-Z_]+)'/g,
].flatMap((form) => Array.from(SOURCES.matchAll(form), ([, code]) => code!));

describe('error codes', () => {
  it('are declared', () => {
    assert.ok(WRITTEN.length > 30, WRITTEN.join());
    assert.deepEqual(
      WRITTEN.filter((code) => !ALL.includes(code)),
      [],
    );
  });

  it('that are declared are used', () => {
    assert.deepEqual(
      ALL.filter((code) => !SOURCES.includes(`'${code}'`)),
      [],
    );
  });

  it('of replies that are not of GraphQL have a status', () => {
    const made = Array.from(SOURCES.matchAll(/\b(?:errorReply|RequestRefused)\(\s*'([A-Z_]+)'/g), ([, code]) => code!);
    assert.ok(made.length > 30, made.join());
    assert.deepEqual(
      made.filter((code) => replyEntry(code)?.status === undefined),
      [],
    );
  });

  it('that a command can show have a section in docs/errors.md, once', () => {
    const page = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');
    const sections = Array.from(page.matchAll(/^### (\w+)$/gm), ([, code]) => code!);
    assert.deepEqual(sections.toSorted(), EXPLAINED.toSorted());
  });
});
