import assert from 'node:assert/strict';
import { describeLikeness } from '../../../src/keys/key/skeleton.ts';

describe('the likeness of two names', () => {
  it('is told with the characters by which they differ, if each has some of its own', () => {
    const same = (name: string, other: string) => `The name "${name}" looks like that of the API key "${other}"`;
    assert.equal(
      describeLikeness('bum', 'burn'),
      `${same('bum', 'burn')}: it has "m" (U+006D) in place of "r" (U+0072) and "n" (U+006E).`,
    );
    assert.equal(describeLikeness('l1', '1l'), `${same('l1', '1l')}.`);
    assert.equal(describeLikeness('l1', 'll'), `${same('l1', 'll')}.`);
    assert.equal(describeLikeness('ll', 'l1'), `${same('ll', 'l1')}.`);
  });
});
