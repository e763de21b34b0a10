import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

const MAX_COLUMNS = 120;

describe('lines of code', () => {
  it(`have at most ${MAX_COLUMNS} columns`, () => {
    const files = globSync(['src/**/*.{ts,tsx,css}', 'scripts/*.ts', 'bin/*.js'], { cwd: ROOT });
    const long = files.flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .flatMap((line, index) => (line.length > MAX_COLUMNS ? `${file}:${index + 1}` : [])),
    );
    assert.deepEqual(long, []);
  });
});
