import assert from 'node:assert/strict';
import { printable, printableJson } from '../../src/keys/text.ts';

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

  it('has the same values in JSON, with hidden characters escaped', () => {
    const value = { a: 'x\u009b31m\u202ey\u2028', emoji: '\u{1F511}', tag: '\u{E0041}', lines: '1\n2' };
    const json = JSON.stringify(value, null, 2);
    const shown = printableJson(json);
    assert.deepEqual(JSON.parse(shown), value);
    assert.ok(shown.includes('\u{1F511}') && shown.includes('\\udb40\\udc41'), shown);
    assert.doesNotMatch(shown, /[\u009b\u202e\u2028\u{E0041}]/u);
    assert.equal(shown.split('\n').length, json.split('\n').length);
  });
});
