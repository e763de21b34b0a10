import assert from 'node:assert/strict';
import { normalizeName, validateName } from '../../../src/keys/key/name.ts';

const COMPOSED = 'Caf\u00e9';
const DECOMPOSED = 'Cafe\u0301';

describe('a name', () => {
  it('is stored in NFC', () => {
    assert.equal(normalizeName(DECOMPOSED), COMPOSED);
  });

  it('loses the spaces at its ends, and no others', () => {
    assert.equal(normalizeName('  CI  deploy '), 'CI  deploy');
  });

  const accepted = {
    'letters, digits and spaces': 'CI deploy 7',
    'a single digit': '0',
    'accents, composed': COMPOSED,
    'accents, decomposed': DECOMPOSED,
    'letters with marks that have no composed form': 'x\u0301\u0302',
    'Indic letters with vowel signs': 'हिन्दी कुंजी',
    'Tamil letters with vowel signs': 'தமிழ்',
    'Thai letters with tone marks': 'กุญแจที่หนึ่ง',
    'Han and kana': '日本語のキー',
    'right-to-left text': 'مفتاح שלום',
    'decimal digits of other scripts': 'key ٣٤ ४५ ๖๗ 𝟘',
    'astral letters': '𠀀𝔘𐐀',
  };
  for (const [what, name] of Object.entries(accepted)) {
    it(`may hold ${what}`, () => {
      assert.equal(validateName(name), undefined);
    });
  }

  const refused: Record<string, [name: string, found: string]> = {
    'a hyphen': ['my-key', '"-" (U+002D)'],
    'an underscore': ['my_key', '"_" (U+005F)'],
    'an emoji': ['key 🔑', '"🔑" (U+1F511)'],
    'a keycap sequence': ['1\u20e3', 'U+20E3'],
    'a combining mark alone': ['\u0301', 'U+0301'],
    'a combining mark after a space': ['a \u0301', 'U+0301'],
    'a combining mark after a digit': ['1\u0301', 'U+0301'],
    'a fraction, which is no decimal digit': ['½', '"½" (U+00BD)'],
    'a Roman numeral, which is no decimal digit': ['Ⅷ', '"Ⅷ" (U+2167)'],
    'a NUL': ['a\0b', 'U+0000'],
    'a newline inside': ['a\nb', 'U+000A'],
    'a newline at the end': ['a\n', 'U+000A'],
    'a tab': ['\ta', 'U+0009'],
    'a no-break space': ['a\u00a0b', 'U+00A0'],
    'an ideographic space': ['a\u3000b', 'U+3000'],
    'a zero-width joiner': ['a\u200db', 'U+200D'],
    'a direction override': ['a\u202eb', 'U+202E'],
    'a byte order mark': ['\ufeffa', 'U+FEFF'],
    'a Hangul filler alone': ['\u3164', 'U+3164'],
    'a Hangul filler among letters': ['a\u3164b', 'U+3164'],
    'a choseong filler alone': ['\u115f', 'U+115F'],
    'a choseong filler among letters': ['a\u115fb', 'U+115F'],
    'a jungseong filler': ['a\u1160', 'U+1160'],
    'a halfwidth filler': ['a\uffa0', 'U+FFA0'],
    'a variation selector': ['a\ufe0f', 'U+FE0F'],
    'a grapheme joiner': ['a\u034f', 'U+034F'],
    'half of a surrogate pair': ['a\ud83d', 'U+D83D'],
    'the other half of a surrogate pair': ['\udd11a', 'U+DD11'],
  };
  for (const [what, [name, found]] of Object.entries(refused)) {
    it(`may not hold ${what}`, () => {
      assert.deepEqual(validateName(name), {
        code: 'NAME_INVALID',
        message: `The name may only contain letters, digits and spaces; found ${found}.`,
      });
    });
  }

  it('names each character once that it may not hold, and the first five of many', () => {
    assert.match(validateName('a-b-c_d')!.message, /found "-" \(U\+002D\) and "_" \(U\+005F\)\.$/);
    assert.match(validateName('!#$%&')!.message, /"%" \(U\+0025\) and "&" \(U\+0026\)\.$/);
    assert.match(validateName('!#$%&()')!.message, /found "!" .*"&" \(U\+0026\) and 2 more\.$/);
  });

  for (const empty of ['', ' ', '   ']) {
    it(`may not be ${JSON.stringify(empty)}`, () => {
      assert.deepEqual(validateName(empty), {
        code: 'NAME_INVALID',
        message: 'The name is empty: it needs at least one letter or digit.',
      });
    });
  }

  it('has at most 30 combining marks in a row', () => {
    assert.equal(validateName(`x${'\u0301'.repeat(30)}`), undefined);
    assert.deepEqual(validateName(`x${'\u0301'.repeat(31)}`), {
      code: 'NAME_INVALID',
      message: 'The name has more than 30 combining marks in a row.',
    });
  });

  it('has at most 100 code points, counted after trimming and composing', () => {
    for (const letter of ['a', '𠀀', 'e\u0301']) {
      assert.equal(validateName(`  ${letter.repeat(100)}  `), undefined);
      assert.match(
        validateName(letter.repeat(101))!.message,
        /^The name is 101 characters long; at most 100 are allowed\.$/,
      );
    }
  });
});
