import assert from 'node:assert/strict';
import { isKeysError, KeysError } from '../../../src/keys/basics/errors.ts';
import { allFeatures } from '../../../src/features/index.ts';

describe('an error of the rules', () => {
  it('is told from all others, also one of another copy of the package', () => {
    const ofAnotherCopy = Object.assign(new Error(), { [Symbol.for('svc-api.keys-error')]: true });
    for (const error of [new KeysError('USAGE', ''), ofAnotherCopy]) assert.equal(isKeysError(error), true);
    for (const other of [new Error(), { code: 'USAGE' }, null, undefined, 'USAGE', 1])
      assert.equal(isKeysError(other), false);
  });

  it('is none of a library that happens to have the code of a feature of ours', () => {
    const codes = allFeatures().flatMap(({ errors = {} }) => Object.keys(errors));
    assert.ok(codes.length > 0);
    for (const code of codes)
      assert.equal(isKeysError(Object.assign(new Error('of a library'), { code })), false, code);
  });
});
