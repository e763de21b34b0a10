import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../support/host.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** The leak detection of `test/support/hooks.ts`. */
const HOOKS = `
import { failOnLeaks, nameTest, watchForLeaks } from '${join(ROOT, 'test/support/leaks.ts')}';
export const mochaHooks = { beforeAll: watchForLeaks, beforeEach() { nameTest(this.currentTest.fullTitle()); }, afterAll: [failOnLeaks] };
`;
const TESTS = `
describe('it', () => {
  it('leaks', () => void setTimeout(() => void Promise.reject(new Error('unseen')), 0));
  it('passes meanwhile', (done) => void setTimeout(done, 20));
  it('handles', () => Promise.reject(new Error('seen')).catch(() => {}));
  it('leaks at the end', () => void Promise.reject('a text'));
});
`;

describe('an unhandled rejection', () => {
  for (const [where, flags] of Object.entries({ 'one process': [], workers: ['--parallel'] }))
    it(`fails a run of tests in ${where}, by the names of the tests`, async () => {
      const folder = tempFolder();
      const [hooks, tests] = [join(folder, 'hooks.ts'), join(folder, 'a.test.ts')];
      writeFileSync(hooks, HOOKS);
      writeFileSync(tests, TESTS);
      const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js');
      const { code, stdout, stderr } = await run('node', [mocha, '--no-config', '--require', hooks, ...flags, tests], {
        cwd: ROOT,
      });
      assert.equal(code, 1, stdout + stderr);
      assert.match(stdout, /4 passing.*1 failing/s);
      assert.match(stdout, /during or after "it (leaks|passes meanwhile)": Error: unseen\n/);
      assert.match(stdout, /during or after "it leaks at the end": a text\n/);
      assert.doesNotMatch(stdout, /: Error: seen/);
    });
});
