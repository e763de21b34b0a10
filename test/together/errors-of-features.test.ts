import assert from 'node:assert/strict';
import { allFeatures } from '../../src/features/index.ts';
import { isKeysError } from '../../src/keys/basics/errors.ts';

describe('an error of the rules', () => {
  it('is not one of a library with the same code as a feature of ours', () => {
    const codes = allFeatures().flatMap(({ errors = {} }) => Object.keys(errors));
    assert.ok(codes.length > 0);
    for (const code of codes)
      assert.equal(isKeysError(Object.assign(new Error('of a library'), { code })), false, code);
  });
});
