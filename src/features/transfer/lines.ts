/** The longest line. Lists of plugins can make a key large. */
export const MAX_LINE_BYTES = 16 * 1024 ** 2;

/** A line and its number, counted from 1. A line that is too long or not valid UTF-8 comes without its text. */
export type Line = { number: number; text: string } | { number: number; unreadable: 'TOO_LONG' | 'NOT_UTF8' };

const LINE_FEED = 10;

/** Splits a stream into lines, in bounded memory whatever it holds. */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  // Strips a byte order mark.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Uint8Array[] = [];
  let length = 0;
  let number = 0;

  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      keep(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    keep(chunk.subarray(start));
  }
  if (length > 0) yield take();

  function keep(part: Uint8Array): void {
    length += part.length;
    if (length <= MAX_LINE_BYTES) parts.push(part);
    else parts = [];
  }

  function take(): Line {
    number += 1;
    const line: Line =
      length > MAX_LINE_BYTES ? { number, unreadable: 'TOO_LONG' } : { number, ...decode(Buffer.concat(parts)) };
    parts = [];
    length = 0;
    return line;
  }

  function decode(bytes: Uint8Array): { text: string } | { unreadable: 'NOT_UTF8' } {
    try {
      return { text: decoder.decode(bytes) };
    } catch {
      return { unreadable: 'NOT_UTF8' };
    }
  }
}
