/** What is read of a report of mutation testing (https://github.com/stryker-mutator/mutation-testing-elements). */
export interface Report {
  files: Record<string, { source: string; mutants: Mutant[] }>;
}

export interface Mutant {
  status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'RuntimeError' | 'CompileError' | 'Ignored' | 'Pending';
  /** What stands in the place of the original. */
  replacement: string;
  /** Lines and columns count from 1; the end is behind the last character. */
  location: { start: Position; end: Position };
}

interface Position {
  line: number;
  column: number;
}

/** What a mutant is called in `may-live.ts`: it stays the same when lines are added above. */
export function nameOf(file: string, source: string, { location, replacement }: Mutant): string {
  const original = source.slice(offsetOf(source, location.start), offsetOf(source, location.end));
  return `${file}: ${short(original)} → ${short(replacement)}`;
}

/** A mutant with its lines as they are and as they were tried. */
export function showMutant(file: string, source: string, mutant: Mutant): string {
  const { start, end } = mutant.location;
  const [before, after] = [source.split('\n')[start.line - 1]!, source.split('\n')[end.line - 1]!];
  const tried = before.slice(0, start.column - 1) + mutant.replacement + after.slice(end.column - 1);
  const original = source.split('\n').slice(start.line - 1, end.line);
  const lines = [...original.map((line) => `- ${line}`), ...tried.split('\n').map((line) => `+ ${line}`)];
  return [`${file}:${start.line}`, ...lines, nameOf(file, source, mutant)].join('\n');
}

function offsetOf(source: string, { line, column }: Position): number {
  const before = source.split('\n').slice(0, line - 1);
  return before.reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
}

function short(code: string): string {
  const oneLine = code.replaceAll(/\s+/g, ' ');
  return oneLine.length > 50 ? `${oneLine.slice(0, 30)}…${oneLine.slice(-19)}` : oneLine;
}
