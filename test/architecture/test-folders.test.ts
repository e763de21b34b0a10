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

  it('are all run before a change is merged: each either by `npm test` or by another command', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const steps = readFileSync(join(ROOT, '.ci/run'), 'utf8').split('\n');
    for (const name of Object.keys(scripts).filter((script) => /^test:(?!one$)/.test(script)))
      assert.ok(steps.includes(`step npm run --silent ${name}`), name);
    const [once, again] = ['test', 'test:again'].map((name) => /^mocha --grep '(.+)'$/.exec(scripts[name]!)![1]!);
    for (const title of ['on SQLite, a key', 'again on PostgreSQL, a key', 'a key that is made again ', 'again'])
      assert.notEqual(new RegExp(once!).test(title), new RegExp(again!).test(title), title);
  });
});
