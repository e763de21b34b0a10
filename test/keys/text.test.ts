import assert from 'node:assert/strict';
import { printable } from '../../src/keys/text.ts';

describe('a text that is shown', () => {
  it('is cut behind 60 characters, whatever each of them takes', () => {
    for (const letter of ['a', '𠀀']) {
      assert.equal(printable(letter.repeat(60)), letter.repeat(60));
      assert.equal(printable(letter.repeat(61)), `${letter.repeat(60)}…`);
    }
    assert.equal(printable('abc', 2), 'ab…');
  });

  it('names hidden characters instead of printing them', () => {
    assert.equal(printable('a\u202eb\u001b[31m'), 'a<U+202E>b<U+001B>[31m');
  });
});
