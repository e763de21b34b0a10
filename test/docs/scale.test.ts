import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

const PAGE = readFileSync(join(ROOT, 'docs/scale.md'), 'utf8');

describe('docs/scale.md', () => {
  it('has what the commands that it names calculate', () => {
    const commands = [...PAGE.matchAll(/`npm run simulate(?: -- ([^`]+))?`/g)].map(([, options = '']) => options);
    assert.equal(commands.length, 3);
    for (const options of commands) {
      const args = [join(ROOT, 'scripts/simulate-feed.ts'), ...options.split(' ').filter((option) => option !== '')];
      assert.ok(PAGE.includes(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim()), options);
    }
  });
});
