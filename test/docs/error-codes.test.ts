import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND_ERRORS } from '../../src/cli/error-codes.ts';
import { REPLIES } from '../../src/http/replies.ts';
import { IMPORT_WARNINGS } from '../../src/features/transfer/read-import.ts';
import { ROOT } from '../support/process.ts';

const EXPLAINED = Object.keys({ ...COMMAND_ERRORS, ...IMPORT_WARNINGS });
const ALL = [...new Set([...EXPLAINED, ...Object.keys(REPLIES)])];

/** The sources without the declarations of codes. */
const SOURCES = globSync('src/**/*.{ts,tsx}', { cwd: ROOT, exclude: ['src/keys/basics/error-codes/**'] })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

/** Codes in forms that the compiler does not check: `extensions: { code: '…' }`, and pairs of a cause and a code. */
const WRITTEN = [/\bcode: '([A-Z]+_[A-Z_]+)'/g, /'(STORE_[A-Z_]+)'/g].flatMap((form) =>
  Array.from(SOURCES.matchAll(form), ([, code]) => code!),
);

describe('error codes', () => {
  it('are declared where the compiler does not ask for it, too', () => {
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
      made.filter((code) => REPLIES[code]?.status === undefined),
      [],
    );
  });

  it('that a command can show have a section in docs/errors.md, once', () => {
    const page = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');
    const sections = Array.from(page.matchAll(/^### (\w+)$/gm), ([, code]) => code!);
    assert.deepEqual(sections.toSorted(), EXPLAINED.toSorted());
  });
});
