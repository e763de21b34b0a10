import { jsonText } from '../../../cli/output.ts';

/** A JSON document for stdout, with a list as its last field, item by item, since the whole may be too long for a string. */
export function* jsonTexts(json: object, list: string, items: Iterable<object>): Generator<string> {
  yield `${jsonText(json).slice(0, -'\n}\n'.length)},\n  ${JSON.stringify(list)}: [`;
  let isEmpty = true;
  for (const item of items) {
    const text = jsonText(item).trimEnd().replaceAll('\n', '\n    ');
    yield `${isEmpty ? '' : ','}\n    ${text}`;
    isEmpty = false;
  }
  yield `${isEmpty ? '' : '\n  '}]\n}\n`;
}

/** How many characters are written at once. */
const PIECE_LENGTH = 64 * 1024;

/** Short texts, joined to pieces that are long enough to be written. */
export function* piecesOf(texts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}
