/** The start of a cell that spreadsheets run as a formula, in text from others (CWE-1236). */
const FORMULA = /^\s*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A line of CSV (RFC 4180). Cells are escaped so that spreadsheets do not run formulas. */
export function csvLine(cells: readonly (string | null)[]): string {
  const quoted = cells.map((cell) => {
    const text = cell ?? '';
    return `"${FORMULA.test(text) ? "'" : ''}${text.replaceAll('"', '""')}"`;
  });
  return `${quoted.join(',')}\r\n`;
}
