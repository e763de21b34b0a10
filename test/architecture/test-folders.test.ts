import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

describe('the tests', () => {
  it('are all run by a configuration of mocha', () => {
    const configurations = globSync('.mocharc*.json', { cwd: ROOT });
    const run = configurations.flatMap((path) => {
      const { spec } = JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as { spec: string | string[] };
      return globSync(spec, { cwd: ROOT });
    });
    assert.ok(run.length > 100);
    assert.deepEqual(run.toSorted(), globSync('test/**/*.test.ts', { cwd: ROOT }).toSorted());
  });
});
