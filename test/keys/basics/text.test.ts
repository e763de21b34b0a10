import assert from 'node:assert/strict';
import {
  checkSearchText,
  codePoints,
  describeCharacter,
  formatList,
  hasControlCharacters,
  hasTooManyMarks,
  normalizeText,
  printable,
  printableJson,
} from '../../../src/keys/basics/text.ts';

const MARK = '\u0301';

describe('a text', () => {
  it('is as long as it has code points', () => {
    for (const [text, length] of Object.entries({ '': 0, abc: 3, 𠀀𠀀: 2, 'e\u0301': 2 }))
      assert.equal(codePoints(text), length, text);
  });

  it('is stored in NFC, but left as it is where it has more than 30 combining marks in a row', () => {
    assert.equal(normalizeText(`e${MARK}`), '\u00e9');
    const marked = (count: number) => `e${MARK.repeat(count)}`;
    assert.deepEqual([hasTooManyMarks(marked(30)), hasTooManyMarks(marked(31))], [false, true]);
    assert.deepEqual([hasTooManyMarks(MARK.repeat(30)), hasTooManyMarks(MARK.repeat(31))], [false, true]);
    assert.deepEqual([normalizeText(marked(30)), normalizeText(marked(31))], [`\u00e9${MARK.repeat(29)}`, marked(31)]);
  });

  it('has control characters where something in it is no character to show, or ends the line', () => {
    for (const text of ['a\n', '\t', '\u0000', '\u007f', '\u0085', '\u2028', '\u2029', '\ud83d', 'a\udd11'])
      assert.equal(hasControlCharacters(text), true, JSON.stringify(text));
    for (const text of ['', 'a b', '🔑', 'e\u0301', '\u200d']) assert.equal(hasControlCharacters(text), false, text);
  });
});

describe('a text to look for', () => {
  it('has at most 1,000 code points, and no U+0000', () => {
    for (const text of ['', 'a', 'a'.repeat(1000), '𠀀'.repeat(1000), '\u0001']) checkSearchText(text);
    const refused = (text: string, message: string) =>
      assert.throws(() => checkSearchText(text), { code: 'INPUT_INVALID', message });
    refused('a'.repeat(1001), `"${'a'.repeat(60)}…" is 1001 characters long; at most 1000 are allowed.`);
    refused('a\0', '"a<U+0000>" must not contain U+0000.');
  });
});

describe('a text that is shown', () => {
  it('is cut after 60 characters, of any width', () => {
    for (const letter of ['a', '𠀀']) {
      assert.equal(printable(letter.repeat(60)), letter.repeat(60));
      assert.equal(printable(letter.repeat(61)), `${letter.repeat(60)}…`);
    }
    assert.equal(printable('abc', 2), 'ab…');
  });

  it('names hidden characters instead of printing them', () => {
    assert.equal(printable('a\u202eb\u001b[31m'), 'a<U+202E>b<U+001B>[31m');
  });

  it('has the same values in JSON, with hidden characters escaped', () => {
    const value = { a: 'x\u009b31m\u202ey\u2028', emoji: '\u{1F511}', tag: '\u{E0041}', lines: '1\n2' };
    const json = JSON.stringify(value, null, 2);
    const shown = printableJson(json);
    assert.deepEqual(JSON.parse(shown), value);
    assert.ok(shown.includes('\u{1F511}') && shown.includes('\\udb40\\udc41'), shown);
    assert.doesNotMatch(shown, /[\u009b\u202e\u2028\u{E0041}]/u);
    assert.equal(shown.split('\n').length, json.split('\n').length);
  });

  it('has the prefixes of secrets in their place, also of one that is cut off', () => {
    const secret = `svc_0a1B2c3D4e5F_${'x'.repeat(49)}`;
    assert.equal(printable(`${secret} ${secret}`), 'svc_0a1B2c3D4e5F_… svc_0a1B2c3D4e5F_…');
    assert.equal(printable(`${secret} `.repeat(10), 20), 'svc_0a1B2c3D4e5F_… s…');
  });

  it('names a character with its number, or only by that if it is invisible', () => {
    const rows = { '-': '"-" (U+002D)', é: '"é" (U+00E9)', '🔑': '"🔑" (U+1F511)', '\n': 'U+000A', ' ': 'U+0020' };
    const hidden = { [MARK]: 'U+0301', '\u00a0': 'U+00A0', '\u200b': 'U+200B', '\u3164': 'U+3164', '\u202e': 'U+202E' };
    for (const [character, shown] of Object.entries({ ...rows, ...hidden }))
      assert.equal(describeCharacter(character), shown);
  });

  it('joins lists', () => {
    assert.deepEqual(
      [
        formatList([]),
        formatList(['a']),
        formatList(['a', 'b']),
        formatList(['a', 'b', 'c']),
        formatList(['a', 'b'], 'or'),
      ],
      ['', 'a', 'a and b', 'a, b and c', 'a or b'],
    );
  });
});
