/** Where a plot is drawn. */
export interface PlotSpace {
  /** How many columns of the terminal it may take. */
  readonly columns: number;
  /** Whether that shows more than ASCII. */
  readonly showsUnicode: boolean;
}

/** What stands for a value, by its height: eighths of a line, or characters of more and more ink. */
const [BLOCKS, ASCII] = ['▁▂▃▄▅▆▇█', '.:-=+*#@'];

/** How many neighbouring values share a column of a plot. */
export function valuesAColumn(count: number, columns: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, columns)));
}

/**
 * Draws counts in one line, as high as they are compared with the highest; none are blank. Where there are more than
 * columns, as many neighbours as necessary are drawn together, the last ones of all in full columns.
 */
export function plot(values: readonly number[], { columns, showsUnicode }: PlotSpace): string {
  const size = valuesAColumn(values.length, columns);
  const sums: number[] = [];
  for (let end = values.length; end > 0; end -= size)
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, value) => sum + value, 0));
  const marks = showsUnicode ? BLOCKS : ASCII;
  const highest = Math.max(...sums);
  return sums.map((sum) => (sum > 0 ? marks[Math.ceil((sum / highest) * marks.length) - 1] : ' ')).join('');
}
