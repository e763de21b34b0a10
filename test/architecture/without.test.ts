import assert from 'node:assert/strict';
import { cycleIn } from '../../scripts/imports.ts';
import { importsInto, withDependents } from '../../scripts/without-features.ts';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

describe('without a feature and those that need it', () => {
  for (const { name } of FEATURES)
    it(`nothing that is left imports it: ${name}`, () => {
      assert.deepEqual(importsInto(ROOT, withDependents([name])), []);
    });

  it('there are features', () => assert.ok(FEATURES.length > 20));
});

describe('the needs of features', () => {
  it('form no circle', () => {
    assert.deepEqual(cycleIn(new Map(FEATURES.map(({ name, needs = [] }) => [name, needs]))), []);
  });
});
