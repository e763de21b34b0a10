import type { Command } from '@oclif/core/command';

/** What is known of a command while it is typed. */
export interface TypedCommand {
  /** Its id, or that of a topic; empty before the first word. */
  id: string;
  /** Undefined for a topic that is no command. */
  command: Command.Loadable | undefined;
  /** The flags that are typed, with their values; empty for those without one. */
  flags: ReadonlyMap<string, string>;
  /** The flag whose value the next word is. */
  pending: string | undefined;
  /** The arguments that are typed. */
  args: readonly string[];
  /** Whether a word was `--`: what follows are arguments, whatever they begin with. */
  isEnded: boolean;
}

/** Reads the words before the cursor as oclif does: the command's own words come first. */
export function readTypedCommand(words: readonly string[], commands: readonly Command.Loadable[]): TypedCommand {
  const parts = words.flatMap((word) => (word.startsWith('-') ? [word] : word.split(':')));
  let [id, length] = ['', 0];
  for (const part of parts) {
    const longer = id === '' ? part : `${id}:${part}`;
    if (!commands.some((command) => command.id === longer || command.id.startsWith(`${longer}:`))) break;
    id = longer;
    length += 1;
  }
  const command = commands.find((each) => each.id === id);
  const flags = new Map<string, string>();
  const args: string[] = [];
  let [pending, isEnded]: [string | undefined, boolean] = [undefined, false];
  // The words of a command have no colons left over, and what follows it may have some.
  for (const word of restOf(words, length)) {
    if (pending !== undefined) {
      flags.set(pending, word);
      pending = undefined;
    } else if (isEnded || !/^-./.test(word)) args.push(word);
    else if (word === '--') isEnded = true;
    else {
      const { flag, value } = flagIn(word, command);
      if (flag === undefined) continue;
      flags.set(flag, value ?? '');
      if (value === undefined && command?.flags[flag]?.type === 'option') pending = flag;
    }
  }
  return { id, command, flags, pending, args, isEnded };
}

/** The words after the command, which has so many parts. */
function restOf(words: readonly string[], parts: number): readonly string[] {
  let [index, seen] = [0, 0];
  for (; seen < parts; index += 1) seen += words[index]!.split(':').length;
  return words.slice(index);
}

/** The flag that a word names, and its value if the word has it. */
function flagIn(word: string, command: Command.Loadable | undefined): { flag?: string; value?: string } {
  const [, long, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  if (long !== undefined) return value === undefined ? { flag: long } : { flag: long, value };
  const [flag] = Object.entries(command?.flags ?? {}).find(([, { char }]) => char === word[1]) ?? [];
  if (flag === undefined) return {};
  return word.length > 2 ? { flag, value: word.slice(2) } : { flag };
}
