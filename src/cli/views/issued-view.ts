import type { Contained, NamedIssue } from '../../keys/administration.ts';
import type { IssuedKind } from '../../keys/changes/contain.ts';
import { printable } from '../../keys/text.ts';
import { formatTime } from '../../keys/time.ts';
import { diffOf } from '../apply/plan-view.ts';
import { countOf } from './count.ts';

/** What a key did, in the words `gave "CI" a secret`. */
const WORDS: Readonly<Record<IssuedKind, (name: string) => string>> = {
  SECRET: (name) => `gave ${name} a secret`,
  WIDENING: (name) => `widened ${name}`,
  ENABLING: (name) => `enabled ${name}`,
  APPROVAL: (name) => `agreed to a request, for which there is to be ${name}`,
  ADOPTION: (name) => `created ${name}, which was adopted since`,
  CREATION: (name) => `created ${name}, by a secret that it gave to another key`,
};

/** What a key did to others, as the field `issued` of JSON; nothing where it did nothing. */
export function issuedJson(issued: readonly NamedIssue[]): { issued?: object[] } {
  if (issued.length === 0) return {};
  return { issued: issued.map(issueJson) };
}

function issueJson({ name, what, at }: NamedIssue): object {
  return { key: name, what, at: formatTime(at) };
}

/** The same as text, a line each. */
export function issuedLines(issued: readonly NamedIssue[]): string[] {
  return issued.map(({ name, what, at }) => `${formatTime(at)} ${WORDS[what](`"${printable(name, 100)}"`)}`);
}

/** What containing a key does, as JSON. */
export function containedJson({ apiKey, exists, issued, changes, requests }: Contained, dryRun: boolean): object {
  return { dryRun, apiKey, exists, issued: issued.map(issueJson), changes, requests };
}

/** The plan as text: what it did, then what becomes of that. */
export function containedLines({ apiKey, exists, issued, changes, requests }: Contained): string[] {
  const name = `"${printable(apiKey.name, 100)}"`;
  return [
    ...(exists ? [] : [`API key ${name} was deleted.`]),
    ...(issued.length > 0
      ? [`What ${name} did to others, and is in force:`, ...issuedLines(issued).map(indented)]
      : []),
    ...diffOf(changes),
    ...requests.map(({ client, keyName }) => `- cancel the request of "${printable(client, 100)}" for "${keyName}"`),
  ];
}

function indented(line: string): string {
  return `  ${line}`;
}

/** How much changes, in the words "3 keys to change, 1 request to cancel". */
export function containedCounts({ changes, requests }: Contained, [change, cancel]: readonly [string, string]): string {
  const keys = countOf(changes.length, 'key', 'keys');
  return `${keys} ${change}, ${countOf(requests.length, 'request', 'requests')} ${cancel}`;
}
