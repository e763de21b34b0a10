/** Between two columns. */
export const GAP = '  ';

/** What a column of a table needs. Widths are in columns of the terminal. */
export interface ColumnSpace {
  /** The width of its longest cell. */
  readonly natural: number;
  /** To which width its cells may be shortened, if they are longer. */
  readonly least: number;
  /** Where there is too little room for all, the lowest is left out first, and the column without one last. */
  readonly leaves?: number | undefined;
}

/** The widths of columns that stand side by side within a total width; 0 for those that are left out. */
export function layOut(columns: readonly ColumnSpace[], total: number): number[] {
  const shown = new Set(columns);
  const room = () => total - GAP.length * (shown.size - 1);
  const fits = (level: number) => sum(Array.from(shown, (column) => widthAt(column, level))) <= room();
  for (const column of inOrderOfLeaving(columns)) {
    if (shown.size === 1 || fits(0)) break;
    shown.delete(column);
  }
  // The same for all, except where a column needs less, or may not have so little.
  let level = Math.max(0, room());
  while (level > 0 && !fits(level)) level -= 1;
  const widths = columns.map((column) => (shown.has(column) ? Math.min(widthAt(column, level), room()) : 0));
  let spare = room() - sum(widths);
  return widths.map((width, index) => {
    if (spare <= 0 || width === 0 || width >= columns[index]!.natural) return width;
    spare -= 1;
    return width + 1;
  });
}

function widthAt({ natural, least }: ColumnSpace, level: number): number {
  return Math.min(natural, Math.max(least, level));
}

/** The columns in the order in which they are left out; of equals, the last goes first. */
function inOrderOfLeaving(columns: readonly ColumnSpace[]): ColumnSpace[] {
  return columns.toReversed().toSorted((a, b) => (a.leaves ?? Infinity) - (b.leaves ?? Infinity) || 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
