import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { references } from '../../scripts/references.ts';

describe('generated files', () => {
  for (const [path, text] of Object.entries(references())) {
    it(`${path} is what the code says now`, () => {
      assert.equal(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'), text, 'run: npm run docs');
    });
  }
});
