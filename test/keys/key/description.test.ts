import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { keyFields } from '../../../src/keys/key/fields.ts';
import { normalizeLine } from '../../../src/keys/key/labels.ts';

const validateDescription = (text: string) => keyFields.description.validate(text)[0];

describe('a description', () => {
  it('is stored in NFC and trimmed', () => {
    assert.equal(normalizeLine('  cafe\u0301 '), 'caf\u00e9');
  });

  for (const nothing of [undefined, null, '', '   ']) {
    it(`is nothing where ${JSON.stringify(nothing)} is given`, () => {
      assert.equal(normalizeLine(nothing), null);
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
        message: 'The description must not contain control characters, such as line breaks or tabs.',
      });
    });
  }

  it('may not hold a secret, not even a truncated one, but may name a key by its prefix', () => {
    const { text, publicId } = createSecret(randomBytes);
    for (const secret of [text, `Key: ${text}.`, text.slice(0, 30), `${text}x`]) {
      const issue = validateDescription(secret);
      assert.deepEqual([issue?.code, issue?.message.includes(text.slice(17, 30))], ['DESCRIPTION_INVALID', false]);
    }
    assert.equal(validateDescription(`Replaces svc_${publicId}_…, svc_api and svc_`), undefined);
  });

  it('has at most 30 combining marks in a row', () => {
    assert.equal(validateDescription(`x${'\u0301'.repeat(30)}`), undefined);
    assert.deepEqual(validateDescription(`x${'\u0301'.repeat(31)}`), {
      code: 'DESCRIPTION_INVALID',
      message: 'The description has more than 30 combining marks in a row.',
    });
  });

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
