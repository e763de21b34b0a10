import assert from 'node:assert/strict';
import { HiddenTexts } from '../../../../src/features/guard/hidden-texts.ts';
import { Random } from '../../../support/random.ts';

const SECRET = `a+/="<&>'b%25 c\\d;0123`;
const everyChar = (write: (code: number, char: string) => string) =>
  Array.from(SECRET, (char) => write(char.charCodeAt(0), char)).join('');
const hexOf = (code: number, length = 2) => code.toString(16).padStart(length, '0');
const percent = (text: string) => encodeURIComponent(text);
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const NAMED: Record<string, string> = { '"': '&quot;', '<': '&lt;', '&': '&amp;', '>': '&gt;', "'": '&#39;' };
const html = (text: string) => text.replaceAll(/["<&>']/g, (char) => NAMED[char]!);

/** A text in the syntax of frameworks. */
const FORMS: Record<string, string> = {
  'as it is': SECRET,
  'by encodeURIComponent': percent(SECRET),
  'percent-encoded in lower case': percent(SECRET).replaceAll(/%../g, (escape) => escape.toLowerCase()),
  'percent-encoded in mixed case': percent(SECRET).replace('%2F', '%2f'),
  'by encodeURI, which leaves some characters': encodeURI(SECRET),
  'in a form, with + for a space': percent(SECRET).replaceAll('%20', '+'),
  'percent-encoded twice': percent(percent(SECRET)),
  'percent-encoded four times': percent(percent(percent(percent(SECRET)))),
  'percent-encoded, every character': everyChar((code) => `%${hexOf(code)}`),
  'by JSON.stringify': json(SECRET),
  'by PHP, with \\/': json(SECRET).replaceAll('/', '\\/'),
  'by .NET, with \\u002B': everyChar((code, char) =>
    /[\w.=;/%]/.test(char) ? char : `\\u${hexOf(code, 4).toUpperCase()}`,
  ),
  'by Go, with \\u0026': json(SECRET).replaceAll(/[<>&]/g, (char) => `\\u${hexOf(char.charCodeAt(0), 4)}`),
  'in JavaScript, with \\x2b': everyChar((code, char) => (/\w/.test(char) ? char : `\\x${hexOf(code)}`)),
  'in JSON that is text in JSON': json(json(SECRET)),
  'in JSON that is text in JSON, by .NET': json(json(SECRET)).replaceAll('\\\\"', '\\\\u0022'),
  'in HTML': html(SECRET),
  'in HTML, with numbers': everyChar((code) => `&#${code};`),
  'in HTML, with hexadecimal numbers and zeros': everyChar((code) => `&#x${hexOf(code, 4).toUpperCase()};`),
  'in HTML, with names of all that have one': html(SECRET).replaceAll('+', '&plus;').replaceAll('/', '&sol;'),
  'in HTML, encoded twice': html(html(SECRET)),
  'in an address in HTML': html(percent(SECRET)),
  'in HTML in an address': percent(html(SECRET)),
  'in JSON in an attribute': html(json(SECRET)),
  'in HTML in JSON': json(html(SECRET)).replaceAll('&', '\\u0026'),
  'in an address that is percent-encoded in JSON': json(percent(percent(SECRET))),
};

describe('a text that is hidden', () => {
  const hidden = new HiddenTexts([SECRET, 'another-0123456789']);
  const streamed = async (text: string, cut: (bytes: Buffer) => Buffer[]) => {
    const stream = hidden.stream();
    for (const chunk of cut(Buffer.from(text, 'latin1'))) stream.write(chunk);
    stream.end();
    return Buffer.concat(await stream.toArray()).toString('latin1');
  };

  for (const [how, form] of Object.entries(FORMS))
    it(`is replaced by stars ${how}, wherever it is split, and nothing around it`, async () => {
      for (const [before, after] of [
        ['', ''],
        ['<a href="?key=', '&next=1">'],
        [`a+/% \\ & &amp; %2 ${SECRET.slice(0, 9)}`, SECRET.slice(0, 12)],
      ] as const) {
        const text = before + form + after;
        const stars = before + '*'.repeat(form.length) + after;
        assert.equal(hidden.hide(text), stars);
        assert.equal(await streamed(text, (bytes) => Array.from(bytes, (byte) => Buffer.of(byte))), stars);
        assert.equal(await streamed(text, (bytes) => [bytes]), stars);
        for (let at = 1; at < text.length; at += 7)
          assert.equal(await streamed(text, (bytes) => [bytes.subarray(0, at), bytes.subarray(at)]), stars);
      }
    });

  it('is found among bytes of all kinds, which do not change', async () => {
    const random = new Random(1);
    const noise = () =>
      Buffer.from(Array.from({ length: 5000 }, () => Math.floor(random.next() * 256))).toString('latin1');
    for (let round = 0; round < 5; round += 1) {
      const [before, after] = [noise(), noise()];
      const text = `${before}${FORMS['by Go, with \\u0026']!}${after}another-0123456789`;
      const stars = `${before}${'*'.repeat(FORMS['by Go, with \\u0026']!.length)}${after}${'*'.repeat(18)}`;
      assert.equal(await streamed(text, (bytes) => [bytes.subarray(0, 5010), bytes.subarray(5010)]), stars);
    }
  });

  it('is held back only where it may have begun: an event is passed on at once', async () => {
    const stream = hidden.stream();
    stream.write('data: 100 % of {"a":"b"}\n\n');
    assert.equal(String(stream.read()), 'data: 100 % of {"a":"b"}\n\n');
    stream.write(`data: ${SECRET.slice(0, 5)}`);
    assert.equal(String(stream.read()), 'data: ');
    stream.end();
    assert.equal(Buffer.concat(await stream.toArray()).toString(), SECRET.slice(0, 5));
  });
});
