import assert from 'node:assert/strict';
import { isKeysError, KeysError } from '../../../src/keys/basics/errors.ts';

describe('an error of the rules', () => {
  it('is distinguished from all others, also if it is of another copy of the package', () => {
    const ofAnotherCopy = Object.assign(new Error(), { [Symbol.for('svc-api.keys-error')]: true });
    for (const error of [new KeysError('USAGE', ''), ofAnotherCopy]) assert.equal(isKeysError(error), true);
    for (const other of [new Error(), { code: 'USAGE' }, null, undefined, 'USAGE', 1])
      assert.equal(isKeysError(other), false);
  });
});
