import type { DocumentIssue } from '../keys/document.ts';
import { printable } from '../keys/text.ts';

/** A position in a text; lines and columns start at 1. */
export interface Position {
  line: number;
  column: number;
}

/** One problem in a text, and where it is. */
export interface LocatedIssue extends Position {
  message: string;
}

/** How many issues are shown: the first ones in the file. */
const MAX_SHOWN_ISSUES = 20;
/** How many issues get a line and column before they are sorted, so that a hopeless file is refused quickly. */
const MAX_LOCATED_ISSUES = 1000;

/** Issues of a document as lines of text: see `locatedText`. @param positionOf where an issue is in the file */
export function describeIssues(
  name: string,
  issues: readonly DocumentIssue[],
  positionOf: (issue: Pick<DocumentIssue, 'path' | 'ofField'>) => Position,
): string {
  const located = issues.slice(0, MAX_LOCATED_ISSUES).map(({ message, related, ...issue }) => {
    const other = related ? ` The other one is in line ${positionOf({ path: related }).line}.` : '';
    return { ...positionOf(issue), message: message + other };
  });
  return locatedText(name, located, issues.length);
}

/**
 * Issues as lines of text, each as `name:line:column: message`, in the order of the file.
 * @param name that of the file
 * @param count how many there are, if these are not all
 */
export function locatedText(name: string, issues: readonly LocatedIssue[], count = issues.length): string {
  const sorted = issues.toSorted((one, other) => one.line - other.line || one.column - other.column);
  const shown = sorted
    .slice(0, MAX_SHOWN_ISSUES)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 1000)}`);
  if (count > MAX_SHOWN_ISSUES) shown.push(`${count - MAX_SHOWN_ISSUES} more not shown.`);
  return shown.join('\n');
}
