import {
  codePoints,
  describeCharacter,
  formatList,
  hasTooManyMarks,
  type Issue,
  MAX_MARKS,
  normalizeText,
} from '../basics/index.ts';

/** In code points. */
export const MAX_NAME_LENGTH = 100;

/** Letters with the marks that belong to them, decimal digits and spaces. */
const ALLOWED = /\p{L}\p{M}*|\p{Nd}|\u0020/uy;
/** Hangul fillers, variation selectors and the like: letters or marks by category, but invisible. */
const INVISIBLE = /\p{DI}/u;

/** A name as it is stored and compared: NFC, without leading or trailing spaces. */
export function normalizeName(name: string): string {
  return normalizeText(name).replace(/^\u0020+|\u0020+$/g, '');
}

/**
 * Checks a name: only letters (with their combining marks), decimal digits and U+0020, all visible, and 1 to 100 code
 * points after normalization. Returns the issue, if there is one.
 */
export function validateName(name: string): Issue | undefined {
  const normalized = normalizeName(name);
  if (normalized === '') return nameIssue('The name is empty: it needs at least one letter or digit.');
  if (hasTooManyMarks(normalized)) return nameIssue(`The name has more than ${MAX_MARKS} combining marks in a row.`);
  const found = invalidCharacters(normalized);
  if (found.length > 0) {
    const shown = found.slice(0, 5).map((character) => describeCharacter(character));
    const more = found.length > 5 ? [`${found.length - 5} more`] : [];
    return nameIssue(`The name may only contain letters, digits and spaces; found ${formatList([...shown, ...more])}.`);
  }
  const length = codePoints(normalized);
  if (length > MAX_NAME_LENGTH)
    return nameIssue(`The name is ${length} characters long; at most ${MAX_NAME_LENGTH} are allowed.`);
  return undefined;
}

function invalidCharacters(name: string): string[] {
  const invalid = new Set<string>();
  for (let index = 0; index < name.length;) {
    ALLOWED.lastIndex = index;
    const allowed = ALLOWED.exec(name)?.[0];
    const next = allowed ?? String.fromCodePoint(name.codePointAt(index)!);
    for (const character of next) if (allowed === undefined || INVISIBLE.test(character)) invalid.add(character);
    index += next.length;
  }
  return [...invalid];
}

function nameIssue(message: string): Issue {
  return { code: 'NAME_INVALID', message };
}
