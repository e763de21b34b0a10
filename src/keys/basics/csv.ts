/** The start of a cell that programs take for a formula, in a table that somebody else has filled (CWE-1236). */
const FORMULA = /^\s*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A line of CSV (RFC 4180) in which no cell begins as a formula does. */
export function csvLine(cells: readonly (string | null)[]): string {
  const quoted = cells.map((cell) => {
    const text = cell ?? '';
    return `"${FORMULA.test(text) ? "'" : ''}${text.replaceAll('"', '""')}"`;
  });
  return `${quoted.join(',')}\r\n`;
}
