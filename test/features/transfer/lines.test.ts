import assert from 'node:assert/strict';
import { type Line, linesOf, MAX_LINE_BYTES } from '../../../src/features/transfer/lines.ts';

describe('the lines of a stream', () => {
  const read = async (...chunks: string[]) => {
    const lines: Line[] = [];
    const input = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
    })();
    for await (const line of linesOf(input)) lines.push(line);
    return lines;
  };

  it('are numbered from 1, including empty ones, wherever the stream is split', async () => {
    const expected = ['a', '', 'bc', '\r', 'd'].map((text, index) => ({ number: index + 1, text }));
    const text = 'a\n\nbc\n\r\nd';
    for (const chunks of [[text], text.split(''), ['a\n\nb', 'c\n', '', '\r\nd']]) {
      assert.deepEqual(await read(...chunks), expected);
      assert.deepEqual(await read(...chunks, '\n'), expected, 'the last one may end');
    }
    assert.deepEqual(await read(), []);
    assert.deepEqual(await read('\n'), [{ number: 1, text: '' }]);
  });

  it('come without their text where they are too long or no UTF-8, and so do not spoil the next', async () => {
    const longest = 'x'.repeat(MAX_LINE_BYTES);
    assert.deepEqual(await read(`${longest}x\na\n\xff\nb\n`, longest, '\n', longest, 'x', 'y\nc'), [
      { number: 1, unreadable: 'TOO_LONG' },
      { number: 2, text: 'a' },
      { number: 3, unreadable: 'NOT_UTF8' },
      { number: 4, text: 'b' },
      { number: 5, text: longest },
      { number: 6, unreadable: 'TOO_LONG' },
      { number: 7, text: 'c' },
    ]);
  });
});
