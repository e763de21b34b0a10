import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { lockfileOf } from '../../scripts/lockfile-of.ts';
import { references } from '../../scripts/references.ts';

const REFERENCES = await references();

describe('generated files', () => {
  for (const [path, text] of Object.entries(REFERENCES)) {
    it(`${path} is what the code says now`, () => {
      assert.equal(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'), text, 'run: npm run docs');
    });
  }

  it('package-lock.json says which packages ship their binaries, so that `npm ci` compiles nothing', () => {
    assert.match(lockfileOf(), /"gypfile": false/);
    assert.equal(
      readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
      lockfileOf(),
      'run: npm run dependencies',
    );
  });
});
