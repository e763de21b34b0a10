import { stripVTControlCharacters } from 'node:util';

/**
 * Rows as columns: with aligned columns and a head on a terminal, otherwise one line a row with tabs between, so that
 * `cut` and `awk` can read it. Never with colours or boxes.
 */
export async function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isTerminal: boolean,
): Promise<string> {
  const plain = rows.map((row) => row.map((cell) => stripVTControlCharacters(cell).replaceAll('\t', ' ')));
  if (!isTerminal) return plain.map((row) => row.join('\t')).join('\n');
  const { default: Table } = await import('cli-table3');
  const none = Object.fromEntries(
    [
      'top',
      'top-mid',
      'top-left',
      'top-right',
      'bottom',
      'bottom-mid',
      'bottom-left',
      'bottom-right',
      'left',
      'left-mid',
      'mid',
      'mid-mid',
      'right',
      'right-mid',
    ].map((part) => [part, '']),
  );
  const table = new Table({
    head: [...head],
    chars: { ...none, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  table.push(...plain);
  return table.toString();
}
