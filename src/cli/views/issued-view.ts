import type { NamedIssue } from '../../keys/administration.ts';
import type { IssuedKind } from '../../keys/changes/contain.ts';
import { printable } from '../../keys/text.ts';
import { formatTime } from '../../keys/time.ts';

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

/** One of them. */
export function issueJson({ name, what, at }: NamedIssue): object {
  return { key: name, what, at: formatTime(at) };
}

/** The same as text, a line each. */
export function issuedLines(issued: readonly NamedIssue[]): string[] {
  return issued.map(({ name, what, at, isDisabled }) => {
    const did = WORDS[what](`"${printable(name, 100)}"`);
    return `${formatTime(at)} ${did}${isDisabled ? ' (disabled)' : ''}`;
  });
}
