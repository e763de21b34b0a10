import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAY_LIVE } from '../../mutants/may-live.ts';
import { TESTS, testsOf } from '../../mutants/tests-of.ts';
import { ROOT } from '../support/process.ts';

describe('mutation testing', () => {
  it('names folders that exist, and finds tests by each of its patterns', () => {
    const rooms = globSync('src/keys/*', { cwd: ROOT }).map((path) => path.slice('src/'.length));
    assert.ok(rooms.length > 10);
    for (const folder of new Set([...Object.keys(TESTS), ...rooms, 'http'])) {
      assert.ok(existsSync(join(ROOT, 'src', folder)), folder);
      for (const pattern of testsOf(folder))
        assert.notDeepEqual(globSync(`test/${pattern}.test.ts`, { cwd: ROOT }), [], `${folder}: ${pattern}`);
    }
  });

  it('excuses changes of code that exists', () => {
    for (const mutant of MAY_LIVE.flatMap(({ mutants }) => mutants)) {
      const [, file, original] = /^(.+?\.ts): (.+) → .+$/.exec(mutant)!;
      const source = readFileSync(join(ROOT, file!), 'utf8').replaceAll(/\s+/g, ' ');
      let at = 0;
      // `…` stands for the middle of a long text.
      for (const part of original!.split('…')) {
        at = source.indexOf(part, at);
        assert.ok(at >= 0, mutant);
      }
    }
  });
});
