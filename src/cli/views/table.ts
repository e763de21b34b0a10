import { stripVTControlCharacters } from 'node:util';
import type { Terminal } from '../terminal.ts';
import { GAP, layOut } from './layout.ts';

/** A column of a table. */
export interface Column {
  /** What stands above it on a terminal. */
  readonly title: string;
  /** To which width its cells may be shortened on a terminal. By default, they are not. */
  readonly least?: number;
  /** Where a terminal is too narrow for all, the lowest is left out first, and columns without one last. */
  readonly leaves?: number;
}

/** Turns the next rows of a table into text, of one line a row. */
export type TableText = (rows: readonly (readonly string[])[]) => string;

/**
 * A table without colours or boxes. On a terminal its columns are aligned below a head, and shortened or left out so
 * that no line is wider than it. Otherwise a row is a line with tabs between the cells, which are never shortened, so
 * that `cut` and `awk` can read it.
 */
export async function openTable(
  columns: readonly Column[],
  { isTerminal, columns: total }: Pick<Terminal, 'isTerminal' | 'columns'>,
): Promise<TableText> {
  if (!isTerminal) return (rows) => rows.map((row) => row.map(plain).join('\t')).join('\n');
  const { shorten, widthOf } = await import('./shorten.ts');
  const head = columns.map(({ title }) => title);
  const natural = head.map(widthOf);
  let isFirst = true;
  return (rows) => {
    const lines = [...(isFirst ? [head] : []), ...rows.map((row) => row.map(plain))];
    isFirst = false;
    for (const line of lines)
      for (const [index, cell] of line.entries()) natural[index] = Math.max(natural[index]!, widthOf(cell));
    const widths = layOut(
      columns.map(({ least = Infinity, leaves }, index) => ({ natural: natural[index]!, least, leaves })),
      total,
    );
    const fit = (cell: string, index: number) => {
      const text = shorten(cell, widths[index]!);
      return text + ' '.repeat(widths[index]! - widthOf(text));
    };
    const isShown = (_: string, index: number) => widths[index]! > 0;
    return lines.map((line) => line.map(fit).filter(isShown).join(GAP).trimEnd()).join('\n');
  };
}

/** The titles of those columns that can't stand within a width, however short the others get. */
export function titlesLeftOut(columns: readonly Column[], total: number): string[] {
  const widths = layOut(
    columns.map(({ least = Infinity, leaves }) => ({ natural: least, least, leaves })),
    total,
  );
  return columns.filter((_, index) => widths[index] === 0).map(({ title }) => title);
}

function plain(cell: string): string {
  return stripVTControlCharacters(cell).replaceAll('\t', ' ');
}
