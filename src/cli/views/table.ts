import { stripVTControlCharacters } from 'node:util';

const GAP = '  ';

/**
 * Rows as text, without colours or boxes: aligned columns below a head on a terminal, otherwise one line a row with
 * tabs between the cells, so that `cut` and `awk` can read it.
 */
export async function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isTerminal: boolean,
): Promise<string> {
  const plain = rows.map((row) => row.map((cell) => stripVTControlCharacters(cell).replaceAll('\t', ' ')));
  if (!isTerminal) return plain.map((row) => row.join('\t')).join('\n');
  const { default: widthOf } = await import('string-width');
  const lines = [head, ...plain];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))));
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell));
  return lines.map((line) => line.map(pad).join(GAP).trimEnd()).join('\n');
}
