import stringWidth from 'string-width';

const ELLIPSIS = '…';

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** A text in at most so many columns of a terminal; if it has more, its end is replaced by an ellipsis. */
export function shorten(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  let shown = '';
  let room = columns - stringWidth(ELLIPSIS);
  if (room < 0) return '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    room -= stringWidth(segment);
    if (room < 0) break;
    shown += segment;
  }
  return shown.trimEnd() + ELLIPSIS;
}
