import { hasControlCharacters } from '../../keys/text.ts';
import type { CommandLine } from './command-line.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A word that may stand at the cursor. */
export interface Choice {
  /** The part of the word after what all choices have in common. */
  text: string;
  description?: string;
}

/** Words that may stand at the cursor, each the common head with one of the choices. */
export interface Choices {
  head: string;
  choices: readonly Choice[];
  /** Whether the words go on, so that no space follows. */
  isOpen?: boolean;
}

const MAX_DESCRIPTION = 80;

/** What the script of a shell reads: what kind of reply it is, then a word a line, with a description after a tab. */
export function replyOf(reply: 'files' | 'folders' | Choices, shell: Shell, line: CommandLine): string {
  if (typeof reply === 'string') return `${reply}\n`;
  const { head, choices, isOpen = false } = reply;
  // What has no control characters is one line, whatever it is.
  const safe = choices.filter(({ text }) => !hasControlCharacters(head + text));
  if (safe.length === 0) return '';
  const lines = safe.map(({ text, description }) => {
    const word = head + text;
    if (shell === 'bash') return quotedForBash(word.slice(line.kept), line.quote);
    return [word, ...(description === undefined ? [] : [shortened(description)])].join('\t');
  });
  return [isOpen ? 'open' : 'words', ...lines].map((each) => `${each}\n`).join('');
}

/** bash takes words as they are, into the quotes that are open. The other shells quote them. */
function quotedForBash(word: string, quote: CommandLine['quote']): string {
  if (quote === "'") return word.replaceAll("'", String.raw`'\''`);
  if (quote === '"') return word.replaceAll(/["$`\\]/g, String.raw`\$&`);
  return word.replaceAll(/[^\p{L}\p{M}\p{N}_\-./:=,@%+]/gu, String.raw`\$&`);
}

/** The first line of a description, without what a terminal would obey. */
function shortened(description: string): string {
  const [line = ''] = description.split('\n', 1);
  const shown = Array.from(line.replaceAll(/\p{C}/gu, ' '));
  return shown.length > MAX_DESCRIPTION ? `${shown.slice(0, MAX_DESCRIPTION - 1).join('')}…` : shown.join('');
}
