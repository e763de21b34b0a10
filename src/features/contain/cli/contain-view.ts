import { formatCount } from '../../../cli/output.ts';
import { formatDiff } from '../../../cli/views/change-view.ts';
import { issuedLines, issueJson } from '../../../cli/views/key-view.ts';
import { printable } from '../../../keys/basics/index.ts';
import type { Contained } from '../contain.ts';

/** True if there is something to undo. */
export function changes({ changes: changed, requests }: Contained): boolean {
  return changed.length + requests.length > 0;
}

/** A plan or a result as text. */
export function textOf(contained: Contained, title: string, words: readonly [string, string]): string {
  const lines = containedLines(contained);
  const total = changes(contained) ? `${title}: ${containedCounts(contained, words)}.` : nothingToUndo(contained);
  return [...lines, total].join('\n');
}

function nothingToUndo(contained: Contained): string {
  const state = contained.exists ? 'disabled' : 'deleted';
  const others = contained.issued.length > 0 ? 'so are its parent keys' : 'nothing else is in effect';
  return `There is nothing to undo. ${nameIn(contained)} is ${state}, and ${others}.`;
}

/** The name of the key, in quotes. */
export function nameIn({ apiKey: { name } }: Contained): string {
  return `"${printable(name, 100)}"`;
}

/** A plan or a result as JSON: a closed list of fields. */
export function containedJson({ apiKey, exists, issued, changes, requests }: Contained, dryRun: boolean): object {
  return { dryRun, apiKey, exists, issued: issued.map(issueJson), changes, requests };
}

/** The plan as text: the changes the key made, then how each is undone. */
function containedLines(contained: Contained): string[] {
  const { exists, issued, changes: changed, requests } = contained;
  const name = nameIn(contained);
  return [
    ...(exists ? [] : [`API key ${name} was deleted.`]),
    ...(issued.length > 0
      ? [`Changes by ${name} to other keys, still in effect:`, ...issuedLines(issued).map(indented)]
      : []),
    ...formatDiff(changed),
    ...requests.map(({ client, keyName }) => `- cancel the request of "${printable(client, 100)}" for "${keyName}"`),
  ];
}

function indented(line: string): string {
  return `  ${line}`;
}

/** Counts of changes, such as "3 keys to change, 1 request to cancel". */
function containedCounts(
  { changes: changed, requests }: Contained,
  [change, cancel]: readonly [string, string],
): string {
  const keys = formatCount(changed.length, 'key', 'keys');
  return `${keys} ${change}, ${formatCount(requests.length, 'request', 'requests')} ${cancel}`;
}
