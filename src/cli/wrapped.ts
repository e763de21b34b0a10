import stringWidth from 'string-width';

/**
 * Parts that stay together because they are read or pasted as one: quoted text, a flag with its value, a part of a
 * usage. The pattern never searches a part twice.
 */
const UNBROKEN = /(?:"[^"]*"|\[[^[\]]*\]|(?<![\w-])--?[\w-]+ <[^<>]*>|\S)+/g;

/**
 * A line of text after a label, wrapped at spaces; later lines are indented by the width of the label. Longer words are
 * left to the terminal, which keeps them whole when copied.
 * @param columns undefined without a terminal: the line stays as it is
 */
export function wrapped(label: string, text: string, columns: number | undefined): string {
  if (columns === undefined || stringWidth(label + text) <= columns) return label + text;
  const lines: string[] = [];
  let line = label;
  let isEmpty = true;
  for (const [word] of text.matchAll(UNBROKEN)) {
    const longer = isEmpty ? line + word : `${line} ${word}`;
    const fits = isEmpty || stringWidth(longer) <= columns;
    if (!fits) lines.push(line);
    line = fits ? longer : ' '.repeat(label.length) + word;
    isEmpty = false;
  }
  return [...lines, line].join('\n');
}

/** Aligned words before a text, followed by a gap of at least two spaces. */
const LABELS = /^(?:(?:\S+(?: \S+)* {2,}){1,2}| *)/;

/** A name with an address or a path, which terminals turn into a link if it is on one line. */
const LINK = /^\w+: \S+$/;

/** Wraps several lines, each of which can have labels or an indentation. */
export function wrappedLines(text: string, columns: number | undefined): string {
  return text
    .split('\n')
    .map((line) => {
      if (LINK.test(line)) return line;
      const [label = ''] = LABELS.exec(line) ?? [];
      return wrapped(label, line.slice(label.length), columns);
    })
    .join('\n');
}

const ELLIPSIS = '…';

export function widthOf(text: string): number {
  return stringWidth(text);
}

/** A text cut to a number of terminal columns, with an ellipsis at its end if it was longer. */
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
