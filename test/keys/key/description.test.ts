import assert from 'node:assert/strict';
import { validateDescription, normalizeDescription } from '../../../src/keys/key/description.ts';

describe('a description', () => {
  it('is stored in NFC and trimmed', () => {
    assert.equal(normalizeDescription('  cafe\u0301 '), 'caf\u00e9');
  });

  for (const nothing of [undefined, null, '', '   ']) {
    it(`is nothing where ${JSON.stringify(nothing)} is given`, () => {
      assert.equal(normalizeDescription(nothing), null);
    });
  }

  it('may hold any text that can be shown: punctuation, emoji, right-to-left text', () => {
    assert.equal(validateDescription('For CI (nightly) - 🔑, מפתח. “Quoted”; 100 %'), undefined);
  });

  for (const [what, text] of Object.entries({
    newline: 'a\nb',
    'newline at the end': 'a\n',
    tab: 'a\tb',
    NUL: 'a\0b',
    escape: '\u001b[31mred',
    'C1 control': 'a\u0085b',
    'line separator': 'a\u2028b',
    'half surrogate': 'a\ud800',
  })) {
    it(`may not hold a ${what}`, () => {
      assert.deepEqual(validateDescription(text), {
        code: 'DESCRIPTION_INVALID',
        message: 'The description may not contain control characters, such as line breaks or tabs.',
      });
    });
  }

  it('has at most 1,000 code points', () => {
    for (const letter of ['a', '𠀀', 'e\u0301']) {
      assert.equal(validateDescription(` ${letter.repeat(1000)} `), undefined);
      assert.match(
        validateDescription(letter.repeat(1001))!.message,
        /is 1001 characters long; at most 1000 are allowed/,
      );
    }
  });
});
