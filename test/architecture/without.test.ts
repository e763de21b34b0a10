import assert from 'node:assert/strict';
import { cycleIn } from '../../scripts/imports.ts';
import { freeFeatures, HELD, importsInto, withDependents } from '../../scripts/without-features.ts';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

describe('without a feature and those that need it', () => {
  for (const name of freeFeatures())
    it(`nothing that is left imports it: ${name}`, () => {
      assert.deepEqual(importsInto(ROOT, withDependents([name])), []);
    });

  for (const name of HELD)
    it(`something that is left imports it or one that needs it: ${name} (held)`, () => {
      assert.notDeepEqual(importsInto(ROOT, withDependents([name])), []);
    });

  it('there are features, of which those that are held exist', () => {
    const names = FEATURES.map(({ name }) => name);
    assert.deepEqual(
      HELD.filter((name) => !names.includes(name)),
      [],
    );
    assert.ok(names.length > HELD.length);
  });
});

describe('the needs of features', () => {
  it('form no circle', () => {
    assert.deepEqual(cycleIn(new Map(FEATURES.map(({ name, needs = [] }) => [name, needs]))), []);
  });
});
