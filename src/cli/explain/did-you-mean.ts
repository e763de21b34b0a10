import { MAX_NAME_LENGTH } from '../../keys/key/index.ts';
import { formatList, nearest, printable } from '../../keys/basics/index.ts';
import { holdsSecret } from '../../keys/secret/index.ts';

/** Longer than any name of a command or flag. */
const MAX_LENGTH = 40;

/** The words that a typed one may stand for, best first. A possible secret is not compared. */
export function closeTo(typed: string, words: readonly string[]): string[] {
  if (typed.length > MAX_LENGTH || holdsSecret(typed)) return [];
  return nearest(typed, words, 3, Math.max(1, Math.floor(typed.length / 3)));
}

/** `Did you mean --roles?`; undefined without words. */
export function didYouMean(words: readonly string[]): string | undefined {
  return words.length > 0 ? `Did you mean ${formatList([...new Set(words)], 'or')}?` : undefined;
}

/** The remedy for an argument that was meant for a list: `--roles VIEWER GUEST`; otherwise undefined. */
export function explainSpacedList(
  argv: readonly string[],
  flags: Readonly<Record<string, object>>,
  argument: string,
): string | undefined {
  for (const [index, word] of argv.entries()) {
    if (word === '--') return undefined;
    const [, flag = '', first] = /^--([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const definition: { delimiter?: string } | undefined = Object.hasOwn(flags, flag) ? flags[flag] : undefined;
    if (definition?.delimiter !== ',') continue;
    const rest = argv.slice(index + 1);
    const end = rest.findIndex((each) => each.startsWith('-'));
    const values = [...(first === undefined ? [] : [first]), ...rest.slice(0, end < 0 ? rest.length : end)];
    if (values.length < 2 || !values.includes(argument)) continue;
    const items = values.flatMap((value) => value.split(',').map((item) => item.trim()));
    const list = printable(items.filter((item) => item !== '').join(','), 200);
    return `Unexpected argument: ${printable(argument)}. Separate the values of --${flag} with commas: --${flag} ${list}`;
  }
  return undefined;
}

/**
 * `Did you mean "CI deploy"?` for the name of a missing key; undefined if no name is close. Considers the first keys
 * that `search` finds for the name and its parts: with one wrong letter, some part is right. A failed search finds
 * none.
 * @param search keys that contain a text, ignoring case
 */
export async function didYouMeanKey(
  name: string,
  search: (text: string) => Promise<readonly { name: string }[]>,
): Promise<string | undefined> {
  const letters = holdsSecret(name) ? [] : Array.from(name);
  const parts = [1, 2, 3].flatMap((count) => {
    const length = Math.ceil(letters.length / count);
    const starts = Array.from({ length: count }, (_, index) => Math.min(index * length, letters.length - length));
    return starts.map((start) => letters.slice(start, start + length).join(''));
  });
  for (const part of new Set(parts.map((each) => each.trim()))) {
    if (part === '' || part.length < Math.min(2, letters.length)) continue;
    const found = await search(part).catch(() => []);
    const close = nearest(
      name,
      found.map((key) => key.name),
    );
    if (close.length > 0) return didYouMean(close.map((each) => `"${printable(each, MAX_NAME_LENGTH)}"`));
  }
  return undefined;
}
