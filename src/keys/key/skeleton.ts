import { describeCharacter, formatList } from '../basics/index.ts';
import { CONFUSABLES } from './confusables.ts';

/** Prototypes found so far: reading the whole table would take longer than creating a key. */
const prototypes = new Map<string, string>();

/**
 * The visual form of a name: names with equal skeletons look alike (Unicode UTS #39, section 4). Characters missing
 * from the table, such as fullwidth letters, are decomposed. Case counts, since it is visible.
 */
export function computeSkeleton(name: string): string {
  return mapped(name.normalize('NFD')).normalize('NFD');
}

/** Describes the characters in which two names that look alike differ. */
export function describeLikeness(name: string, other: string): string {
  const [own, foreign] = [charactersBeyond(name, other), charactersBeyond(other, name)];
  const difference = own && foreign ? `: it has ${own} in place of ${foreign}` : '';
  return `The name "${name}" looks like that of the API key "${other}"${difference}.`;
}

function mapped(text: string): string {
  let skeleton = '';
  for (const character of text) skeleton += prototypeOf(character);
  return skeleton;
}

function prototypeOf(character: string): string {
  let prototype = prototypes.get(character);
  if (prototype === undefined) {
    const parts = character.normalize('NFKD');
    prototype = findPrototype(character) ?? (parts === character ? character : mapped(parts));
    prototypes.set(character, prototype);
  }
  return prototype;
}

/** The entry of the table for the character, as `prototype=character,character,…`. */
function findPrototype(character: string): string | undefined {
  const number = character.codePointAt(0)!.toString(16);
  const found = new RegExp(`[=,]${number}(?=[,\\s])`).exec(CONFUSABLES);
  if (!found) return undefined;
  const end = CONFUSABLES.lastIndexOf('=', found.index);
  const start = Math.max(CONFUSABLES.lastIndexOf(' ', end), CONFUSABLES.lastIndexOf('\n', end)) + 1;
  return textOf(CONFUSABLES.slice(start, end));
}

function textOf(numbers: string): string {
  return String.fromCodePoint(...numbers.split('+').map((number) => Number.parseInt(number, 16)));
}

function charactersBeyond(name: string, other: string): string {
  const beyond = [...new Set(name)].filter((character) => !other.includes(character));
  return formatList(beyond.map((character) => describeCharacter(character)));
}
