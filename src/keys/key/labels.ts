import {
  codePoints,
  hasControlCharacters,
  hasTooManyMarks,
  type Issue,
  MAX_MARKS,
  normalizeText,
  printable,
} from '../basics/index.ts';
import { holdsSecret } from '../secret/index.ts';

/** The most tags on a key. */
const MAX_TAGS = 16;
/** In code points. */
const [MAX_TAG_KEY, MAX_TAG_VALUE] = [50, 150];
/** Separators of items in forms, flags and prompts. */
const SEPARATOR = /[,;]/;
/** Letters with their marks, digits, and separators inside. */
const TAG_KEY = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._/-]*$/u;

/** A text of one line as it is stored: NFC and trimmed; null if it is blank. */
export function normalizeLine(text: string | null | undefined): string | null {
  return normalizeText(text ?? '').trim() || null;
}

/** A text of several lines as it is stored, like `normalizeLine`. */
export function normalizeLines(text: string | null | undefined): string | null {
  return normalizeLine(text?.replaceAll(/\r\n?/g, '\n'));
}

/** The rule for a text: its maximum in code points, and the code of its issues. */
export interface LineRule {
  name: string;
  max: number;
  code: Issue['code'];
  /** True for several lines, and tabs. */
  hasLines?: boolean;
  /** True for an item of a list. */
  isItem?: boolean;
}

/** The issue with a text, if there is one: its length, control characters, or a secret. */
export function validateLine(text: string, { name, max, code, hasLines, isItem }: LineRule): Issue[] {
  const length = codePoints((hasLines ? normalizeLines(text) : normalizeLine(text)) ?? '');
  if (length > max) return [{ code, message: `The ${name} is ${length} characters long; at most ${max} are allowed.` }];
  const problem = hasLines
    ? problemOf(text.replaceAll(/[\n\r\t]/g, ' '), ' other than line breaks and tabs')
    : problemOf(text);
  if (problem !== undefined) return [{ code, message: `The ${name} ${problem}` }];
  if (!isItem || !SEPARATOR.test(text)) return [];
  return [{ code, message: `The ${name} "${printable(text)}" has a comma or semicolon, which separates items.` }];
}

/** The problem with a text. */
function problemOf(text: string, controls = ', such as line breaks or tabs'): string | undefined {
  if (hasTooManyMarks(text)) return `has more than ${MAX_MARKS} combining marks in a row.`;
  if (hasControlCharacters(text)) return `must not contain control characters${controls}.`;
  if (holdsSecret(text)) return 'contains what looks like the secret of an API key. Leave it out.';
  return undefined;
}

/**
 * Parses tags, each as `key=value`, into their stored form: NFC, trimmed, and sorted by key. Each key occurs once, and
 * there are at most `MAX_TAGS`.
 */
export function parseTags(texts: readonly string[]): { values: string[]; issues: Issue[] } {
  const values = new Map<string, string>();
  const issues: Issue[] = [];
  const refuse = (message: string) => void issues.push({ code: 'TAG_INVALID', message });
  for (const text of texts) {
    const { key, tag, problem } = readTag(text);
    const given = values.get(key);
    if (problem !== undefined) refuse(problem);
    else if (given !== undefined && given !== tag)
      refuse(`The tag ${printable(key)} is given twice: ${printable(given)} and ${printable(tag)}. Leave one out.`);
    else values.set(key, tag);
  }
  if (values.size > MAX_TAGS) refuse(`${values.size} tags are given; at most ${MAX_TAGS} are allowed.`);
  const sorted = [...values].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { values: sorted.map(([, tag]) => tag), issues };
}

function readTag(text: string): { key: string; tag: string; problem?: string } {
  const given = normalizeText(text).trim();
  const at = given.indexOf('=');
  const [key, value] = at === -1 ? [given, ''] : [given.slice(0, at).trim(), given.slice(at + 1).trim()];
  const read = { key, tag: `${key}=${value}` };
  const problem = problemOf(given);
  if (problem !== undefined) return { ...read, problem: `A tag ${problem}` };
  const shown = `"${printable(given)}"`;
  if (key === '' || value === '')
    return { ...read, problem: `${shown} is not a tag. Write key=value, as in env=prod.` };
  if (!TAG_KEY.test(key) || codePoints(key) > MAX_TAG_KEY) {
    const rule = `up to ${MAX_TAG_KEY} letters, digits and . _ - /, the first a letter or digit`;
    return { ...read, problem: `The key of the tag ${shown} is not ${rule}.` };
  }
  if (value.includes(','))
    return { ...read, problem: `The value of the tag ${shown} has a comma, which separates tags.` };
  const length = codePoints(value);
  if (length <= MAX_TAG_VALUE) return read;
  return {
    ...read,
    problem: `The value of the tag ${printable(key)} is ${length} characters long; at most ${MAX_TAG_VALUE} are allowed.`,
  };
}
